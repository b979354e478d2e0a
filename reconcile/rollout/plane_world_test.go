// SPDX-License-Identifier: Apache-2.0

package rollout_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/theseus-gitops/theseus/reconcile/logbook"
	"github.com/theseus-gitops/theseus/reconcile/rollout"
	"github.com/theseus-gitops/theseus/reconcile/rollout/rollouttest"
)

// driver runs passes over a world as package reconcile does: it begins a roll in the logbook, writes what a step remembers before
// and after it, looks again after each, and waits with the patience that a wait says.
type driver struct {
	tb    testing.TB
	w     *rollouttest.Plane
	want  rollout.Want
	point int // writes and acts so far
	// at says what happens at a point, before it and after it.
	at     func(point int, before bool) error
	waited string
	since  time.Time
}

var errKilled = errors.New("killed")

// errFails is an answer that never came, or a failure: worth another look.
var errFails = errors.New("no answer")

const (
	planePoll    = 10 * time.Second
	betweenSlots = 5 * time.Minute
	// mostDecisions is more than any pass takes.
	mostDecisions = 2000
)

// pass runs until there is an end; nil when it was killed.
func (d *driver) pass() rollout.Decision {
	d.waited = ""
	failures := 0
	for range mostDecisions {
		d.invariants()
		decision := rollout.Next(d.want, d.w.Observe(), d.w.Now)
		end, err := d.act(decision)
		switch {
		case errors.Is(err, errKilled):
			d.w.Die()
			return nil
		case err != nil && !errors.Is(err, rollout.ErrConflict):
			if failures++; failures > 20 {
				d.w.Tell("# gave up after %d failures: %v", failures, err)
				return decision
			}
			d.w.Pass(3 * time.Second)
		case end:
			d.w.Die()
			return decision
		case err == nil:
			failures = 0
		}
	}
	d.tb.Fatalf("no end within %d decisions:\n%s", mostDecisions, d.story())
	return nil
}

func (d *driver) story() string { return strings.Join(d.w.Story, "\n") }

func (d *driver) act(decision rollout.Decision) (end bool, _ error) {
	switch is := decision.(type) {
	case rollout.Do:
		d.waited = ""
		return false, d.do(is.Step)
	case rollout.Wait:
		return d.wait(is), nil
	case rollout.Stalled:
		d.w.Tell("stalled                    %s: %s", is.Failure.Reason, is.Failure.Message)
		return true, nil
	case rollout.Done:
		d.w.Tell("done                       %s", is.Why)
		book := d.w.Book
		book.Roll, book.FailedTarget, book.Originals, book.Attempts = nil, nil, nil, nil
		d.w.WriteBook(book)
		return true, nil
	}
	return true, nil
}

// wait lets time pass, up to the wait's own patience.
func (d *driver) wait(w rollout.Wait) (end bool) {
	if w.Why != d.waited {
		d.w.Tell("  wait                     %s", w.Why)
		d.waited, d.since = w.Why, d.w.Now
	}
	if w.ResumedBy == rollout.AwaitedNothing {
		return true
	}
	if w.Else != nil && d.w.Now.Sub(d.since) >= w.Until.Sub(d.w.Now) {
		d.w.Tell("stalled                    %s: %s", w.Else.Reason, w.Else.Message)
		return true
	}
	d.w.Pass(planePoll)
	return false
}

// do carries out a step: logbook, act, logbook. Each is a point at which something may go wrong, before it or after it.
func (d *driver) do(step rollout.Step) error {
	if d.w.Book.Roll == nil {
		return d.at1(func() error {
			book := d.w.Book
			book.Roll = &logbook.Roll{ID: "roll", Started: d.w.Now, Revision: d.want.Revision}
			d.w.WriteBook(book)
			return nil
		})
	}
	d.w.Tell("%-26s %-26s %s", step.Name(), step.Subject, step.Why)
	for _, part := range []func() error{
		func() error { return d.note(step.Before) },
		func() error { return d.at1(func() error { return d.w.Do(step.Act) }) },
		func() error {
			if step.After == nil {
				return nil
			}
			return d.note(step.After(d.w.Now))
		},
	} {
		if err := part(); err != nil {
			d.w.Tell("  # %v", err)
			return err
		}
		d.invariants()
	}
	d.w.Pass(time.Second)
	return nil
}

func (d *driver) note(book *logbook.Book) error {
	if book == nil {
		return nil
	}
	return d.at1(func() error {
		d.w.WriteBook(*book)
		return nil
	})
}

// at1 is one point.
func (d *driver) at1(do func() error) error {
	d.point++
	point := d.point
	if d.at != nil {
		if err := d.at(point, true); err != nil {
			return err
		}
	}
	err := do()
	if err == nil && d.at != nil {
		err = d.at(point, false)
	}
	return err
}

// invariants are what holds at every point (DESIGN, section 4).
func (d *driver) invariants() {
	all, running := d.w.Voters()
	if running <= all/2 {
		d.tb.Fatalf("%d of %d voters run: the quorum is lost\n%s", running, all, d.story())
	}
	if d.w.Serving() == 0 {
		d.tb.Fatalf("no API server answers\n%s", d.story())
	}
}

// converges runs passes until one ends well.
func (d *driver) converges() {
	const most = 12
	for n := range most {
		if n > 0 {
			d.w.Pass(betweenSlots)
			d.w.Tell("# pass %d", n+1)
		}
		if _, done := d.pass().(rollout.Done); done {
			d.atRest()
			return
		}
	}
	d.tb.Fatalf("not as wanted after %d passes:\n%s\n%s", most, d.story(), d.w.Describe())
}

// atRest requires that nothing is left of the way.
func (d *driver) atRest() {
	if left := d.w.Leftovers(); len(left) > 0 {
		d.tb.Fatalf("left: %v\n%s", left, d.story())
	}
	all, running := d.w.Voters()
	if n := d.want.Plane.Replicas; all != n || running != n || d.w.Serving() != n {
		d.tb.Fatalf("%d wanted; %d voters, %d run, %d machines serve\n%s\n%s", n, all, running, d.w.Serving(), d.story(), d.w.Describe())
	}
}

// rolls is a driver of a fresh plane and what it is to become.
func rolls(tb testing.TB, machines int, change func(w *rollout.WantPlane)) *driver {
	tb.Helper()
	d := &driver{tb: tb, w: rollouttest.NewPlane("seed", machines, noon, clusterConfiguration), want: wantPlane(machines)}
	change(d.want.Plane)
	return d
}

func newImage(w *rollout.WantPlane) { w.Image = "debian-13" }

func newVersion(w *rollout.WantPlane) {
	w.Kubernetes, w.Image, w.EtcdTag = version("v1.37.2"), "debian-13", "3.7.3-0"
}

func (d *driver) String() string { return fmt.Sprintf("%s\n%s", d.story(), d.w.Describe()) }
