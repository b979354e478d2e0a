// SPDX-License-Identifier: Apache-2.0

package reconcile

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/theseus-gitops/theseus/reconcile/live"
	"github.com/theseus-gitops/theseus/reconcile/logbook"
	"github.com/theseus-gitops/theseus/reconcile/rollout"
	"github.com/theseus-gitops/theseus/reconcile/status"
)

// Limits of one roll's patience with a world that does not answer.
const (
	// maxConflicts is how often in a row a decision may be taken again because somebody else wrote first.
	maxConflicts = 5
	// maxRetries is how often in a row a step may be tried again after an error that may pass.
	maxRetries = 2
	// planeRetries is the same while machines are replaced: API servers come and go then, and a minute without an answer
	// is no reason to leave a control plane half way.
	planeRetries = 20
	retryAfter   = 3 * time.Second
)

// Roller brings one cluster to what its spec wants, step by step, as far as this pass gets.
type Roller struct {
	Want     rollout.Want
	Target   Target
	Report   status.Report // what is known before the cluster was looked at
	Announce func(ctx context.Context, r status.Report) error
	// Superseded asks whether the spec wants something else by now; nil when nobody can tell.
	Superseded func(ctx context.Context) bool
	Progress   Progress
	Now        func() time.Time
	Sleep      func(ctx context.Context, d time.Duration) error
	// PollEvery is the pause between two looks while something is awaited.
	PollEvery time.Duration
	// Stop is closed when the process is asked to end: the step under way is finished, no other is begun.
	Stop <-chan struct{}
	// Until is when no further step is begun, the zero time for never.
	Until time.Time
}

// roll is the state of one Roll; all of it can be observed again.
type roll struct {
	*Roller
	lock  Lock
	have  live.Cluster // Kube is never nil
	trail trail
	// conflicts and retries count failures in a row.
	conflicts, retries int
	waitingFor         string
	// milestone tells that the newest step is worth a status commit.
	milestone bool
	// asked is when Superseded was asked last.
	asked time.Time
	// lockedSince is when the first step began that may have left Terraform's state locked; zero when none may have.
	lockedSince time.Time
}

func newRoll(r *Roller) *roll { return &roll{Roller: r, have: live.Cluster{Kube: &live.Kube{}}} }

// Roll looks, and acts when there is something to do. A cluster that is as wanted is not written to, not even its Lease.
func (r *Roller) Roll(ctx context.Context) status.Report {
	s := newRoll(r)
	decision, err := s.look(ctx)
	if err != nil {
		return s.failed(err)
	}
	if s.idle(decision) {
		return s.report(decision)
	}
	s.lock, err = r.Target.Locker.Lock(ctx, s.have.Kube.Book.Fence)
	if err != nil {
		return s.failed(err)
	}
	defer func() {
		// Released even when ctx has ended; a Lease that stays only makes the next runner wait.
		release, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
		defer cancel()
		_ = s.lock.Release(release)
	}()
	if decision, err = s.look(ctx); err != nil {
		return s.failed(err)
	}
	return s.work(ctx, decision)
}

// idle reports whether nothing is to be written: no step to do, and no roll to end.
func (s *roll) idle(decision rollout.Decision) bool {
	if s.have.Kube.Book.Roll != nil {
		return false
	}
	_, do := decision.(rollout.Do)
	return !do
}

// look observes and decides.
func (s *roll) look(ctx context.Context) (rollout.Decision, error) {
	have, err := s.Target.Observer.Observe(ctx)
	if err != nil {
		return nil, err
	}
	s.have = have
	if s.lock != nil && have.Kube.Book.Fence > s.lock.Fence() {
		return nil, &LockedError{} // a run with a newer lock has written since
	}
	return rollout.Next(s.Want, s.have, s.Now()), nil
}

// work does what is decided until there is an end to report.
func (s *roll) work(ctx context.Context, decision rollout.Decision) status.Report {
	for {
		s.tellMilestone(ctx, decision)
		if s.superseded(ctx, decision) {
			return s.leave(ctx, decision)
		}
		end, err := s.act(ctx, decision)
		if end != nil {
			return *end
		}
		if err == nil {
			decision, err = s.look(ctx)
		}
		for err != nil {
			if !s.goOn(ctx, err) {
				return s.failed(err)
			}
			decision, err = s.look(ctx)
		}
	}
}

// askEvery is how often the branch is asked in the middle of a roll: a person who reverts a commit wants it to be soon.
const askEvery = 30 * time.Second

// superseded reports whether the roll is to be left, because the spec wants something else by now and there is still something
// to do. Every place between two steps is good enough: the next pass goes on from wherever it is, under the new spec.
func (s *roll) superseded(ctx context.Context, decision rollout.Decision) bool {
	switch decision.(type) {
	case rollout.Done, rollout.Stalled:
		return false
	case rollout.Do, rollout.Wait:
	}
	if s.asked.IsZero() {
		s.asked = s.Now() // the specs were read just now
	}
	if s.Superseded == nil || s.Now().Sub(s.asked) < askEvery {
		return false
	}
	s.asked = s.Now()
	return s.Superseded(ctx)
}

// leave ends the pass over a cluster whose spec has changed meanwhile.
func (s *roll) leave(ctx context.Context, decision rollout.Decision) status.Report {
	report := s.pause(ctx, decision)
	report.Why = "the spec was changed meanwhile; the next pass goes on from here, as it says then"
	return report
}

