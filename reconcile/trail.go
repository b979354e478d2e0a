// SPDX-License-Identifier: Apache-2.0

package reconcile

import (
	"slices"
	"time"

	"github.com/theseus-gitops/theseus/reconcile/logbook"
	"github.com/theseus-gitops/theseus/reconcile/rollout"
	"github.com/theseus-gitops/theseus/reconcile/status"
)

// keptSteps bounds the steps that a roll remembers: the newest of a roll that was begun and stopped very often.
const keptSteps = 500

// waitStep is the name under which waiting stands among the steps: without it a roll's durations would not add up.
const waitStep = "wait"

// trail is what a roll did, over all the passes that worked on it. It goes to the logbook with whatever is written there
// and when a pass ends in the middle; what a killed pass did after the last writing is not known to the next one.
type trail struct {
	steps []logbook.TakenStep
	// written is how many of steps the logbook holds.
	written int
	// waitingSince is when the present wait began, zero when nothing is waited for.
	waitingSince time.Time
	waitingOn    string
}

// done adds a step, and the wait that came before it.
func (t *trail) done(step rollout.Step, began time.Time, took time.Duration) {
	t.waited(began)
	t.add(step.Name(), step.Subject, took)
}

// waits notes that a wait has begun or goes on.
func (t *trail) waits(w rollout.Wait, now time.Time) {
	if t.waitingSince.IsZero() {
		t.waitingSince, t.waitingOn = now, w.Subject
	}
}

// waitedSoFar is how long the present wait has lasted.
func (t *trail) waitedSoFar(now time.Time) time.Duration {
	if t.waitingSince.IsZero() {
		return 0
	}
	return now.Sub(t.waitingSince)
}

// waited ends the present wait, if there is one.
func (t *trail) waited(now time.Time) {
	if !t.waitingSince.IsZero() {
		t.add(waitStep, t.waitingOn, now.Sub(t.waitingSince))
		t.waitingSince = time.Time{}
	}
}

// add notes a step. One that is done again and again, as a drain is, stays one.
func (t *trail) add(name, subject string, took time.Duration) {
	if n := len(t.steps) - 1; n >= t.written && t.steps[n].Step == name && t.steps[n].Subject == subject {
		t.steps[n].Seconds += took.Seconds()
		return
	}
	t.steps = append(t.steps, logbook.TakenStep{Step: name, Subject: subject, Seconds: took.Seconds()})
}

// fresh are the steps that the logbook does not hold yet.
func (t *trail) fresh() []logbook.TakenStep { return t.steps[t.written:] }

// all are the roll's steps, the logbook's and those that it does not hold yet.
func (t *trail) all(begun *logbook.Roll) []logbook.TakenStep {
	var out []logbook.TakenStep
	if begun != nil {
		out = slices.Clone(begun.Steps)
	}
	out = append(out, t.fresh()...)
	return out[max(0, len(out)-keptSteps):]
}

// into is the roll with all its steps, for the logbook.
func (t *trail) into(begun *logbook.Roll) *logbook.Roll {
	if begun == nil {
		return nil
	}
	out := *begun
	out.Steps = t.all(begun)
	return &out
}

// counted is how many steps that is, waits left out.
func counted(steps []logbook.TakenStep) int {
	n := 0
	for _, s := range steps {
		if s.Step != waitStep {
			n++
		}
	}
	return n
}

// taken is a trail as status documents hold it.
func taken(steps []logbook.TakenStep) []status.TakenStep {
	var out []status.TakenStep
	for _, s := range steps {
		took := time.Duration(s.Seconds * float64(time.Second))
		out = append(out, status.TakenStep{Step: s.Step, Subject: s.Subject, Duration: status.Duration(took)})
	}
	return out
}
