// SPDX-License-Identifier: Apache-2.0

package rollout_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/theseus-gitops/theseus/reconcile/rollout"
)

// Killed at any single point of a roll, before it or after it, or with one act that fails or whose answer is lost: the plane
// becomes as wanted, nothing is left, and the invariants hold all the way.
func TestAnythingOnceAtAnyPoint(t *testing.T) {
	t.Parallel()
	for _, machines := range []int{1, 3} {
		for name, change := range map[string]func(w *rollout.WantPlane){"image": newImage, "version": newVersion} {
			whole := rolls(t, machines, change)
			whole.converges()
			points := whole.point
			for what, err := range map[string]error{"killed": errKilled, "failed": errFails} {
				for _, before := range []bool{true, false} {
					t.Run(fmt.Sprintf("%d machines, new %s, %s, before %t", machines, name, what, before), func(t *testing.T) {
						t.Parallel()
						for at := 1; at <= points; at++ {
							d := rolls(t, machines, change)
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
}

// Killed twice, at every seventh pair of points of a plane of one.
func TestKilledTwice(t *testing.T) {
	t.Parallel()
	whole := rolls(t, 1, newVersion)
	whole.converges()
	for first := 1; first <= whole.point; first++ {
		for second := first + 1; second <= whole.point+10; second += 7 {
			d := rolls(t, 1, newVersion)
			d.at = func(point int, before bool) error {
				if !before && (point == first || point == second) {
					d.w.Tell("  # killed")
					return errKilled
				}
				return nil
			}
			d.converges()
		}
	}
}

// Terraform is killed together with Theseus while it makes a machine that its state then does not know, and which goes on to boot:
// it is not taken for the one that was asked for, and what it brought to the cluster is removed, however far it got meanwhile.
func TestTerraformKilledWhileItMakesAMachine(t *testing.T) {
	t.Parallel()
	for _, machines := range []int{1, 3} {
		for later := time.Duration(0); later < 2*time.Minute; later += 5 * time.Second {
			d := rolls(t, machines, newImage)
			d.w.CutOff = true
			if end := d.pass(); end != nil {
				t.Fatalf("not cut off: %v\n%s", end, d)
			}
			d.w.Pass(later)
			d.w.Tell("# pass 2, %s later", later)
			d.converges()
			d.w.Pass(time.Hour) // whoever was left has time to come back
			if left := d.w.Leftovers(); len(left) > 0 {
				t.Fatalf("%s later: left %v\n%s", later, left, d)
			}
		}
	}
}

// The spec is put back at any moment of a roll.
func TestRevertedAtAnyMoment(t *testing.T) {
	t.Parallel()
	for _, machines := range []int{1, 3} {
		for name, change := range map[string]func(w *rollout.WantPlane){"image": newImage, "version": newVersion} {
			t.Run(fmt.Sprintf("%d machines, new %s", machines, name), func(t *testing.T) {
				t.Parallel()
				for after, over := 1, false; !over; after++ {
					d := rolls(t, machines, change)
					decisions := 0
					over = true
					d.between = func(d *driver) {
						if decisions++; decisions == after {
							over = false
							d.revert(machines)
						}
					}
					d.comesToRest()
				}
			})
		}
	}
}

// revert puts the spec back to what the plane was.
func (d *driver) revert(machines int) {
	d.w.Tell("# the spec is put back")
	d.want = wantPlane(machines)
	d.want.Revision = "rev-0"
}

// comesToRest is converges, but a version that can't be gone back to may be left as it is.
func (d *driver) comesToRest() {
	const most = 12
	for n := range most {
		if n > 0 {
			d.w.Pass(betweenSlots)
			d.w.Tell("# pass %d", n+1)
		}
		switch end := d.pass().(type) {
		case rollout.Done:
			d.atRest()
			return
		case rollout.Stalled:
			if end.Failure.Reason == "MinorDowngrade" {
				return
			}
		case rollout.Do, rollout.Wait:
		}
	}
	d.tb.Fatalf("not at rest after %d passes:\n%s", most, d)
}

// A member stays a learner for so long that its machine is given up, and becomes a voter at any moment around that: the only
// other voter is never left without a quorum (kubernetes-sigs/cluster-api#11772).
func TestPromotedWhileTakenBack(t *testing.T) {
	t.Parallel()
	for machines, step := range map[int]time.Duration{1: time.Second, 3: 5 * time.Second} {
		for late := 14*time.Minute + 45*time.Second; late < 16*time.Minute; late += step {
			d := rolls(t, machines, newImage)
			d.w.Habit.Learner = noon.Add(late)
			d.between = func(d *driver) {
				if d.w.Book.Pending == nil {
					d.w.Habit.Learner = time.Time{} // the next one behaves
				}
			}
			d.converges()
		}
	}
}
