// SPDX-License-Identifier: Apache-2.0

package rollout_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/theseus-gitops/theseus/reconcile/rollout"
	"github.com/theseus-gitops/theseus/reconcile/rollout/rollouttest"
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
	w.Strike = func(n int, what string) rollouttest.Blow {
		out = append(out, write{n, what})
		return rollouttest.NoBlow
	}
	wantRest(t, w, want, roll(t, w, want))
	return out
}

func (w write) terraform() bool {
	return strings.HasPrefix(w.what, "add-machine") || strings.HasPrefix(w.what, "destroy-machine")
}

// struck is the world and the end of a roll that a blow befell.
func struck(t failer, want rollout.Want, at int, blow rollouttest.Blow) (*rollouttest.Plane, status.Report) {
	t.Helper()
	w := worldFor(want)
	w.Strike = func(n int, _ string) rollouttest.Blow {
		if n == at {
			return blow
		}
		return rollouttest.NoBlow
	}
	return w, roll(t, w, want)
}

// Whatever write a process is killed at, before it or after it, and whatever write fails, before it took effect, after or half
// way: the plane gets where it was to get, with nothing left over, and on its way never was where it must not be.
func TestAPlaneKilledAnywhere(t *testing.T) {
	t.Parallel()
	anything := func(write) bool { return true }
	blows := map[string]struct {
		blow    rollouttest.Blow
		befalls func(w write) bool
	}{
		"killed-before": {rollouttest.DieBefore, anything}, "killed-after": {rollouttest.DieAfter, anything},
		"fails": {rollouttest.FailBefore, anything}, "answer-lost": {rollouttest.FailAfter, anything},
		"half-made": {rollouttest.FailHalf, write.terraform}, "tainted": {rollouttest.FailTainted, write.terraform},
		"killed-at-terraform": {rollouttest.DieAmid, write.terraform},
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
