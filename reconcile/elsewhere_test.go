// SPDX-License-Identifier: Apache-2.0

package reconcile_test

import (
	"strings"
	"testing"

	"github.com/theseus-gitops/theseus/reconcile/rollout"
)

// What stands in the way of a target is not its failure: when it has gone, the next pass goes on without a new spec.
func TestFailureElsewhereIsLookedAtAgain(t *testing.T) {
	t.Parallel()
	f := newFleet("a")
	c := f.clusters["a"]
	c.inTheWay = &rollout.Failure{Reason: "DNSCanaryNameTaken", Message: "a pod of that name is there", Remedy: "delete it", Elsewhere: true}
	wantOutcomes(t, run(t, f), map[string]string{"a": "stalled"})
	if c.tries != 1 || c.world.Book.FailedTarget != nil {
		t.Errorf("%d tries, failed target %+v: want one try, and nothing remembered", c.tries, c.world.Book.FailedTarget)
	}
	if doc := string(f.branch["status/clusters/a.yaml"]); !strings.Contains(doc, "reason: DNSCanaryNameTaken") || !strings.Contains(doc, "remedy: delete it") {
		t.Errorf("status lacks the reason or the remedy:\n%s", doc)
	}
	commits := len(f.commits)
	wantOutcomes(t, run(t, f), map[string]string{"a": "stalled"})
	if len(f.commits) != commits || c.tries != 2 {
		t.Errorf("the next pass tried %d times and committed %v; want one try, and no commit", c.tries-1, f.commits[commits:])
	}
	c.inTheWay = nil
	wantOutcomes(t, run(t, f), map[string]string{"a": "converged"})
}
