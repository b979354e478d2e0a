// SPDX-License-Identifier: Apache-2.0

package status

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/theseus-gitops/theseus/reconcile/logbook"
)

const (
	conditionTrue  = "True"
	conditionFalse = "False"
	noticesLimit   = 50
	// lostPrefix begins the notice that history was lost. It stays until there is history again.
	lostPrefix = "The status document before this one could not be read"
)

// Update is the document after a pass, from the one before it (nil when there is none) and the pass's report.
// The same report at a later time gives the same document.
//
// A cluster that was not observed keeps what was last seen of it, marked with the time since when. A locked cluster keeps
// the document as it is, if that speaks of the same spec or of a change under way: the holder of the lock writes it.
// A cluster whose spec is invalid keeps its stage, and what was wanted, from the last valid one.
func Update(prev *Document, r Report, now time.Time) Document {
	now = instant(now)
	doc := Document{APIVersion: APIVersion, Kind: Kind, Metadata: Metadata{Name: line(r.Cluster), Labels: maps.Clone(r.Labels)}}
	var before Status
	if prev != nil {
		before = prev.Status
		if r.Outcome == Invalid && r.Stage == "" { // what can't be read has not moved
			r.Stage, doc.Metadata.Labels = before.Stage, maps.Clone(prev.Metadata.Labels)
		}
		if r.Outcome == Locked && leftToHolder(*prev, r) {
			doc.Status = before
			return doc
		}
	}
	history := mergeHistory(before.History, r.Finished)
	doc.Status = Status{
		Stage:            line(r.Stage),
		ObservedRevision: cmp.Or(line(r.Revision), before.ObservedRevision),
		Conditions:       conditions(before, r, now),
		Want:             wanted(before.Want, r),
		Live:             lastSeen(before.Live, r, now),
		Machines:         lastMachines(before.Machines, r),
		Plan:             plan(before.Plan, r),
		Failure:          failure(r),
		Notices:          notices(before.Notices, r.Notices, len(history) == 0),
		History:          history,
	}
	return doc
}

// leftToHolder reports whether a document is better than "another runner holds the lock".
func leftToHolder(prev Document, r Report) bool {
	o := prev.Outcome()
	return o == Changes || o == Waiting || o != Unknown && line(r.Revision) == prev.Status.ObservedRevision
}

func conditions(before Status, r Report, now time.Time) []Condition {
	reason, message := r.Outcome.Reason(), message(r)
	if r.Outcome == Stalled && r.Failure != nil && reasons.MatchString(r.Failure.Reason) {
		reason = r.Failure.Reason
	}
	if last := before.condition(Ready); last.Reason == reason && !observes(r.Outcome) && similar(last.Message, message) {
		message = last.Message
	}
	since := func(kind, status string) time.Time {
		last := before.condition(kind)
		if last.Status != status || last.LastTransitionTime.IsZero() {
			return now
		}
		return instant(last.LastTransitionTime)
	}
	is := func(kind, status string) Condition {
		return Condition{Type: kind, Status: status, Reason: reason, Message: message, LastTransitionTime: since(kind, status)}
	}
	switch r.Outcome {
	case Converged:
		return []Condition{is(Ready, conditionTrue)}
	case Stalled, Invalid:
		return []Condition{is(Ready, conditionFalse), is(StalledType, conditionTrue)}
	case Changes, Waiting, Unreachable, Locked, Transient, Unknown:
	}
	return []Condition{is(Ready, conditionFalse), is(Reconciling, conditionTrue)}
}

// observes reports whether an outcome's message comes from what was seen. The others' come from networks, whose
// messages carry numbers that change by themselves.
func observes(o Outcome) bool { return o != Unreachable && o != Transient }

