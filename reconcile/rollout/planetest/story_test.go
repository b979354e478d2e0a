// SPDX-License-Identifier: Apache-2.0

package planetest_test

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/theseus-gitops/theseus/reconcile/rollout"
	"github.com/theseus-gitops/theseus/reconcile/rollout/planetest"
)

// story is a roll that is told whole.
type story struct {
	name     string
	tells    string
	machines int
	want     func(machines int) rollout.Want
	// befalls prepares what goes wrong; nil for nothing.
	befalls func(w *planetest.Plane)
	// then is wanted after the first pass, nil for the same.
	then func(machines int) rollout.Want
	// ends is how it ends, "" for as wanted, with nothing left over.
	ends string
}

// at has something happen once, when a write begins.
func at(w *planetest.Plane, what string, happens func() planetest.Blow) {
	before := w.Strike
	done := false
	w.Strike = func(n int, now string) planetest.Blow {
		if !done && strings.HasPrefix(now, what) {
			done = true
			return happens()
		}
		if before != nil {
			return before(n, now)
		}
		return planetest.NoBlow
	}
}

// blow befalls a write once.
func blow(what string, b planetest.Blow) func(w *planetest.Plane) {
	return func(w *planetest.Plane) { at(w, what, func() planetest.Blow { return b }) }
}

// fate befalls the first machine that is made.
func fate(f planetest.Fate) func(w *planetest.Plane) {
	return func(w *planetest.Plane) {
		for _, name := range []string{"seed-cp-2", "seed-cp-4"} { // beside one machine, and beside three
			w.Fates[name] = f
		}
	}
}

// hold has a budget keep a pod for a time from its machine's cordon on.
func hold(pod string, d time.Duration) func(w *planetest.Plane) {
	return func(w *planetest.Plane) {
		at(w, "cordon", func() planetest.Blow { w.Hold(pod, w.Now.Add(d)); return planetest.NoBlow })
	}
}

