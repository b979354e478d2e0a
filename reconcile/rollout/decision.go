// SPDX-License-Identifier: Apache-2.0

// Package rollout decides what to do next to bring a cluster to what its spec wants.
// It does not observe and does not act: values in, a value out, no clock.
// Start at Next; Play is the plan, which is Next played forward over the steps' models.
package rollout

import "time"

// Decision is what to do next. It is one of Do, Wait, Stalled and Done.
//
//sumtype:decl
type Decision interface{ decision() }

// Do asks for one step.
type Do struct {
	Step Step
	// Notices are worth a person's attention before the roll, or while it is under way.
	Notices []string
}

// Wait asks to look again: nothing is to be done before something observed changes, or before Until.
type Wait struct {
	// Until is when the wait becomes a failure or ends by itself.
	Until time.Time
	Why   string
	// Subject is what is waited for, "deployment/coredns".
	Subject string
	// ResumedBy is the model of what is waited for: the plan goes on as if it had happened.
	ResumedBy Awaited
	// Else is what the wait becomes when it has lasted from its first look until Until, for waits that begin anew with every
	// look. Nil when the decision finds out by itself.
	Else *Failure
}

// Stalled says that a person or a new commit must act.
type Stalled struct {
	Failure Failure
	// Remembered tells that the failure is the logbook's memory of this target, not what is seen now: the roll
	// is over, and only a new spec starts another.
	Remembered bool
}

// Done says that the cluster is as wanted.
type Done struct {
	Why string
	// Notices are worth a person's attention although nothing is to be done.
	Notices []string
}

func (Do) decision()      {}
func (Wait) decision()    {}
func (Stalled) decision() {}
func (Done) decision()    {}

// Failure says why something can't go on, for people and for programs. It is an error so that an
// executor can return it: the target has failed unless Elsewhere is set, and trying again at once is pointless.
type Failure struct {
	// Reason is a CamelCase word, stable, one per runbook.
	Reason string
	// Message says what, where and why.
	Message string
	// Remedy says what a person can do.
	Remedy string
	// Elsewhere tells that the target is not to blame: it is not remembered as failed, and every pass looks again.
	Elsewhere bool
}

// Error implements error.
func (f *Failure) Error() string { return f.Message }

// Awaited is something that happens without Theseus, which a Wait waits for.
type Awaited int

const (
	// AwaitedNothing is a wait that only time ends: a plan can't see past it.
	AwaitedNothing Awaited = iota
	// AwaitedDNSRollout is that the CoreDNS Deployment has all pods of its newest template available.
	AwaitedDNSRollout
	// AwaitedHealth is that what is sick recovers: a plan can't see past it.
	AwaitedHealth
	// AwaitedTime is that nothing happens until the wait's Until.
	AwaitedTime
	// AwaitedJoin is that the machine that is being added becomes a healthy part of the plane.
	AwaitedJoin
	// AwaitedDetach is that the volumes of the leaving machine are detached.
	AwaitedDetach
	// AwaitedEndpoint is that the endpoint no longer leads to the leaving machine.
	AwaitedEndpoint
	// AwaitedProxyRollout is that kube-proxy runs on every node as wanted.
	AwaitedProxyRollout
)
