// SPDX-License-Identifier: Apache-2.0

package status_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/theseus-gitops/theseus/reconcile/status"
)

// A fleet-wide trouble must not make a page that is too large to be committed: no roll could begin.
func TestPageOfALargeFleetCanBeCommitted(t *testing.T) {
	var reports []status.Report
	for i := range 5000 {
		r := stalled(fmt.Sprintf("cluster-with-a-long-name-%04d", i), fmt.Sprintf("stage-%d", i%7))
		r.Failure.Message, r.Failure.Remedy = strings.Repeat("message ", 200), strings.Repeat("remedy ", 200)
		if i%10 == 0 {
			r = converged(r.Cluster, r.Stage)
		}
		reports = append(reports, r)
	}
	tree := files(t, status.Commit{Reports: reports, Now: at("2026-12-01T09:00:00Z")}, nil)
	page := string(tree["README.md"])
	if size := len(page); size > 900<<10 {
		t.Errorf("the page has %d bytes", size)
	}
	for _, want := range []string{"4500 ", "And 4400 more", "And 430 more, in the folder `clusters`."} {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %q", want)
		}
	}
}