func message(r Report) string {
	why := clean(r.Why)
	switch r.Outcome {
	case Converged:
		return cmp.Or(why, "the cluster is as wanted")
	case Changes:
		return progress(r.Plan, why)
	case Waiting:
		why = cmp.Or(why, "waiting")
		if r.Until.IsZero() {
			return why
		}
		return why + "; until " + instant(r.Until).Format(time.RFC3339) + " at the latest"
	case Stalled, Invalid:
		if r.Failure != nil {
			why = cmp.Or(clean(r.Failure.Message), why)
		}
		return cmp.Or(why, "a person or a new commit must act")
	case Unreachable:
		return cmp.Or(why, "the cluster could not be observed")
	case Locked:
		return cmp.Or(why, "another runner holds the cluster's lock")
	case Transient, Unknown:
	}
	return cmp.Or(why, "the pass failed; the next one tries again")
}

func progress(p *Plan, why string) string {
	if p == nil {
		return cmp.Or(why, "the cluster is being changed")
	}
	if p.Current != nil {
		why = cmp.Or(why, clean(p.Current.Why), line(p.Current.Step+" "+p.Current.Subject))
	}
	return strings.TrimSuffix(stepOf(*p)+": "+why, ": ")
}

// stepOf is "step 3 of 9".
func stepOf(p Plan) string { return fmt.Sprintf("step %d of %d", min(p.Done+1, p.Total), p.Total) }

func wanted(before Versions, r Report) Versions {
	if r.Want == (logbook.Versions{}) && r.Outcome == Invalid {
		return before
	}
	return tidyVersions(Versions(r.Want))
}

func lastSeen(before *Live, r Report, now time.Time) *Live {
	if r.Live != nil {
		return liveOf(*r.Live, r.Machines)
	}
	if before == nil {
		return nil
	}
	kept := *before
	if kept.StaleSince.IsZero() {
		kept.StaleSince = now
	}
	kept.StaleSince = instant(kept.StaleSince)
	return &kept
}

// lastMachines are those of the last look at them.
func lastMachines(before []Machine, r Report) []Machine {
	if r.Live == nil {
		return before
	}
	return machinesOf(r)
}

// plan keeps the plan of a change that something got in the way of: it is where the change will go on.
func plan(before *Plan, r Report) *Plan {
	if r.Plan == nil {
		if !observes(r.Outcome) {
			return before
		}
		return nil
	}
	p := Plan{Done: r.Plan.Done, Total: r.Plan.Total, Hash: line(r.Plan.Hash)}
	if c := r.Plan.Current; c != nil {
		p.Current = &Step{Step: line(c.Step), Subject: line(c.Subject), Why: clean(c.Why)}
	}
	return &p
}

func failure(r Report) *Failure {
	if r.Failure == nil && r.Outcome == Invalid {
		return &Failure{
			Reason:  Invalid.Reason(),
			Message: message(r),
			Remedy:  "Fix the spec; `theseus validate` names every problem and its place.",
			Runbook: line(r.Runbook),
		}
	}
	if r.Failure == nil {
		return nil
	}
	return &Failure{
		Reason:  cmp.Or(line(r.Failure.Reason), r.Outcome.Reason()),
		Message: clean(r.Failure.Message),
		Remedy:  clean(r.Failure.Remedy),
		Runbook: line(r.Runbook),
	}
}

func notices(before, fresh []string, keepLost bool) []string {
	var out []string
	add := func(n string) {
		if n = clean(n); n != "" && !slices.Contains(out, n) && len(out) < noticesLimit {
			out = append(out, n)
		}
	}
	lost := func(n string) bool { return strings.HasPrefix(n, lostPrefix) }
	for _, n := range before {
		if lost(n) && keepLost {
			add(n)
		}
	}
	for _, n := range fresh {
		if !lost(n) || keepLost {
			add(n)
		}
	}
	return out
}

// instant is a time as documents hold it.
func instant(t time.Time) time.Time {
	if t.IsZero() {
		return time.Time{}
	}
	return t.UTC().Truncate(time.Second)
}

func tidyVersions(v Versions) Versions {
	return Versions{KubernetesVersion: line(v.KubernetesVersion), BaseImage: line(v.BaseImage), CoreDNS: line(v.CoreDNS)}
}
