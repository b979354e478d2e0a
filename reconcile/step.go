// SPDX-License-Identifier: Apache-2.0

package reconcile

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/theseus-gitops/theseus/reconcile/logbook"
	"github.com/theseus-gitops/theseus/reconcile/rollout"
)

// stepDeadline bounds a step that has begun and is no longer interrupted by a wish to stop.
const stepDeadline = 10 * time.Minute

// do carries out one step: the roll is begun if it is not yet, the lock checked right before.
func (s *roll) do(ctx context.Context, step rollout.Step) error {
	if s.have.Kube.Book.Roll == nil {
		// The step is decided again, because the logbook that it may bring must hold the roll.
		return s.begin(ctx, step)
	}
	if err := s.lock.Check(ctx); err != nil {
		return err
	}
	// A step that has begun is finished even when the process is asked to end.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cmp.Or(step.Limit, stepDeadline))
	defer cancel()
	began := s.Now()
	s.Progress.Event(Event{Cluster: s.Report.Cluster, Kind: StepStarted, Step: step})
	err := s.execute(ctx, step)
	took := s.Now().Sub(began)
	if err != nil {
		s.Progress.Event(Event{Cluster: s.Report.Cluster, Kind: StepFailed, Step: step, Took: took, Text: err.Error()})
		return s.giveUp(ctx, step, began, err)
	}
	s.conflicts, s.retries, s.waitingFor = 0, 0, ""
	s.trail.done(step, began, took)
	s.milestone = step.Milestone()
	s.Progress.Event(Event{Cluster: s.Report.Cluster, Kind: StepDone, Step: step, Took: took})
	return nil
}

// unannouncedError is a roll whose start could not be committed. The commit itself was tried as often as made sense.
type unannouncedError struct{ error }

func (e *unannouncedError) Error() string {
	return "the start of the roll can't be committed, so it is not begun: " + e.error.Error()
}

func (e *unannouncedError) Unwrap() error { return e.error }

// begin writes the start of the roll: to Git first, because a roll that nobody can read about is not begun,
// then to the logbook.
func (s *roll) begin(ctx context.Context, first rollout.Step) error {
	report := s.report(rollout.Do{Step: first})
	if err := s.Announce(ctx, report); err != nil {
		return &unannouncedError{err}
	}
	now := s.Now()
	book := s.have.Kube.Book
	book.Roll = &logbook.Roll{
		ID:      now.UTC().Format("20060102T150405Z") + "-" + s.Want.Revision[:min(8, len(s.Want.Revision))],
		Started: now, Revision: s.Want.Revision, From: versionsOf(s.have),
	}
	book.ConvergedSince = time.Time{}
	return s.writeBook(ctx, book)
}

// before is what the logbook is to hold before a step, nil when it needs no change. A step that locks Terraform's state is
// entered with its time, because a lock that is left when this process is killed says no more of whose it is.
func (s *roll) before(step rollout.Step) *logbook.Book {
	if s.Target.Holder == nil || !step.LocksState() {
		return step.Before
	}
	book := s.have.Kube.Book
	if step.Before != nil {
		book = *step.Before
	}
	holder, now := s.Target.Holder(), s.Now()
	if s.lockedSince.IsZero() {
		s.lockedSince = now
	}
	holder.Since, holder.Until = s.lockedSince, now.Add(cmp.Or(step.Limit, stepDeadline))
	book.LockHolders = book.Held(holder)
	return &book
}

// execute does what belongs to the logbook itself and hands the rest to the cluster's executor. What must be remembered of
// a step is written before it, so that a crash in between leaves no trace that nobody knows of.
func (s *roll) execute(ctx context.Context, step rollout.Step) error {
	if book := s.before(step); book != nil {
		if err := s.writeBook(ctx, *book); err != nil {
			return err
		}
	}
	if err := s.carryOut(ctx, step); err != nil {
		return err
	}
	if step.LocksState() {
		s.lockedSince = time.Time{} // what has worked has left no lock
	}
	if step.After != nil {
		return s.writeBook(ctx, *step.After(s.Now()))
	}
	return nil
}

func (s *roll) carryOut(ctx context.Context, step rollout.Step) error {
	switch act := step.Act.(type) {
	case rollout.RecordFailure:
		book := s.have.Kube.Book
		book.FailedTarget = &act.Failed
		return s.writeBook(ctx, book)
	case rollout.SyncDNSConfig:
		if act.Original != "" {
			book := s.have.Kube.Book
			book.Originals = &logbook.Originals{KubeadmConfig: act.Original}
			if err := s.writeBook(ctx, book); err != nil {
				return err
			}
		}
	case rollout.Note:
		return nil
	default:
	}
	return s.Target.Executor.Execute(ctx, step)
}

// giveUp remembers a failed target, so that neither this pass nor the next tries it again; other errors it hands on.
func (s *roll) giveUp(ctx context.Context, step rollout.Step, began time.Time, err error) error {
	var failure *rollout.Failure
	if !errors.As(err, &failure) {
		return fmt.Errorf("%s %s: %w", step.Name(), step.Subject, err)
	}
	record := rollout.GiveUp(s.Want, s.have, step, *failure, s.Now())
	if record == nil {
		return fmt.Errorf("%s %s: %w", step.Name(), step.Subject, err)
	}
	s.trail.done(step, began, s.Now().Sub(began))
	s.trail.add(record.Name(), record.Subject, 0)
	return s.execute(ctx, *record)
}
