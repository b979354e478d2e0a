// SPDX-License-Identifier: Apache-2.0

package etcd

import (
	"errors"
	"fmt"

	"github.com/theseus-gitops/theseus/reconcile/rollout"
)

// ErrNoLeader is wrapped when leadership can't be moved because there is no leader that could be asked: an election
// is under way, or the leader does not answer. Etcd elects another by itself while a quorum of voters is healthy.
var ErrNoLeader = errors.New("no leader answers that could be asked")

// ErrNoQuorum is wrapped when no member could say, with a quorum behind it, who the members are.
var ErrNoQuorum = errors.New("no member could say, with a quorum behind it, who the members are")

// PlaceError says that a snapshot could not be kept where it was to be. Nothing of it was.
type PlaceError struct {
	// What is the place, Remedy what a person can do about it.
	What, Remedy string
	cause        error
}

// Error implements error.
func (e *PlaceError) Error() string { return fmt.Sprintf("%s: %v; nothing was kept", e.What, e.cause) }

// Unwrap is the cause.
func (e *PlaceError) Unwrap() error { return e.cause }

// conflict says that a member is not as it was when the act was decided.
func conflict(r Ref, is string) error {
	return fmt.Errorf("etcd %s: %w: %s", r, rollout.ErrConflict, is)
}