// tellMilestone commits status after a machine has come or gone. A push that fails does not stop the roll: the next one has it too.
func (s *roll) tellMilestone(ctx context.Context, decision rollout.Decision) {
	if s.milestone {
		s.milestone = false
		_ = s.Announce(ctx, s.report(decision))
	}
}

// act does one decision. It gives the report when that ends the pass over this cluster.
func (s *roll) act(ctx context.Context, decision rollout.Decision) (*status.Report, error) {
	ended := func(r status.Report) (*status.Report, error) { return &r, nil }
	switch d := decision.(type) {
	case rollout.Do:
		if s.outOfTime() {
			return ended(s.pause(ctx, decision))
		}
		return nil, s.do(ctx, d.Step)
	case rollout.Wait:
		if s.outOfTime() || d.ResumedBy == rollout.AwaitedNothing || s.wait(ctx, d) != nil {
			return ended(s.pause(ctx, decision))
		}
		if s.lost(d) {
			return ended(s.end(ctx, rollout.Stalled{Failure: *d.Else}, false))
		}
	case rollout.Stalled:
		return ended(s.end(ctx, decision, d.Remembered))
	case rollout.Done:
		return ended(s.end(ctx, decision, true))
	}
	return nil, nil // neither an end nor an error: look again
}

// goOn reports whether an error is worth another look now, and pauses before it.
func (s *roll) goOn(ctx context.Context, err error) bool {
	var locked *LockedError
	var failure *rollout.Failure
	var unannounced *unannouncedError
	if errors.As(err, &locked) || errors.As(err, &failure) || errors.As(err, &unannounced) || ctx.Err() != nil || s.outOfTime() {
		return false
	}
	if errors.Is(err, rollout.ErrConflict) {
		s.conflicts++
		return s.conflicts <= maxConflicts
	}
	most := maxRetries
	if s.Want.Plane != nil && s.have.Kube.Book.Roll != nil {
		most = planeRetries
	}
	s.retries++
	return s.retries <= most && s.Sleep(ctx, retryAfter) == nil
}

// outOfTime reports whether no further step may be begun.
func (s *roll) outOfTime() bool {
	select {
	case <-s.Stop:
		return true
	default:
		return !s.Until.IsZero() && s.Now().After(s.Until)
	}
}

// pause ends the pass in the middle of a roll: the next one goes on with it.
func (s *roll) pause(ctx context.Context, decision rollout.Decision) status.Report {
	s.trail.waited(s.Now())
	report := s.report(decision)
	if s.have.Kube.Book.Roll == nil || len(s.trail.fresh()) == 0 {
		return report
	}
	// Only the report's steps depend on it: a failure here is no reason to call the pass failed.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer cancel()
	_ = s.writeBook(ctx, s.have.Kube.Book)
	return report
}

// wait pauses until the next look.
func (s *roll) wait(ctx context.Context, w rollout.Wait) error {
	s.trail.waits(w, s.Now())
	if w.Why != s.waitingFor {
		s.waitingFor = w.Why
		s.Progress.Event(Event{Cluster: s.Report.Cluster, Kind: WaitBegun, Text: w.Why})
	}
	pause, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		select {
		case <-s.Stop:
			cancel()
		case <-pause.Done():
		}
	}()
	if err := s.Sleep(pause, s.PollEvery); err != nil && ctx.Err() != nil {
		return fmt.Errorf("waiting: %w", err)
	}
	return nil
}

// lost reports whether a wait that begins anew with every look has lasted longer than it may.
func (s *roll) lost(w rollout.Wait) bool {
	patience := w.Until.Sub(s.Now())
	return w.Else != nil && patience > 0 && s.trail.waitedSoFar(s.Now()) >= patience
}

// end closes the roll in the logbook, when there is one and it is over, and reports.
func (s *roll) end(ctx context.Context, decision rollout.Decision, over bool) status.Report {
	s.trail.waited(s.Now())
	report := s.report(decision)
	if s.have.Kube.Book.Roll == nil || !over {
		return report
	}
	report.Finished = s.history(report)
	// The report first: a crash between the two repeats the report, which is harmless; the other way it would be lost.
	announced := s.Announce(ctx, report)
	book := s.have.Kube.Book
	book.Roll = nil
	if _, done := decision.(rollout.Done); done {
		// Originals and counts are kept after a failure: the way back may need them. So may it whose lock was left.
		book.ConvergedSince, book.FailedTarget, book.Originals, book.Attempts, book.LockHolders = s.Now(), nil, nil, nil, nil
	}
	if err := s.writeBook(ctx, book); err != nil {
		return s.failed(err)
	}
	if announced != nil {
		report.Notices = append(report.Notices, "status: "+announced.Error())
	}
	return report
}

// writeBook writes the logbook under the version that was observed.
func (s *roll) writeBook(ctx context.Context, book logbook.Book) error {
	book.Fence, book.Owner, book.Roll = s.lock.Fence(), s.Want.Owner, s.trail.into(book.Roll)
	version, err := s.Target.Books.WriteBook(ctx, s.have.Kube.BookVersion, book)
	if err != nil {
		return err
	}
	s.trail.written = len(s.trail.steps)
	s.have.Kube.Book, s.have.Kube.BookVersion = book, version
	return nil
}
