// SPDX-License-Identifier: Apache-2.0

package rollout_test

import (
	"testing"

	"github.com/theseus-gitops/theseus/reconcile/rollout"
)

// Killed at any single point, before it or after it, or with one act that fails or whose answer is lost, while a plane grows,
// shrinks, or is behind a load balancer that finds its machines by itself: the plane becomes as wanted, nothing is left, and the
// invariants hold all the way. Package planetest has the same for replacing machines behind one that is told.
func TestAnythingOnceAtAnyPoint(t *testing.T) {
	t.Parallel()
	replicas := func(n int) func(d *driver) {
		return func(d *driver) { d.want.Plane.Replicas = n }
	}
	healthChecked := func(d *driver) {
		d.w.ActsOnServing = false
		newVersion(d.want.Plane)
	}
	for name, c := range map[string]struct {
		machines int
		meet     func(d *driver)
	}{
		"one to three": {1, replicas(3)}, "three to one": {3, replicas(1)}, "five to three": {5, replicas(3)},
		"one, health-checked": {1, healthChecked}, "three, health-checked": {3, healthChecked},
	} {
		begin := func(tb testing.TB) *driver {
			tb.Helper()
			d := rolls(tb, c.machines, func(w *rollout.WantPlane) { w.Snapshot = true })
			c.meet(d)
			return d
		}
		whole := begin(t)
		whole.converges()
		for what, err := range map[string]error{"killed": errKilled, "failed": errFails} {
			for when, before := range map[string]bool{"before": true, "after": false} {
				t.Run(name+", "+what+" "+when, func(t *testing.T) {
					t.Parallel()
					for at := 1; at <= whole.point; at++ {
						d := begin(t)
						d.at = func(point int, first bool) error {
							if point == at && first == before {
								d.w.Tell("  # %s", what)
								return err
							}
							return nil
						}
						d.converges()
					}
				})
			}
		}
	}
}
