// SPDX-License-Identifier: Apache-2.0

package rollout_test

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/theseus-gitops/theseus/reconcile/rollout"
	"github.com/theseus-gitops/theseus/reconcile/rollout/rollouttest"
)

// story is a roll that is told whole.
type story struct {
	name     string
	machines int
	want     func(machines int) rollout.Want
	// befalls prepares what goes wrong; nil for nothing.
	befalls func(w *rollouttest.Plane)
	// then is wanted after the first pass, nil for the same.
	then func(machines int) rollout.Want
	// ends is how it ends, "" for as wanted, with nothing left over.
	ends string
}

// at has something happen once, when a write begins.
func at(w *rollouttest.Plane, what string, happens func() rollouttest.Blow) {
	before := w.Strike
	done := false
	w.Strike = func(n int, now string) rollouttest.Blow {
		if !done && strings.HasPrefix(now, what) {
			done = true
			return happens()
		}
		if before != nil {
			return before(n, now)
		}
		return rollouttest.NoBlow
	}
}

// blow befalls a write once.
func blow(what string, b rollouttest.Blow) func(w *rollouttest.Plane) {
	return func(w *rollouttest.Plane) { at(w, what, func() rollouttest.Blow { return b }) }
}

// fate befalls the first machine that is made.
func fate(f rollouttest.Fate) func(w *rollouttest.Plane) {
	return func(w *rollouttest.Plane) {
		for _, name := range []string{"seed-cp-2", "seed-cp-4"} { // beside one machine, and beside three
			w.Fates[name] = f
		}
	}
}

// hold has a budget keep a pod for a time from its machine's cordon on.
func hold(pod string, d time.Duration) func(w *rollouttest.Plane) {
	return func(w *rollouttest.Plane) {
		at(w, "cordon", func() rollouttest.Blow { w.Hold(pod, w.Now.Add(d)); return rollouttest.NoBlow })
	}
}

func stories() []story {
	return []story{
		{name: "one-image", machines: 1, want: newImage},
		{name: "one-version", machines: 1, want: newVersion},
		{name: "three-version", machines: 3, want: newVersion},
		{name: "five-image", machines: 5, want: newImage},
		{name: "never-joins", machines: 3, want: newImage, befalls: fate(rollouttest.Fate{Fails: rollouttest.Preflight})},
		{name: "never-joins-beside-one", machines: 1, want: newImage, befalls: fate(rollouttest.Fate{Fails: rollouttest.Preflight})},
		{name: "none-ever-joins", machines: 3, want: newImage, ends: "MachinesFailed", befalls: func(w *rollouttest.Plane) {
			fate(rollouttest.Fate{Fails: rollouttest.Preflight})(w)
			w.Fates["seed-cp-5"] = rollouttest.Fate{Fails: rollouttest.Preflight}
		}},
		{name: "joins-late", machines: 3, want: newImage, befalls: fate(rollouttest.Fate{Boots: 30 * time.Minute})},
		{name: "joins-while-it-is-destroyed", machines: 1, want: newImage, befalls: fate(rollouttest.Fate{Boots: 35*time.Minute - 8*time.Second})},
		{name: "dies-while-joining", machines: 3, want: newImage, befalls: fate(rollouttest.Fate{Dies: rollouttest.CatchingUp})},
		{name: "dies-once-it-votes", machines: 3, want: newImage, befalls: fate(rollouttest.Fate{Dies: rollouttest.Rising})},
		{name: "stays-a-learner", machines: 1, want: newImage, befalls: fate(rollouttest.Fate{StaysLearner: true})},
		{name: "promoted-before-it-is-removed", machines: 1, want: newImage, befalls: fate(rollouttest.Fate{PromotedBy: "remove-stray-member"})},
		{name: "a-budget-lets-go", machines: 3, want: newImage, befalls: hold("db-2", 5*time.Minute)},
		{name: "a-budget-never-lets-go", machines: 3, want: newImage, ends: "DrainBlocked", befalls: hold("db-2", 24*time.Hour)},
		{name: "the-leader-comes-back", machines: 3, want: newImage, befalls: func(w *rollouttest.Plane) {
			at(w, "cordon seed-cp-1", func() rollouttest.Blow { w.Elect("seed-cp-1"); return rollouttest.NoBlow })
			at(w, "leave-endpoint seed-cp-1", func() rollouttest.Blow { w.Elect("seed-cp-1"); return rollouttest.NoBlow })
		}},
		{name: "it-runs-on-a-machine-that-goes", machines: 3, want: newImage, befalls: func(w *rollouttest.Plane) { w.RunsOn = "seed-cp-2" }},
		{name: "a-machine-is-dead-before", machines: 3, want: newImage, befalls: func(w *rollouttest.Plane) { w.Least = 2; w.Die("seed-cp-3"); w.Pass(time.Minute) }},
		{name: "reverted-while-it-joins", machines: 1, want: newImage, then: wantPlane, befalls: func(w *rollouttest.Plane) {
			blow("add-machine", rollouttest.DieAfter)(w)
		}},
		{name: "reverted-once-it-leaves", machines: 3, want: newImage, then: wantPlane, befalls: blow("drain", rollouttest.DieAfter)},
		{name: "reverted-once-it-left", machines: 3, want: newImage, then: wantPlane, befalls: blow("remove-member", rollouttest.DieBefore)},
		{name: "killed-between-removal-and-destruction", machines: 1, want: newImage, befalls: blow("remove-member", rollouttest.DieAfter)},
		{name: "killed-while-terraform-makes-it", machines: 3, want: newImage, befalls: blow("add-machine", rollouttest.DieAmid)},
		{name: "killed-while-terraform-destroys-it", machines: 3, want: newImage, befalls: blow("destroy-machine", rollouttest.DieAmid)},
		{name: "terraform-fails-half-way", machines: 3, want: newImage, befalls: func(w *rollouttest.Plane) {
			blow("add-machine", rollouttest.FailHalf)(w)
			blow("destroy-machine seed-cp-3", rollouttest.FailHalf)(w)
		}},
		{name: "made-and-tainted", machines: 3, want: newImage, befalls: blow("add-machine", rollouttest.FailTainted)},
		{name: "answers-are-lost", machines: 1, want: newImage, befalls: func(w *rollouttest.Plane) {
			for _, what := range []string{"add-machine", "remove-member", "destroy-machine"} {
				blow(what, rollouttest.FailAfter)(w)
			}
		}},
	}
}

// Whole rolls with what befalls them. A change of the decision shows here as a change of a story.
func TestPlaneStories(t *testing.T) {
	t.Parallel()
	for _, s := range stories() {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			w, want := newPlane(s.machines), s.want(s.machines)
			if s.befalls != nil {
				s.befalls(w)
			}
			if s.then != nil {
				pass(w, want, time.Time{})
				want = s.then(s.machines)
				w.Tell("# the spec goes back to %s", want.Plane.Image)
				w.Pass(time.Minute)
			}
			report := roll(t, w, want)
			if s.ends == "" {
				wantRest(t, w, want, report)
			} else if report.Failure == nil || report.Failure.Reason != s.ends {
				t.Fatalf("ended with %s: %s, want %s\n%s", report.Outcome.Reason(), report.Why, s.ends, strings.Join(w.Story, "\n"))
			}
			golden(t, filepath.Join("testdata", "planes", s.name+".txt"), strings.Join(w.Story, "\n")+"\n")
		})
	}
}
