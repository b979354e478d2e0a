// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/theseus-gitops/theseus/reconcile/live"
	"github.com/theseus-gitops/theseus/reconcile/logbook"
)

// fenced is from how few voters on a placeholder guards the way back. A member that is promoted between our look and the
// machine's destruction leaves a voter that is gone: beside three or more that costs nothing, beside fewer the quorum,
// for ever (kubernetes-sigs/cluster-api#11772).
const fenced = 3

// placeholderURL is where the placeholder learner pretends to be: an address for documentation (RFC 5737), on which nothing
// ever answers.
const placeholderURL = "https://192.0.2.1:2380"

// takeBack undoes the adding of a machine, from wherever it was:
//
//	credentials → learner removed → [placeholder added] → machine destroyed → [placeholder removed] → Node deleted
//
// etcd allows one learner at a time, and kubeadm does not add its own again: while the placeholder is there, nobody joins.
func (p *plane) takeBack(pending logbook.Pending) Decision {
	if p.have.Kube.Plane.Credentials {
		return p.deleteCredentials(pending.Name + " is taken back, and must not join any more")
	}
	m, own := p.all.Find(pending.Name), p.memberOf(pending)
	placeholder := p.placeholder(pending)
	if own != nil && !own.Learner {
		return p.promoted(pending, *own, placeholder)
	}
	if own != nil {
		return Do{Step: Step{
			Subject: own.Ref().String(), Why: "the machine that it belongs to is taken back", Act: RemoveMember{Member: own.Ref()},
		}}
	}
	guarded := m != nil && p.have.Etcd.Count().Voters < fenced
	if guarded && placeholder == nil {
		return Do{Step: Step{
			Subject: subjectEtcd, Why: "a machine that is still joining could become a voter just before it is destroyed, and the quorum would be lost",
			Act: AddPlaceholder{placeholderURL},
			Before: p.note(func(b *logbook.Book, _ *logbook.Roll) {
				next := pending
				next.Placeholder = placeholderURL
				b.Pending = &next
			}),
		}}
	}
	return p.clear(pending, m, placeholder)
}

// clear removes what is left of a machine whose member can't come back: the machine, the placeholder, the Node.
func (p *plane) clear(pending logbook.Pending, m *live.MergedMachine, placeholder *live.Member) Decision {
	switch {
	case m != nil && (m.Missing || m.Broken) && m.Node == nil:
		return Do{Step: Step{Subject: m.Name, Why: "Terraform did not make it whole", Act: DropEntry{m.Name}, Limit: p.want.Timeouts.Destroy}}
	case m != nil:
		return Do{Step: Step{Subject: m.Name, Why: pending.GivenUp, Act: DestroyMachine{m.Name}, Limit: p.want.Timeouts.Destroy}}
	case placeholder != nil:
		return p.removePlaceholder(*placeholder)
	}
	if node := p.node(pending.Name); node != nil {
		return Do{Step: Step{Subject: node.Name, Why: "its machine is gone", Act: DeleteNode{node.Name}}}
	}
	return p.forget(pending, pending.GivenUp, !faultless(pending.GivenUp))
}

func (p *plane) removePlaceholder(m live.Member) Decision {
	return Do{Step: Step{Subject: subjectEtcd, Why: "nothing is joining any more", Act: RemovePlaceholder{m.Ref()}}}
}

// promoted is a machine that became a voter while it was being taken back. It can't be destroyed just so: the roll goes
// forward, and removes it like any other machine if it is not wanted.
func (p *plane) promoted(pending logbook.Pending, own live.Member, placeholder *live.Member) Decision {
	if placeholder != nil {
		return p.removePlaceholder(*placeholder)
	}
	m := p.all.Find(pending.Name)
	if m == nil {
		return p.removeStray(own, "its machine was taken back")
	}
	if p.wantsGone(pending) {
		return p.beginLeavingAs(*m, pending.GivenUp, func(b *logbook.Book) {
			b.Pending = nil
			p.failedAttempt(b, pending)
		})
	}
	return Do{Step: Step{
		Subject: m.Name, Why: "its member has become a voter meanwhile, so that the plane goes on with it", Act: Note{"await-joined"},
		Before: p.note(func(b *logbook.Book, _ *logbook.Roll) { b.Pending, b.Members = nil, p.recorded() }),
	}}
}

// wantsGone reports whether a machine that became a voter has to leave at once: because it never became healthy, or because
// nobody wants it. In a plane with room for it, an unwanted one that is whole may stay until the next look decides.
func (p *plane) wantsGone(pending logbook.Pending) bool {
	m := p.all.Find(pending.Name)
	return len(p.problems(*m)) > 0 || p.stale(*m) != "" || len(p.all.Machines) > p.want.Replicas+p.want.Surge
}

