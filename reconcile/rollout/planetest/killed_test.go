// SPDX-License-Identifier: Apache-2.0

package planetest_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/theseus-gitops/theseus/reconcile/rollout"
	"github.com/theseus-gitops/theseus/reconcile/rollout/planetest"
	"github.com/theseus-gitops/theseus/reconcile/status"
)

// write is one that a roll without faults makes.
type write struct {
	at   int
	what string
}

// writesOf are all writes of a roll, in their order.
func writesOf(t *testing.T, want rollout.Want) []write {
	t.Helper()
	var out []write
	w := worldFor(want)
	w.Strike = func(n int, what string) planetest.Blow {
		out = append(out, write{n, what})
		return planetest.NoBlow
	}
	wantRest(t, w, want, roll(t, w, want))
	return out
}

func (w write) terraform() bool {
	return strings.HasPrefix(w.what, "add-machine") || strings.HasPrefix(w.what, "destroy-machine")
}

// struck is the world and the end of a roll that a blow befell.
func struck(t failer, want rollout.Want, at int, blow planetest.Blow) (*planetest.Plane, status.Report) {
	t.Helper()
	w := worldFor(want)
	w.Strike = func(n int, _ string) planetest.Blow {
		if n == at {
			return blow
		}
		return planetest.NoBlow
	}
	return w, roll(t, w, want)
}

// Whatever write a process is killed at, before it or after it, and whatever write fails, before it took effect, after or half
// way: the plane gets where it was to get, with nothing left over, and on its way never was where it must not be.
func TestAPlaneKilledAnywhere(t *testing.T) {
	t.Parallel()
	anything := func(write) bool { return true }
	blows := map[string]struct {
		blow    planetest.Blow
		befalls func(w write) bool
	}{
		"killed-before": {planetest.DieBefore, anything}, "killed-after": {planetest.DieAfter, anything},
		"fails": {planetest.FailBefore, anything}, "answer-lost": {planetest.FailAfter, anything},
		"half-made": {planetest.FailHalf, write.terraform}, "tainted": {planetest.FailTainted, write.terraform},
		"killed-at-terraform": {planetest.DieAmid, write.terraform},
	}
	for _, machines := range []int{1, 3} {
		for name, want := range wants(machines) {
			writes := writesOf(t, want)
			for how, b := range blows {
				t.Run(fmt.Sprintf("%d-%s-%s", machines, name, how), func(t *testing.T) {
					t.Parallel()
					befallen := slices.DeleteFunc(slices.Clone(writes), func(w write) bool { return !b.befalls(w) })
					for _, at := range some(8*machines, befallen) {
						w, report := struck(t, want, at.at, b.blow)
						wantRest(t, w, want, report)
					}
				})
			}
		}
	}
}
