// SPDX-License-Identifier: Apache-2.0

package etcd

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/theseus-gitops/theseus/reconcile/rollout"
)

// MoveLeader hands leadership to a voter. When it leads already, nothing is done. A voter that is not as it was
// decided on is rollout.ErrConflict; a leader that can't be asked is ErrNoLeader.
func (c *Client) MoveLeader(ctx context.Context, to Ref) error {
	seen, err := c.confirmed(ctx)
	if err != nil {
		return err
	}
	m, err := seen.as(to)
	switch {
	case err != nil:
		return err
	case m == nil:
		return conflict(to, "it is no member any more")
	case m.Learner:
		return fmt.Errorf("etcd %s is a learner and can't lead: wait until it votes", to)
	case seen.Leader() == to.ID:
		return nil
	case !m.Healthy():
		return fmt.Errorf("etcd %s is not fit to lead: %s", to, unfit(*m))
	}
	leader := seen.by[seen.Leader()]
	if leader == nil {
		return fmt.Errorf("moving etcd's leadership to %s: %w: it stays where it is until etcd elects anew", to, ErrNoLeader)
	}
	err = c.call(ctx, leader, func(ctx context.Context) error {
		_, err := leader.etcd.MoveLeader(ctx, uint64(to.ID))
		return err
	})
	if err == nil {
		return nil
	}
	done := func(v View) bool { return v.Leader() == to.ID }
	if errors.Is(err, rpctypes.ErrNotLeader) {
		err = fmt.Errorf("%w: leadership has just moved: %w", rollout.ErrConflict, err)
	}
	return c.unless(ctx, done, fmt.Errorf("moving etcd's leadership to %s: %w", to, err))
}

// unfit says why a member can't be counted on.
func unfit(m Member) string {
	switch {
	case m.Status == nil:
		return m.Unreachable
	case len(m.Alarms) > 0:
		return fmt.Sprintf("alarm %s", m.Alarms[0])
	}
	return "it knows no leader"
}

// AddLearner adds a member without a vote, which Theseus never promotes, and gives its reference. When it has been
// added already and has not started, that one is given. Etcd allows one learner at a time: another in the way, or a
// member at that peer URL that has started or votes, is rollout.ErrConflict.
func (c *Client) AddLearner(ctx context.Context, peerURL string) (Ref, error) {
	seen, err := c.confirmed(ctx)
	if err != nil {
		return Ref{}, err
	}
	if there, found, err := learnerAt(seen.View, peerURL); found || err != nil {
		return there, err
	}
	via := seen.voters(0)
	if len(via) == 0 {
		return Ref{}, fmt.Errorf("adding an etcd learner at %s: %w", peerURL, ErrNoQuorum)
	}
	var added *clientv3.MemberAddResponse
	err = c.call(ctx, via[0], func(ctx context.Context) (err error) {
		added, err = via[0].etcd.MemberAddAsLearner(ctx, []string{peerURL})
		return err
	})
	if err == nil {
		return Ref{ID: ID(added.Member.ID), PeerURL: peerURL, Learner: true}, nil
	}
	switch {
	case errors.Is(err, rpctypes.ErrTooManyLearners), errors.Is(err, rpctypes.ErrPeerURLExist):
		err = fmt.Errorf("%w: %w", rollout.ErrConflict, err)
	case errors.Is(err, rpctypes.ErrMemberNotFound):
		// Etcd makes the id of peer URL and second.
		err = fmt.Errorf("one at that peer URL was removed within this second; works a second later: %w", err)
	}
	// The answer may have been lost on its way.
	var there Ref
	err = c.unless(ctx, func(v View) (found bool) {
		there, found, _ = learnerAt(v, peerURL)
		return found
	}, fmt.Errorf("adding an etcd learner at %s: %w", peerURL, err))
	return there, err
}

// learnerAt is the learner that waits at a peer URL. What keeps another from being added is an error.
func learnerAt(v View, peerURL string) (there Ref, found bool, err error) {
	for _, m := range v.Members {
		switch here := slices.Contains(m.PeerURLs, peerURL); {
		case here && m.Learner && !m.Started():
			return Ref{ID: m.ID, PeerURL: peerURL, Learner: true}, true, nil
		case here:
			return Ref{}, false, conflict(m.Ref(), fmt.Sprintf("it already is at %s, where a learner was to be added", peerURL))
		case m.Learner:
			return Ref{}, false, conflict(m.Ref(), "it is a learner, and etcd allows one at a time: it has to become a voter or to be removed first")
		}
	}
	return Ref{}, false, nil
}

// Remove removes a member by its id. One that is gone already is no error. One that has another name or peer URL than
// was decided on, or votes where a learner was expected, is rollout.ErrConflict. The last voter is never removed. Whether the rest keeps its quorum is the caller's to check, with CountWithout, right before.
func (c *Client) Remove(ctx context.Context, r Ref) error {
	seen, err := c.confirmed(ctx)
	if err != nil {
		return err
	}
	m, err := seen.as(r)
	if m == nil || err != nil {
		return err
	}
	if seen.CountWithout(r.ID).Voters == 0 {
		return fmt.Errorf("etcd %s is the only voter: removing it would lose the cluster", r)
	}
	via := seen.voters(r.ID)
	if len(via) == 0 {
		return fmt.Errorf("etcd %s: no other voter answers that could remove it", r)
	}
	err = c.call(ctx, via[0], func(ctx context.Context) error {
		_, err := via[0].etcd.MemberRemove(ctx, uint64(r.ID))
		return err
	})
	if err == nil {
		return nil
	}
	// The answer may have been lost on its way, or somebody else was faster.
	gone := func(v View) bool { return v.Find(r.ID) == nil }
	return c.unless(ctx, gone, fmt.Errorf("removing etcd %s: %w", r, err))
}

// confirmed observes and insists on a list with a quorum behind it.
func (c *Client) confirmed(ctx context.Context) (sight, error) {
	seen, err := c.observe(ctx)
	if err == nil && !seen.Confirmed {
		err = fmt.Errorf("etcd's members are not changed: %w: more than half of the voters must be up and reach each other", ErrNoQuorum)
	}
	return seen, err
}

// as finds the member of that id, nil if there is none, and insists that it is as it was decided on.
func (s sight) as(r Ref) (*Member, error) {
	m := s.Find(r.ID)
	switch {
	case m == nil:
		return nil, nil
	case m.Name != r.Name:
		return nil, conflict(r, fmt.Sprintf("it is %s now", m))
	case !slices.Contains(m.PeerURLs, r.PeerURL):
		return nil, conflict(r, fmt.Sprintf("its peer URL is %v, not %s", m.PeerURLs, r.PeerURL))
	case r.Learner && !m.Learner:
		return nil, conflict(r, "it was a learner and votes now")
	}
	return m, nil
}

// unless gives err, unless what was wanted turns out to be so.
func (c *Client) unless(ctx context.Context, done func(View) bool, err error) error {
	seen, again := c.confirmed(ctx)
	if again == nil && done(seen.View) {
		return nil
	}
	return err
}
