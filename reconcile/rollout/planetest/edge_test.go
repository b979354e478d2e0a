// SPDX-License-Identifier: Apache-2.0

package planetest_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/theseus-gitops/theseus/reconcile/rollout/planetest"
	"github.com/theseus-gitops/theseus/reconcile/status"
)

// some are every n-th of the points, all of them with -all.
func some[T any](n int, points []T) []T {
	if *all {
		return points
	}
	var out []T
	for i := 0; i < len(points); i += n {
		out = append(out, points[i])
	}
	return out
}

// seconds are those of a time.
func seconds(d time.Duration) []time.Duration {
	var out []time.Duration
	for s := time.Duration(0); s < d; s += time.Second {
		out = append(out, s)
	}
	return out
}

// replaced is longer than one machine's replacement takes.
const replaced = 270 * time.Second

// The spec is reverted at any second of the first machine's replacement: the plane is in the end as it was in the beginning.
// Only a minor can't be undone once its last voter is gone, and then the way forward is open.
func TestAPlaneRevertedAtAnySecond(t *testing.T) {
	t.Parallel()
	for _, machines := range []int{1, 3} {
		for name, want := range wants(machines) {
			t.Run(fmt.Sprintf("%d-%s", machines, name), func(t *testing.T) {
				t.Parallel()
				for _, after := range some(31, seconds(replaced)) {
					w, back := worldFor(want), wantPlane(machines)
					back.Plane.Surge, back.Plane.Unavailable = want.Plane.Surge, want.Plane.Unavailable
					pass(w, want, noon.Add(after))
					w.Tell("# the spec is reverted after %s", after)
					w.Pass(time.Minute)
					report := roll(t, w, back)
					if report.Failure != nil && report.Failure.Reason == "MinorDowngrade" {
						report = roll(t, w, want)
						wantRest(t, w, want, report)
						continue
					}
					wantRest(t, w, back, report)
				}
			})
		}
	}
}

// A machine joins so late that it is being taken back: it becomes a voter before, while or after it is looked at, removed and
// destroyed. Beside one voter that must never cost the quorum (kubernetes-sigs/cluster-api#11772).
func TestAMachineJoinsAtTheLastSecond(t *testing.T) {
	t.Parallel()
	for _, machines := range []int{1, 3} {
		t.Run(fmt.Sprint(machines), func(t *testing.T) {
			t.Parallel()
			for _, takes := range []time.Duration{5 * time.Second, 20 * time.Second} {
				for _, late := range some(7*machines, seconds(time.Minute)) {
					w, want := newPlane(machines), newImage(machines)
					fate(planetest.Fate{Boots: 14*time.Minute + 30*time.Second + late, Takes: takes})(w)
					wantRest(t, w, want, roll(t, w, want))
				}
			}
		})
	}
}

// A process breaks the lock of one that was killed while Terraform made a machine, and is killed itself soon afterwards: that
// the machine may be lost is not forgotten, and its name not given again.
func TestKilledAgainAfterALockWasBroken(t *testing.T) {
	t.Parallel()
	for _, machines := range []int{1, 3} {
		for after := 1; after <= 6; after++ {
			w, want := newPlane(machines), newImage(machines)
			blow("add-machine", planetest.DieAmid)(w)
			pass(w, want, time.Time{})
			w.Pass(time.Minute)
			writes := 0
			w.Strike = func(int, string) planetest.Blow {
				if writes++; writes == after {
					return planetest.DieAfter
				}
				return planetest.NoBlow
			}
			wantRest(t, w, want, roll(t, w, want))
		}
	}
}

// A machine that a killed Terraform made, and that its state does not know, joins all the same, sooner or later: it is taken
// out again, or named to a person. Nothing is lost either way.
func TestALostMachineJoins(t *testing.T) {
	t.Parallel()
	for _, machines := range []int{1, 3} {
		for _, takes := range []time.Duration{5 * time.Second, 20 * time.Second, 45 * time.Second} {
			for _, boots := range some(30, seconds(2*time.Minute)) {
				w, want := newPlane(machines), newImage(machines)
				fate(planetest.Fate{Boots: boots + time.Second, Takes: takes})(w)
				blow("add-machine", planetest.DieAmid)(w)
				report := roll(t, w, want)
				if report.Failure != nil && report.Failure.Reason == "UnknownMember" {
					continue
				}
				wantRest(t, w, want, report)
			}
		}
	}
}

