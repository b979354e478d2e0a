// SPDX-License-Identifier: Apache-2.0

package planetest

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/theseus-gitops/theseus/reconcile/live"
	"github.com/theseus-gitops/theseus/reconcile/rollout"
)

// etcd is a cluster's membership, which all members agree on.
type etcd struct {
	members []*member
	// leader is nil while there is none, electing since when.
	leader   *member
	electing time.Time
	term     uint64
	// last is the highest id that any member had; ids never come again.
	last live.MemberID
}

// member is one of the list. vm is nil for the placeholder, which nobody ever starts.
type member struct {
	id       live.MemberID
	name     string
	peer     string
	learner  bool
	vm       *vm
	promoted time.Time
}

// election is how long a cluster without leader takes to find one.
const election = 3 * time.Second

func (e *etcd) add(peer string, v *vm) *member {
	e.last++
	m := &member{id: e.last, peer: peer, learner: true, vm: v}
	e.members = append(e.members, m)
	return m
}

func (m *member) runs() bool {
	return m.vm != nil && m.vm.on && m.vm.member == m && m.name != ""
}

// votes counts the voters, and those that run.
func (e *etcd) votes() (voters, running int) {
	for _, m := range e.members {
		if m.learner {
			continue
		}
		voters++
		if m.runs() {
			running++
		}
	}
	return voters, running
}

func (e *etcd) quorum() bool {
	voters, running := e.votes()
	return running > voters/2
}

// works reports whether etcd answers questions and takes changes.
func (e *etcd) works() bool { return e.quorum() && e.leader != nil }

func (e *etcd) find(id live.MemberID) *member {
	i := slices.IndexFunc(e.members, func(m *member) bool { return m.id == id })
	if i < 0 {
		return nil
	}
	return e.members[i]
}

// elect makes a voter the leader when there was none for a while.
func (p *Plane) elect() {
	e := &p.etcd
	if l := e.leader; l != nil && (!l.runs() || e.find(l.id) == nil || !e.quorum()) {
		e.leader, e.electing = nil, p.Now
	}
	if e.leader != nil || !e.quorum() || p.Now.Before(e.electing.Add(election)) {
		return
	}
	i := slices.IndexFunc(e.members, func(m *member) bool { return !m.learner && m.runs() })
	p.lead(e.members[i])
	p.tell("etcd elects %s", e.leader.name)
}

func (p *Plane) lead(m *member) {
	p.etcd.leader = m
	p.etcd.term++
}

// Elect has an election make the machine's member the leader, where it can be.
func (p *Plane) Elect(machine string) {
	if v := p.vms[machine]; v != nil && v.member != nil && !v.member.learner && v.member.runs() && p.etcd.quorum() {
		p.lead(v.member)
		p.tell("etcd elects %s", machine)
	}
}

var (
	errNoQuorum = errors.New("etcd: no leader, or no quorum")
	errLearners = errors.New("etcdserver: too many learner members in cluster")
)

// addLearner is what etcd does: one learner at a time (--max-learners).
func (p *Plane) addLearner(peer string, v *vm) (*member, error) {
	switch {
	case !p.etcd.works():
		return nil, errNoQuorum
	case slices.ContainsFunc(p.etcd.members, func(m *member) bool { return m.learner }):
		return nil, errLearners
	}
	return p.etcd.add(peer, v), nil
}

// promote gives a learner its vote, unless with it the voters that run would be too few (--strict-reconfig-check).
func (p *Plane) promote(m *member) error {
	voters, running := p.etcd.votes()
	if !p.etcd.works() || running+1 <= (voters+1)/2 {
		return errNoQuorum
	}
	m.learner, m.promoted = false, p.Now
	p.tell("%s votes in etcd", m.vm.name)
	return nil
}

// asDecided finds a member and insists that it is as it was decided on, nil when it is gone.
func (p *Plane) asDecided(r live.MemberRef) (*member, error) {
	if !p.etcd.works() {
		return nil, errNoQuorum
	}
	m := p.etcd.find(r.ID)
	if m != nil && (m.name != r.Name || m.peer != r.PeerURL || r.Learner && !m.learner) {
		return nil, fmt.Errorf("%s is another by now: %w", r, rollout.ErrConflict)
	}
	return m, nil
}

// removeMember is etcd's removal, with what the executor makes sure of before it.
func (p *Plane) removeMember(r live.MemberRef) error {
	m, err := p.asDecided(r)
	if m == nil || err != nil {
		return err
	}
	voters, running := p.etcd.votes()
	if !m.learner {
		voters--
		if m.runs() {
			running--
		}
	}
	if running <= voters/2 {
		return fmt.Errorf("etcd: without %s, %d of %d voters would be healthy: %w", r, running, voters, rollout.ErrConflict)
	}
	p.mayGo(m)
	p.etcd.members = slices.DeleteFunc(p.etcd.members, func(o *member) bool { return o == m })
	if m.vm != nil && m.vm.member == m {
		m.vm.member = nil // its etcd ends, and never joins again by itself
	}
	p.elect()
	return nil
}

func (p *Plane) moveLeader(to live.MemberRef) error {
	m, err := p.asDecided(to)
	switch {
	case err != nil:
		return err
	case m == nil:
		return fmt.Errorf("%s is no member any more: %w", to, rollout.ErrConflict)
	case m.learner || !m.runs():
		return fmt.Errorf("%s can't lead", to)
	}
	if p.etcd.leader != m {
		p.lead(m)
	}
	return nil
}

// addPlaceholder gives the one that is there already, if it is.
func (p *Plane) addPlaceholder(peer string) error {
	if slices.ContainsFunc(p.etcd.members, func(m *member) bool { return m.peer == peer }) {
		return nil
	}
	_, err := p.addLearner(peer, nil)
	if errors.Is(err, errLearners) {
		return fmt.Errorf("%w: %w", rollout.ErrConflict, err)
	}
	return err
}
