// SPDX-License-Identifier: Apache-2.0

// Package reconcile runs one pass over a fleet: read the specs, look at each cluster, decide, act, report.
// It holds no rule of its own about clusters (rollout has them) and touches nothing but through its ports.
// Start at Pass.Run; one cluster's part is Roller.Roll.
package reconcile

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/theseus-gitops/theseus/reconcile/live"
	"github.com/theseus-gitops/theseus/reconcile/logbook"
	"github.com/theseus-gitops/theseus/reconcile/rollout"
	"github.com/theseus-gitops/theseus/reconcile/spec"
	"github.com/theseus-gitops/theseus/reconcile/status"
)

// Source is the fleet repository's branch of specs.
type Source interface {
	// Head asks for the branch's newest commit; it costs one small answer.
	Head(ctx context.Context) (string, error)
	// Newest is Head in the middle of a pass: what the pass has read stays what it goes by.
	Newest(ctx context.Context) (string, error)
	// Files reads the YAML files below the spec path at that commit.
	Files(ctx context.Context, revision string) ([]spec.File, error)
}

// StatusBranch is the branch that the fleet's status is committed to.
type StatusBranch interface {
	// Read gives what stands in status.Folders of prefix on the branch; nothing when there is no such branch.
	Read(ctx context.Context, branch, prefix string) (status.Tree, error)
	// Commit runs c.Change on what is on the branch, as often as it takes to land without losing anybody's
	// commit. At and below c.Prefix, what stands in the way of a file is replaced. A refusal by a rule of the server wraps ErrPushRefused.
	Commit(ctx context.Context, c Commit) error
}

// Commit is one commit of status.
type Commit struct {
	Branch, Prefix, Message string
	// Change computes new contents from the present ones: path to content, nil to remove a file.
	Change func(present status.Tree) (map[string][]byte, error)
}

// Connector opens the way to a cluster.
type Connector interface {
	Connect(ctx context.Context, cluster spec.EffectiveCluster) (Target, error)
}

// Target is a connected cluster: one port per way of touching it.
type Target struct {
	Observer Observer
	Executor Executor
	Locker   Locker
	Books    BookKeeper
	// Holder is what is written down of this process before each step that locks Terraform's state, so that a lock which it
	// leaves when it is killed can be proved to be its; nil when it leaves none.
	Holder func() logbook.LockHolder
	// Close ends what the target holds: connections, files. It is called once, after the last use.
	Close func() error
}

// Observer looks at a cluster and changes nothing. Its Kube is never nil without an error.
type Observer interface {
	Observe(ctx context.Context) (live.Cluster, error)
}

// Executor carries out one step. A *rollout.Failure means that the target has failed; rollout.ErrConflict that
// nothing was written and the decision is to be taken again; anything else is worth another try.
type Executor interface {
	Execute(ctx context.Context, step rollout.Step) error
}

// BookKeeper writes the logbook under a precondition: "" for resourceVersion means that there is none yet.
type BookKeeper interface {
	WriteBook(ctx context.Context, resourceVersion string, book logbook.Book) (newVersion string, err error)
}

// Locker keeps runners apart.
type Locker interface {
	// Lock takes the cluster's Lease, with a fence above after. A live foreign holder is a *LockedError.
	Lock(ctx context.Context, after int32) (Lock, error)
}

// Lock is a Lease that is held.
type Lock interface {
	// Check makes sure that the Lease is still ours, right before something is changed; a foreign holder is a *LockedError.
	Check(ctx context.Context) error
	// Fence is the Lease's transition count under which it is held.
	Fence() int32
	Release(ctx context.Context) error
}

// Progress hears what happens while it happens.
type Progress interface {
	Event(e Event)
}

// Event is one thing worth a line.
type Event struct {
	Cluster string
	Kind    EventKind
	Step    rollout.Step
	// Took is how long a finished step took.
	Took time.Duration
	// Text is the why of a wait, or the error of a step that failed.
	Text string
}

// EventKind says what an Event is about.
type EventKind int

const (
	// StepStarted comes before a step.
	StepStarted EventKind = iota
	// StepDone comes after a step that worked.
	StepDone
	// StepFailed comes after a step that did not; Text says why.
	StepFailed
	// WaitBegun comes when a wait begins or its reason changes.
	WaitBegun
)

// LockedError says that another runner works on the cluster.
type LockedError struct {
	Holder string
	Until  time.Time
}

// Error implements error.
func (e *LockedError) Error() string {
	if e.Holder == "" {
		return "another run held the lock meanwhile; the next pass looks again"
	}
	return fmt.Sprintf("another run (%s) holds the lock until %s, unless it renews it; if that run is dead, the lock frees itself then",
		e.Holder, e.Until.UTC().Format(time.RFC3339))
}

// UnreachableError says that the cluster's API could not be reached at all.
type UnreachableError struct{ Err error }

// Error implements error.
func (e *UnreachableError) Error() string { return e.Err.Error() }

// Unwrap gives the cause.
func (e *UnreachableError) Unwrap() error { return e.Err }

// ErrUnknownCluster says that no spec has the name that was asked for.
var ErrUnknownCluster = errors.New("no such cluster in the specs")

// ErrPushRefused is wrapped by a StatusBranch whose commit was refused by a rule of the server.
var ErrPushRefused = errors.New("the server refused the push")
