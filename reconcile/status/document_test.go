// SPDX-License-Identifier: Apache-2.0

package status_test

import (
	"encoding/json"
	"reflect"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/theseus-gitops/theseus/reconcile/status"
)

// `theseus status -o json` and the file on the branch are the same document.
func TestJSONSaysWhatYAMLSays(t *testing.T) {
	r := stalled("a", "dev")
	r.Plan, r.Notices, r.Finished = changing("", "").Plan, []string{"n"}, finished("2026-12-01T08:00:00Z", "2026-12-01T08:02:10Z")
	first := status.Update(nil, r, at("2026-12-01T09:00:00Z"))
	gone := status.Update(&first, unreachable("a", "dev"), at("2026-12-01T10:00:00Z"))
	for name, doc := range map[string]status.Document{"full": first, "stale": gone, "bare": status.Update(nil, status.Report{Cluster: "a"}, at("2026-12-01T09:00:00Z"))} {
		t.Run(name, func(t *testing.T) {
			asJSON, err := json.Marshal(doc)
			if err != nil {
				t.Fatal(err)
			}
			var fromJSON, fromYAML any
			if err := json.Unmarshal(asJSON, &fromJSON); err != nil {
				t.Fatal(err)
			}
			var node any
			if err := yaml.Unmarshal([]byte(format(t, doc)), &node); err != nil {
				t.Fatal(err)
			}
			again, err := json.Marshal(node)
			if err != nil {
				t.Fatal(err)
			}
			if err := json.Unmarshal(again, &fromYAML); err != nil {
				t.Fatal(err)
			}
			if !reflect.DeepEqual(fromJSON, fromYAML) {
				t.Errorf("JSON %s\nYAML %s", asJSON, again)
			}
		})
	}
}

func TestDurationsAreGoDurations(t *testing.T) {
	for _, bad := range []string{"", "12", "1 minute"} {
		var d status.Duration
		if err := d.UnmarshalText([]byte(bad)); err == nil {
			t.Errorf("%q was read as %v", bad, d)
		}
	}
}
