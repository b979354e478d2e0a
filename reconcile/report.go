// SPDX-License-Identifier: Apache-2.0

package reconcile

import (
	"errors"
	"slices"
	"strings"

	"github.com/theseus-gitops/theseus/reconcile/image"
	"github.com/theseus-gitops/theseus/reconcile/live"
	"github.com/theseus-gitops/theseus/reconcile/logbook"
	"github.com/theseus-gitops/theseus/reconcile/rollout"
	"github.com/theseus-gitops/theseus/reconcile/status"
)

// report says how the pass over this cluster ended.
func (s *roll) report(decision rollout.Decision) status.Report {
	r := s.Report
	r.Live, r.Machines, r.Taken = s.have.Kube, s.have.Machines, taken(s.trail.steps)
	switch d := decision.(type) {
	case rollout.Do:
		r.Outcome, r.Why = status.Changes, d.Step.Why
		current := status.StepOf(d.Step)
		r.Plan = s.progress(&current)
		r.Notices = append(r.Notices, d.Notices...)
	case rollout.Wait:
		r.Outcome, r.Why, r.Until = status.Waiting, d.Why, d.Until
		r.Plan = s.progress(nil)
	case rollout.Stalled:
		failure := d.Failure
		r.Outcome, r.Why, r.Failure = status.Stalled, failure.Message, &failure
	case rollout.Done:
		r.Outcome, r.Why = status.Converged, d.Why
		r.Notices = append(r.Notices, d.Notices...)
	}
	return r
}

// progress counts what was done in this roll, as far as it is known, and what is left.
func (s *roll) progress(current *status.Step) *status.Plan {
	plan := rollout.Play(s.Want, s.have, s.Now())
	done := counted(s.trail.all(s.have.Kube.Book.Roll))
	return &status.Plan{Done: done, Total: done + len(plan.Steps), Current: current, Hash: plan.Hash}
}

// failed is the report of a pass that an error ended.
func (s *roll) failed(err error) status.Report {
	r := s.Report
	r.Outcome, r.Why, r.Taken = outcomeOf(err), err.Error(), taken(s.trail.steps)
	if s.lock != nil || s.have.Kube.ServerVersion != "" {
		r.Live, r.Machines = s.have.Kube, s.have.Machines
	}
	if r.Outcome == status.Unreachable {
		r.Live, r.Machines = nil, nil
	}
	var failure *rollout.Failure
	if errors.As(err, &failure) {
		r.Outcome, r.Why, r.Failure = status.Stalled, failure.Message, failure
	}
	return r
}

// outcomeOf sorts an error by what it means for the next pass.
func outcomeOf(err error) status.Outcome {
	var locked *LockedError
	var unreachable *UnreachableError
	switch {
	case errors.As(err, &locked):
		return status.Locked
	case errors.As(err, &unreachable):
		return status.Unreachable
	default:
		return status.Transient
	}
}

// history is the entry of a roll that has ended.
func (s *roll) history(r status.Report) *status.Entry {
	begun := s.have.Kube.Book.Roll
	var attempted status.Versions
	if r.Outcome != status.Converged {
		attempted = status.Versions(r.Want)
	}
	return &status.Entry{
		Attempted: attempted,
		Revision:  begun.Revision, From: status.Versions(begun.From), To: status.Versions(versionsOf(s.have)),
		Started: begun.Started, Ended: s.Now(), Outcome: r.Outcome.Reason(), Steps: taken(s.trail.all(begun)),
	}
}

// versionsOf names what a cluster runs, as far as it is acted on.
func versionsOf(have live.Cluster) logbook.Versions {
	kube := have.Kube
	v := logbook.Versions{KubernetesVersion: kube.ServerVersion, BaseImage: baseImage(have.Machines)}
	if kube.DNS.Deployment == nil {
		return v
	}
	if ref, err := image.Parse(kube.DNS.Deployment.Image); err == nil {
		v.CoreDNS = ref.Tag
	}
	return v
}

// baseImage names the images that the control plane's machines were made from.
func baseImage(machines *live.Machines) string {
	if machines == nil {
		return ""
	}
	var images []string
	for _, m := range machines.ControlPlane() {
		if !slices.Contains(images, m.Image) {
			images = append(images, m.Image)
		}
	}
	slices.Sort(images)
	return strings.Join(images, ", ")
}