// memberOf is the member that the pending machine brought: its own by name or address, or else one that was not there
// when the machine was begun. Nil when there is none.
func (p *plane) memberOf(pending logbook.Pending) *live.Member {
	if m := p.all.Find(pending.Name); m != nil && m.Member != nil {
		return m.Member
	}
	known := map[string]bool{}
	for _, m := range p.book.Members {
		known[m.ID] = true
	}
	// A machine that Terraform does not know has perhaps a Node all the same, and its member counts as that Node's.
	for i, e := range p.have.Etcd.Members {
		if strings.EqualFold(e.Name, pending.Name) {
			return &p.have.Etcd.Members[i]
		}
	}
	for i, e := range p.all.Members {
		if !known[e.ID.String()] && !slices.Contains(e.PeerURLs, pending.Placeholder) && !e.Started() {
			return &p.all.Members[i]
		}
	}
	return nil
}

// placeholder is the learner that we added for the pending machine, nil when it is not there.
func (p *plane) placeholder(pending logbook.Pending) *live.Member {
	for i, e := range p.all.Members {
		if pending.Placeholder != "" && slices.Contains(e.PeerURLs, pending.Placeholder) {
			return &p.all.Members[i]
		}
	}
	return nil
}

// node is the Node of that name, nil if there is none.
func (p *plane) node(name string) *live.Node {
	for i := range p.have.Kube.Nodes {
		if strings.EqualFold(p.have.Kube.Nodes[i].Name, name) {
			return &p.have.Kube.Nodes[i]
		}
	}
	return nil
}

// forget ends the adding of a machine of which nothing is left.
func (p *plane) forget(pending logbook.Pending, why string, failed bool) Decision {
	return Do{Step: Step{
		Subject: pending.Name, Why: "nothing of it is left: " + why, Act: Note{noteForgotten},
		Before: p.note(func(b *logbook.Book, _ *logbook.Roll) {
			b.Pending = nil
			if failed {
				p.failedAttempt(b, pending)
			}
		}),
	}}
}

// failedAttempt counts a failed machine, and remembers the failure for the target that it was made for.
func (p *plane) failedAttempt(b *logbook.Book, pending logbook.Pending) {
	if pending.Target != p.want.target() || faultless(pending.GivenUp) {
		return
	}
	attempts := map[string]int{p.Revision: b.Attempts[p.Revision]} // counts of other specs are over
	attempts[p.Revision]++
	b.Attempts = attempts
	b.FailedTarget = &logbook.FailedTarget{
		Target: pending.Target, Revision: p.Revision, Since: p.now, Reason: "MachinesFailed",
		Message: "machine " + pending.Name + " was added and taken back: " + pending.GivenUp,
		Remedy:  "see the machine's console and /var/log/cloud-init-output.log with the next one; to try the same again, set spec.retry to any new text",
	}
}

// strays removes members whose machines are gone, one at a time; nil when there are none.
func (p *plane) strays() Decision {
	known := map[string]string{}
	for name, m := range p.book.Members {
		known[m.ID] = name
	}
	if len(p.all.Members) == 0 {
		return nil
	}
	e := slices.MinFunc(p.all.Members, func(a, b live.Member) int { return strings.Compare(a.Name, b.Name) }) // unnamed ones first
	switch name := known[e.ID.String()]; {
	case slices.Contains(e.PeerURLs, placeholderURL):
		return p.removePlaceholder(e)
	case name != "":
		return p.removeStray(e, "its machine "+name+" is gone")
	}
	return Stalled{Failure: Failure{
		Reason:  "UnknownMember",
		Message: "etcd has " + e.Ref().String() + " at " + strings.Join(e.PeerURLs, ", ") + ", which belongs to no machine and was never recorded",
		Remedy:  "if nothing runs there, remove it: etcdctl member remove " + e.ID.String(),
	}}
}

// removeStray is the step that removes a member without machine, where etcd can spare it.
func (p *plane) removeStray(e live.Member, why string) Decision {
	if left := p.have.Etcd.CountWithout(e.ID); !p.have.Etcd.Confirmed || !left.Quorum() {
		return Stalled{Failure: Failure{
			Reason: "EtcdNoQuorum", Message: e.Ref().String() + " should go, because " + why + ", but etcd would have no quorum without it",
			Remedy: "bring the other members back first",
		}}
	}
	return Do{Step: Step{
		Subject: e.Ref().String(), Why: why, Act: RemoveMember{Member: e.Ref()},
		After: p.noteAfter(func(b *logbook.Book, _ *logbook.Roll, _ time.Time) {
			b.Members, b.Serial = maps.Clone(b.Members), p.lastSerial()
			maps.DeleteFunc(b.Members, func(_ string, m logbook.Member) bool { return m.ID == e.ID.String() })
		}),
	}}
}