// A process dies while a machine joins: the next one does not take away what it joins with.
func TestKilledWhileAMachineJoins(t *testing.T) {
	t.Parallel()
	for _, machines := range []int{1, 3} {
		for _, boots := range some(30, seconds(3*time.Minute)) {
			w, want := newPlane(machines), newImage(machines)
			fate(planetest.Fate{Boots: boots + time.Second})(w)
			blow("add-machine", planetest.DieAfter)(w)
			wantRest(t, w, want, roll(t, w, want))
			if w.Made() != 2*machines {
				t.Fatalf("%d machines were made, and %d would have done\n%s", w.Made()-machines, machines, strings.Join(w.Story, "\n"))
			}
		}
	}
}

// Whoever dies while it joins, at whatever phase, is replaced; but a machine that dies once it votes beside one other takes
// the quorum with it, which nobody can prevent.
func TestAMachineDiesWhileItJoins(t *testing.T) {
	t.Parallel()
	for _, machines := range some(2, []int{1, 5, 3}) {
		for phase := planetest.Preflight; phase <= planetest.Rising; phase++ {
			for how, fate := range map[string]planetest.Fate{"dies": {Dies: phase}, "fails": {Fails: phase}} {
				if machines == 1 && phase == planetest.Rising && how == "dies" {
					continue
				}
				t.Run(fmt.Sprintf("%d-%s-%d", machines, how, phase), func(t *testing.T) {
					t.Parallel()
					w, want := newPlane(machines), newImage(machines)
					w.Fates[fmt.Sprintf("seed-cp-%d", machines+1)] = fate
					wantRest(t, w, want, roll(t, w, want))
				})
			}
		}
	}
}

// A learner is promoted after a step was decided and before it acts.
func TestAMachineIsPromotedBetweenLookAndAct(t *testing.T) {
	t.Parallel()
	for _, machines := range []int{1, 3} {
		for _, step := range []string{"give-up-machine", "delete-credentials", "remove-stray-member", "add-placeholder-learner", "destroy-machine"} {
			t.Run(fmt.Sprintf("%d-%s", machines, step), func(t *testing.T) {
				t.Parallel()
				w, want := newPlane(machines), newImage(machines)
				fate(planetest.Fate{PromotedBy: step})(w)
				wantRest(t, w, want, roll(t, w, want))
			})
		}
	}
}

// Whatever machine leads etcd when, also the one that goes, in the middle of its removal.
func TestTheLeaderIsAnywhere(t *testing.T) {
	t.Parallel()
	want := newImage(3)
	for _, step := range []string{"mark-leaving", "cordon", "drain", "await-detached", "leave-endpoint", "remove-member"} {
		for _, leader := range some(3, []string{"seed-cp-1", "seed-cp-2", "seed-cp-3", "seed-cp-4", "seed-cp-5"}) {
			w := newPlane(3)
			w.Strike = func(_ int, what string) planetest.Blow {
				if strings.HasPrefix(what, step) {
					w.Elect(leader)
				}
				return planetest.NoBlow
			}
			wantRest(t, w, want, roll(t, w, want))
		}
	}
}

// A stall from what is seen ends when it is seen no more: here a budget.
func TestABudgetLetsGoAfterAll(t *testing.T) {
	t.Parallel()
	w, want := newPlane(3), newImage(3)
	hold("db-2", 20*time.Minute)(w)
	if report := roll(t, w, want); report.Outcome != status.Stalled || report.Failure.Reason != "DrainBlocked" {
		t.Fatalf("ended with %s: %s", report.Outcome.Reason(), report.Why)
	}
	w.Pass(10 * time.Minute)
	wantRest(t, w, want, roll(t, w, want))
}
