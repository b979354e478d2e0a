// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/theseus-gitops/theseus/reconcile"
	"github.com/theseus-gitops/theseus/reconcile/status"
)

// What a pass of reconcile did is in its output for programs; a plan does nothing.
func TestOutputTellsWhatWasDone(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		taken []status.TakenStep
		want  bool
	}{
		"reconcile": {[]status.TakenStep{{Step: "verify", Subject: "deployment/coredns", Duration: status.Duration(2 * time.Second)}}, true},
		"plan":      {nil, false},
	} {
		r := reconcile.Result{Clusters: []reconcile.ClusterResult{{Report: status.Report{Cluster: "a", Outcome: status.Converged, Taken: c.taken}}}}
		data, err := json.Marshal(passOutputOf(origin{}, r))
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.Contains(string(data), `"taken":[{"step":"verify","subject":"deployment/coredns","duration":"2s"}]`); got != c.want {
			t.Errorf("%s: %s", name, data)
		}
	}
}
