// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"errors"
	"fmt"
	"time"

	"github.com/theseus-gitops/theseus/reconcile/live"
	"github.com/theseus-gitops/theseus/reconcile/logbook"
)

// Step is one effect on the world, small enough that a crash before or after it is harmless.
type Step struct {
	// Subject is what it acts on, "deployment/coredns".
	Subject string
	// Why is the sentence for people, used in plan, log, commit and status alike.
	Why string
	Act Act
	// Before is the logbook to be written before the act, nil to leave it as it is.
	Before *logbook.Book
	// After gives the one to be written once the act has worked, at that time; nil leaves it as it is.
	After func(now time.Time) *logbook.Book
	// Limit is how long the act may take, 0 for the usual.
	Limit time.Duration
}

// Name is the step's word in plans and status.
func (s Step) Name() string { return s.Act.name() }

// LocksState reports whether Terraform's state is locked for the step.
func (s Step) LocksState() bool {
	switch act := s.Act.(type) { //nolint:gochecksumtype // the others leave Terraform alone
	case CheckModule, AddMachine, LeaveEndpoint, DestroyMachine, DropEntry:
		return true
	case RemoveMember:
		return act.Machine != "" // the machine's destruction is planned first
	}
	return false
}

// Act is what a step does, with all that the executor needs to do it: executors decide nothing.
// A ResourceVersion in it is a precondition: when the object has moved on, the executor writes
// nothing and answers with ErrConflict, and the decision is taken again.
//
//sumtype:decl
type Act interface{ name() string }

// ErrConflict is what an executor answers when a precondition no longer holds: somebody else wrote first,
// nothing was written, and the decision is to be taken again from a fresh observation.
var ErrConflict = errors.New("the object changed meanwhile")

// EnsureDNSRole adds the rule that lets CoreDNS list and watch EndpointSlices to ClusterRole system:coredns.
type EnsureDNSRole struct{ ResourceVersion string }

// CanaryDNS starts a pod of the target image with the candidate Corefile outside the Service's selector,
// asks it what the present pods are asked, removes it, and records Run on ConfigMap coredns.
// A canary that does worse than the present pods is a *Failure.
type CanaryDNS struct {
	Image    string
	Corefile string
	// Questions are asked of the present pods first, then of the canary.
	Questions []Question
	// Run is recorded with the canary's answers filled in.
	Run live.DNSRun
	// ResourceVersion is that of ConfigMap coredns.
	ResourceVersion string
}

// RemoveCanary removes the canary, and its ConfigMap, that a killed run left.
type RemoveCanary struct{}

// SyncDNSConfig writes the dns section of kubeadm-config, so that later joins and upgrades agree with what runs.
// Original, when not empty, is written to the logbook before it.
type SyncDNSConfig struct {
	DNS             live.KubeadmDNS
	ResourceVersion string
	Original        string
}

// WriteCorefile sets one key of ConfigMap coredns. Other keys stay.
type WriteCorefile struct {
	// Key is live.CorefileKey or live.CorefileBackupKey.
	Key             string
	Text            string
	ResourceVersion string
}

// PatchDNS changes the pod template of Deployment coredns in one patch.
type PatchDNS struct {
	// Image is that of container coredns, "" to leave it.
	Image string
	// Volume is the config volume's name, "" to leave it; Items are its new items, nil for all keys.
	Volume          string
	Items           []live.VolumeItem
	ResourceVersion string
	// Purpose gives the step its name.
	Purpose Purpose
}

// Purpose tells apart the reasons to change the pod template.
type Purpose int

const (
	// MountBackup shows the backup to the present pods, so that they never read the migrated Corefile.
	MountBackup Purpose = iota
	// UpdateImage brings the target image, and the Corefile key with it.
	UpdateImage
	// Restore brings back image or key after a failed or withdrawn target.
	Restore
)

// RecordFailure writes to the logbook that a target is given up, before anything is undone.
type RecordFailure struct{ Failed logbook.FailedTarget }

// VerifyDNS asks every pod of the Deployment what the canary was asked, then records Run.
// An answer worse than in Answers is a *Failure.
type VerifyDNS struct {
	// Image is what the pods run.
	Image     string
	Questions []Question
	// Answers are the accepted answer codes by question.
	Answers map[string]string
	// Run is what is recorded once the pods have passed: closed.
	Run live.DNSRun
	// ResourceVersion is that of ConfigMap coredns.
	ResourceVersion string
}

// Question is one DNS query, sent over TCP to a pod's own port.
type Question struct {
	// Name is absolute, "kubernetes.default.svc.cluster.local.".
	Name string
	// Type is "A" or "SOA".
	Type string
	Port int
}

// String is the question as it stands in a run's Answers.
func (q Question) String() string { return fmt.Sprintf("%s %s :%d", q.Name, q.Type, q.Port) }

// RecordDNSRun writes a run to ConfigMap coredns: closed, after everything was put back, or opened again,
// when the spec goes back to what ran before.
type RecordDNSRun struct {
	ResourceVersion string
	Run             live.DNSRun
}

func (EnsureDNSRole) name() string { return "ensure-dns-rbac" }
func (CanaryDNS) name() string     { return "canary-coredns" }
func (RemoveCanary) name() string  { return "remove-canary" }
func (SyncDNSConfig) name() string { return "sync-dns-config" }
func (RecordFailure) name() string { return "record-failure" }
func (VerifyDNS) name() string     { return "verify" }

func (w WriteCorefile) name() string {
	if w.Key == live.CorefileBackupKey {
		return "backup-corefile"
	}
	return "write-corefile"
}

func (p PatchDNS) name() string {
	switch p.Purpose {
	case MountBackup:
		return "mount-corefile-backup"
	case Restore:
		return "restore-coredns"
	case UpdateImage:
		return "update-coredns"
	}
	return "update-coredns"
}

func (r RecordDNSRun) name() string {
	if r.Run.Open() {
		return "open-coredns-run"
	}
	return "close-coredns-run"
}
