// SPDX-License-Identifier: Apache-2.0

package planetest_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/theseus-gitops/theseus/reconcile/rollout"
	"github.com/theseus-gitops/theseus/reconcile/rollout/planetest"
)

// The spec changes at any moment, also back; passes end at any moment, are killed at any write, and any write fails; machines
// come late, fail, stay learners, die; etcd elects whom it likes; budgets hold pods for a while. At every second the promises of
// the world hold, and once all is quiet, the plane comes to rest as the spec then says.
func TestAnyHistoryOfAPlaneComesToRest(t *testing.T) {
	t.Parallel()
	const enough = 30 // histories, without -all
	rested, broke := 0, false
	rapid.Check(t, func(rt *rapid.T) {
		if rested >= enough && !broke && !*all {
			return
		}
		defer func() { broke = broke || rt.Failed() }()
		machines := rapid.SampledFrom(some(3, []int{1, 1, 5, 3})).Draw(rt, "machines")
		specs := wants(machines)
		specs["as it was"] = wantPlane(machines)
		names := slices.Sorted(maps.Keys(specs))
		if machines > 1 {
			names = slices.DeleteFunc(names, func(n string) bool { return n == "no-surge" })
		}
		w := newPlane(machines)
		for i := range 4 {
			w.Fates[fmt.Sprintf("seed-cp-%d", machines+1+i)] = anyFate(rt, machines)
		}
		for i := range rapid.IntRange(1, 3).Draw(rt, "passes") {
			name := rapid.SampledFrom(names).Draw(rt, "spec")
			w.Tell("# the spec: %s", name)
			want := specs[name]
			want.Revision = fmt.Sprintf("%s-%d", name, i)
			strikes(rt, w, machines)
			until := w.Now.Add(time.Duration(rapid.IntRange(1, 900).Draw(rt, "seconds")) * time.Second)
			pass(w, want, until)
			w.Strike = nil
			w.Pass(time.Duration(rapid.IntRange(0, 600).Draw(rt, "pause")) * time.Second)
		}
		quiet(rt, w, specs, rapid.SampledFrom(names).Draw(rt, "last"))
		rested++
	})
}

// anyFate is a machine's; half of them have none.
func anyFate(rt *rapid.T, machines int) planetest.Fate {
	var f planetest.Fate
	phase := planetest.Phase(rapid.IntRange(int(planetest.Preflight), int(planetest.Rising)).Draw(rt, "phase"))
	switch rapid.IntRange(0, 9).Draw(rt, "fate") {
	case 0:
		f.Boots = time.Duration(rapid.IntRange(1, 1200).Draw(rt, "boots")) * time.Second
		f.Takes = time.Duration(rapid.IntRange(1, 60).Draw(rt, "takes")) * time.Second
	case 1:
		f.Fails = phase
	case 2:
		f.Dies = phase
		if machines == 1 {
			f.Dies = min(phase, planetest.CatchingUp)
		}
	case 3:
		f.StaysLearner = true
	case 4:
		f.PromotedBy = rapid.SampledFrom([]string{"give-up-machine", "remove-stray-member", "add-placeholder-learner", "destroy-machine"}).Draw(rt, "promoted by")
	}
	return f
}

// strikes befall some of a pass's writes.
func strikes(rt *rapid.T, w *planetest.Plane, machines int) {
	blows := map[int]planetest.Blow{}
	for range rapid.IntRange(0, 2).Draw(rt, "strikes") {
		at := rapid.IntRange(1, 40).Draw(rt, "at")
		blows[at] = planetest.Blow(rapid.IntRange(int(planetest.FailBefore), int(planetest.FailTainted)).Draw(rt, "blow"))
	}
	elects, leader := rapid.IntRange(1, 40).Draw(rt, "elects"), rapid.IntRange(1, machines+3).Draw(rt, "leader")
	held := rapid.IntRange(1, machines).Draw(rt, "held")
	hold := time.Duration(rapid.IntRange(0, 900).Draw(rt, "hold")) * time.Second
	n := 0
	w.Strike = func(_ int, what string) planetest.Blow {
		n++
		if n == elects {
			w.Elect(fmt.Sprintf("seed-cp-%d", leader))
			w.Hold(fmt.Sprintf("db-%d", held), w.Now.Add(hold))
		}
		b := blows[n]
		if b >= planetest.DieAmid && !(write{what: what}).terraform() || b == planetest.DieAmid && strings.HasPrefix(what, "add") {
			return planetest.NoBlow // a machine that Terraform lost is for a person to find
		}
		return b
	}
}

// quiet lets a plane come to rest.
func quiet(rt *rapid.T, w *planetest.Plane, specs map[string]rollout.Want, name string) {
	w.Fates = map[string]planetest.Fate{}
	w.Pass(time.Hour)
	w.Tell("# at last the spec: %s", name)
	want := specs[name]
	want.Revision = "last"
	report := roll(rt, w, want)
	if report.Failure != nil && report.Failure.Reason == "MinorDowngrade" {
		want = specs["version"]
		want.Revision = "the very last"
		report = roll(rt, w, want)
	}
	wantRest(rt, w, want, report)
}
