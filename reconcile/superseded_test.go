// SPDX-License-Identifier: Apache-2.0

package reconcile_test

import (
	"strings"
	"testing"
	"time"
)

// A commit in the middle of a roll: one that is about this cluster ends the pass at the next place, and the next pass goes on
// from there under the new spec; one about others does not.
func TestSpecChangedInTheMiddle(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		push  func(f *fleet)
		after time.Duration
		left  bool
	}{
		"put back":            {func(f *fleet) { f.specs["a.yaml"] = clusterDoc("a", "v1.14.2") }, time.Minute, true},
		"put back just now":   {func(f *fleet) { f.specs["a.yaml"] = clusterDoc("a", "v1.14.2") }, time.Second, false},
		"a comment":           {func(f *fleet) { f.specs["a.yaml"] += "# a comment\n" }, time.Minute, false},
		"another cluster":     {func(f *fleet) { f.specs["b.yaml"] = clusterDoc("b", "v1.14.2") }, time.Minute, false},
		"can't be read":       {func(f *fleet) { f.specs["a.yaml"] = "x: [" }, time.Minute, false},
		"the cluster is gone": {func(f *fleet) { delete(f.specs, "a.yaml") }, time.Minute, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFleet("a")
			f.clusters["a"].onExecute = func(step string) {
				if step == "canary-coredns" {
					c.push(f)
					f.pushes++
					f.now = f.now.Add(c.after) // the fleet is locked while a step is executed
					f.clusters["a"].world.Now = f.now
				}
			}
			r := run(t, f)
			if !c.left {
				wantOutcomes(t, r, map[string]string{"a": "converged"})
				return
			}
			wantOutcomes(t, r, map[string]string{"a": "changes"})
			if why := r.Clusters[0].Report.Why; !strings.Contains(why, "the spec was changed meanwhile") {
				t.Errorf("why: %s", why)
			}
			f.clusters["a"].onExecute = nil
			wantOutcomes(t, run(t, f), map[string]string{"a": "converged"})
			if got := f.clusters["a"].world.Image; got != repo+"v1.14.2" {
				t.Errorf("in the end %s runs", got)
			}
		})
	}
}
