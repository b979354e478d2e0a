// SPDX-License-Identifier: Apache-2.0

// Package coredns carries out the CoreDNS steps of a roll, each one method that takes one act of package rollout.
// It does not decide what comes next (rollout.Next does) and does not observe for it (executors/kube does).
// Start at New; Canary is the largest step, writes.go has the small ones.
package coredns

import (
	"context"
	"net"
	"time"

	"k8s.io/client-go/kubernetes"

	"github.com/theseus-gitops/theseus/reconcile/live"
)

// Names of what this package reads and writes.
const (
	namespace      = "kube-system"
	objectName     = "coredns"
	containerName  = "coredns"
	roleName       = "system:coredns"
	fieldManager   = "theseus"
	canaryName     = live.DNSCanaryName
	labelName      = "app.kubernetes.io/name"
	labelManagedBy = "app.kubernetes.io/managed-by"
)

// Options are what an Executor needs. Client and Dial must be set; a zero value of the others means its default.
type Options struct {
	Client kubernetes.Interface
	// Dial connects to a TCP port of a pod in kube-system, by its own address or through a port-forward.
	// It honours ctx; closing the connection must end a pending Read.
	Dial func(ctx context.Context, pod string, port int) (net.Conn, error)
	// Tell hears what the canary or the verification waits for, each time that this changes. It may be nil.
	Tell func(text string)
	// Now is the clock of annotations; time.Now by default.
	Now func() time.Time
	// ReadyTimeout is how long a canary may take to become Ready, its image's pull included; 2 minutes by default.
	ReadyTimeout time.Duration
	// PullPatience is how long pulling the canary's image may keep failing; 45 seconds by default, which is three tries of a kubelet.
	PullPatience time.Duration
	// AskTimeout limits one try of one question; 8 seconds by default, because the forward plugin takes 5 to answer
	// SERVFAIL for an upstream that is gone.
	AskTimeout time.Duration
	// AskTries is how often a question is asked before a poor answer counts; 4 by default.
	AskTries int
	// AskPause lies between two tries; 2 seconds by default.
	AskPause time.Duration
	// Poll is the time between two looks at the canary; 1 second by default.
	Poll time.Duration
	// CleanUpTimeout limits the removal of a canary, which goes on after a cancelled context; 15 seconds by default.
	CleanUpTimeout time.Duration
}

// Executor carries out CoreDNS steps in one cluster. It keeps no state between them, so that being killed
// anywhere and called again is a normal event.
type Executor struct{ Options }

// New returns an Executor with defaults filled in.
func New(o Options) *Executor {
	if o.Now == nil {
		o.Now = time.Now
	}
	o.Tell = onChange(o.Tell)
	if o.AskTries <= 0 {
		o.AskTries = 4
	}
	for _, d := range []struct {
		value *time.Duration
		unset time.Duration
	}{
		{&o.ReadyTimeout, 2 * time.Minute},
		{&o.PullPatience, 45 * time.Second},
		{&o.AskTimeout, 8 * time.Second},
		{&o.AskPause, 2 * time.Second},
		{&o.Poll, time.Second},
		{&o.CleanUpTimeout, 15 * time.Second},
	} {
		if *d.value <= 0 {
			*d.value = d.unset
		}
	}
	return &Executor{Options: o}
}

// sleep waits for d, or until ctx ends; it then returns why.
func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-t.C:
		return nil
	}
}