func stories() []story {
	return []story{
		{name: "one-image", tells: "one machine, another base image", machines: 1, want: newImage},
		{name: "one-version", tells: "one machine, another Kubernetes minor", machines: 1, want: newVersion},
		{name: "three-version", tells: "three machines, another Kubernetes minor", machines: 3, want: newVersion},
		{name: "five-image", tells: "five machines, another base image", machines: 5, want: newImage},
		{name: "never-joins", tells: "the first new machine never joins; the next one does", machines: 3, want: newImage, befalls: fate(planetest.Fate{Fails: planetest.Preflight})},
		{name: "never-joins-beside-one", tells: "the same beside one machine: a placeholder guards the way back, because nobody knows what a silent machine still does", machines: 1, want: newImage, befalls: fate(planetest.Fate{Fails: planetest.Preflight})},
		{name: "none-ever-joins", tells: "two new machines never join: the target is given up", machines: 3, want: newImage, ends: "MachinesFailed", befalls: func(w *planetest.Plane) {
			fate(planetest.Fate{Fails: planetest.Preflight})(w)
			w.Fates["seed-cp-5"] = planetest.Fate{Fails: planetest.Preflight}
		}},
		{name: "joins-late", tells: "the first new machine takes twelve minutes to boot", machines: 3, want: newImage, befalls: fate(planetest.Fate{Boots: 12 * time.Minute})},
		{name: "joins-while-it-is-destroyed", tells: "the first new machine is so late that it joins while it is being taken back: the placeholder keeps it out of etcd", machines: 1, want: newImage, befalls: fate(planetest.Fate{Boots: 15*time.Minute + time.Second, Takes: 8 * time.Second})},
		{name: "dies-while-joining", tells: "the first new machine dies as a learner", machines: 3, want: newImage, befalls: fate(planetest.Fate{Dies: planetest.CatchingUp})},
		{name: "dies-once-it-votes", tells: "the first new machine dies as soon as it votes", machines: 3, want: newImage, befalls: fate(planetest.Fate{Dies: planetest.Rising})},
		{name: "stays-a-learner", tells: "the first new machine is never promoted, beside one voter", machines: 1, want: newImage, befalls: fate(planetest.Fate{StaysLearner: true})},
		{name: "promoted-before-it-is-removed", tells: "the first new machine is promoted after its removal as a learner was decided", machines: 1, want: newImage, befalls: fate(planetest.Fate{PromotedBy: "remove-stray-member"})},
		{name: "a-budget-lets-go", tells: "a budget holds a pod of the first machine that goes, for five minutes", machines: 3, want: newImage, befalls: hold("db-2", 5*time.Minute)},
		{name: "a-budget-never-lets-go", tells: "a budget holds a pod of the first machine that goes for a day", machines: 3, want: newImage, ends: "DrainBlocked", befalls: hold("db-2", 24*time.Hour)},
		{name: "the-leader-comes-back", tells: "two elections bring leadership back to the machine that goes", machines: 3, want: newImage, befalls: func(w *planetest.Plane) {
			at(w, "cordon seed-cp-1", func() planetest.Blow { w.Elect("seed-cp-1"); return planetest.NoBlow })
			at(w, "leave-endpoint seed-cp-1", func() planetest.Blow { w.Elect("seed-cp-1"); return planetest.NoBlow })
		}},
		{name: "it-runs-on-a-machine-that-goes", tells: "the job itself runs on the first machine that goes", machines: 3, want: newImage, befalls: func(w *planetest.Plane) { w.RunsOn = "seed-cp-2" }},
		{name: "a-machine-is-dead-before", tells: "the newest machine is dead before the roll: it goes first, and its name never comes again", machines: 3, want: newImage, befalls: func(w *planetest.Plane) { w.Least = 2; w.Die("seed-cp-3"); w.Pass(time.Minute) }},
		{name: "reverted-while-it-joins", tells: "the spec is reverted while the first new machine joins", machines: 1, want: newImage, then: wantPlane, befalls: func(w *planetest.Plane) {
			blow("add-machine", planetest.DieAfter)(w)
		}},
		{name: "reverted-once-it-leaves", tells: "the spec is reverted once the first machine is drained", machines: 3, want: newImage, then: wantPlane, befalls: blow("drain", planetest.DieAfter)},
		{
			name: "reverted-once-it-leaves-without-surge", tells: "the spec is reverted once the first machine is drained, in a plane that shrinks first: it stays", machines: 3, want: noSurge,
			then:    func(machines int) rollout.Want { return withoutSurge(wantPlane(machines)) },
			befalls: blow("drain", planetest.DieAfter),
		},
		{name: "reverted-once-it-left", tells: "the spec is reverted once the API server of the first machine has ended", machines: 3, want: newImage, then: wantPlane, befalls: blow("remove-member", planetest.DieBefore)},
		{name: "killed-between-removal-and-destruction", tells: "the job is killed between the removal of the old member and the end of its machine", machines: 1, want: newImage, befalls: blow("remove-member", planetest.DieAfter)},
		{name: "killed-while-terraform-makes-it", tells: "the job is killed while Terraform makes the first machine, which joins without that anybody waits for it", machines: 3, want: newImage, befalls: blow("add-machine", planetest.DieAmid)},
		{name: "a-lost-machine-joins-later", tells: "the job is killed while Terraform makes the first machine, which joins when it was forgotten: a person has to look", machines: 1, want: newImage, ends: "UnknownMember", befalls: func(w *planetest.Plane) {
			fate(planetest.Fate{Boots: time.Second, Takes: 45 * time.Second})(w)
			blow("add-machine", planetest.DieAmid)(w)
		}},
		{name: "killed-while-terraform-destroys-it", tells: "the job is killed while Terraform destroys the first machine", machines: 3, want: newImage, befalls: blow("destroy-machine", planetest.DieAmid)},
		{name: "terraform-fails-half-way", tells: "Terraform fails half way: a machine that is asked for and not made, and one that is gone and still asked for", machines: 3, want: newImage, befalls: func(w *planetest.Plane) {
			blow("add-machine", planetest.FailHalf)(w)
			blow("destroy-machine seed-cp-3", planetest.FailHalf)(w)
		}},
		{name: "made-and-tainted", tells: "Terraform fails once the first machine is made: it is tainted, and joins all the same", machines: 3, want: newImage, befalls: blow("add-machine", planetest.FailTainted)},
		{name: "answers-are-lost", tells: "the answers to three steps are lost, and all three took effect", machines: 1, want: newImage, befalls: func(w *planetest.Plane) {
			for _, what := range []string{"add-machine", "remove-member", "destroy-machine"} {
				blow(what, planetest.FailAfter)(w)
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
			want := s.want(s.machines)
			w := worldFor(want)
			w.Story = []string{"# " + s.tells}
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
			golden(t, filepath.Join("testdata", "rolls", s.name+".txt"), strings.Join(w.Story, "\n")+"\n")
		})
	}
}
