// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"fmt"
	"strings"

	"github.com/theseus-gitops/theseus/reconcile/live"
	"github.com/theseus-gitops/theseus/reconcile/logbook"
)

// join goes on with the machine that is being added.
func (p *plane) join(pending logbook.Pending) Decision {
	m := p.all.Find(pending.Name)
	wanted := pending.Target == p.want.target()
	switch {
	case pending.GivenUp != "":
		return p.takeBack(pending)
	case !pending.Joined.IsZero():
		return p.joined(pending)
	case m == nil && !wanted:
		return p.forget(pending, "it was not made yet, and "+notWanted, false)
	case m == nil:
		return Do{Step: p.addStep(pending, nil)}
	case !wanted:
		return p.giveUpMachine(pending, notWanted)
	case (m.Missing || m.Broken) && m.Node == nil:
		return p.giveUpMachine(pending, "Terraform did not make it whole")
	}
	return p.awaitJoined(pending, *m)
}

// mayBeLost reports whether the machine that is being added may exist without that Terraform's state knows it. Only the process
// that broke the lock knows, so it is written down before anything else is done, even if nobody wants the machine any more.
func (p *plane) mayBeLost() bool {
	pending := p.book.Pending
	return p.have.Machines.Interrupted && pending != nil && pending.GivenUp == "" && pending.Joined.IsZero() && p.all.Find(pending.Name) == nil
}

// joinsUnseen reports whether a machine is joining that an earlier process added. Etcd is not looked at before it is whole as
// far as Kubernetes tells: to obtain credentials anew would take away those that it joins with.
func (p *plane) joinsUnseen() bool {
	pending := p.book.Pending
	if pending == nil || pending.GivenUp != "" || !pending.Joined.IsZero() {
		return false
	}
	m := p.all.Find(pending.Name)
	return m != nil && len(p.joinProblems(*m)) > 0
}

// Reasons to take a machine back that are no fault of it.
const (
	notWanted = "the spec wants something else by now"
	// interrupted machines get another name: what Terraform had made before it was killed, its state may not know.
	interrupted = "Terraform was killed while it made it; look for a machine of that name which Terraform's state does not know, and delete it"
)

// faultless reports whether a machine was given up for a reason that says nothing against its target.
func faultless(why string) bool { return why == notWanted || why == interrupted }

// awaitJoined waits for a machine to become a healthy part of the plane. Being Ready is not enough: a member that is still
// a learner, or an API server that nobody is sent to, carries nothing yet (k0sproject/k0smotron#1481).
func (p *plane) awaitJoined(pending logbook.Pending, m live.MergedMachine) Decision {
	missing := p.joinProblems(m)
	if len(missing) == 0 {
		return Do{Step: Step{
			Subject: m.Name, Why: "it is a healthy part of the control plane", Act: Note{"await-joined"},
			Before: p.note(func(b *logbook.Book, _ *logbook.Roll) {
				next := pending
				next.Joined = p.now
				b.Pending, b.Members = &next, p.recorded()
			}),
		}}
	}
	if csr := p.pendingCSR(m); csr != "" && p.want.ApproveCSR {
		return Do{Step: Step{Subject: m.Name, Why: "its kubelet's certificate is to be approved (controlPlane.approveServingCSR)", Act: ApproveServingCSR{Name: csr, Node: m.Node.Name}}}
	}
	deadline := pending.Made.Add(p.want.Timeouts.Join)
	if pending.Made.IsZero() { // killed just then: it was made at some time
		deadline = pending.Since.Add(p.want.Timeouts.Create + p.want.Timeouts.Join)
	}
	why := strings.Join(missing, ", ")
	if !p.now.Before(deadline) {
		return p.giveUpMachine(pending, "it did not join in time: "+why)
	}
	return Wait{Until: deadline, Why: m.Name + " is joining: " + why, Subject: m.Name, ResumedBy: AwaitedJoin}
}

// joinProblems are what a new machine still lacks.
func (p *plane) joinProblems(m live.MergedMachine) []string {
	out := p.problems(m)
	if m.Node == nil {
		return out
	}
	if m.Node.KubeletVersion != p.want.Kubernetes.String() {
		out = append(out, fmt.Sprintf("its kubelet is %s instead of %s", m.Node.KubeletVersion, p.want.Kubernetes))
	}
	if csr := p.pendingCSR(m); csr != "" {
		out = append(out, fmt.Sprintf("the certificate request %s of its kubelet is not approved", csr))
	}
	if plane := p.have.Kube.Plane; plane.Served != nil && !plane.ServedBy(m.Node.Name) {
		out = append(out, "the endpoint does not lead to its API server yet")
	}
	return out
}

func (p *plane) pendingCSR(m live.MergedMachine) string {
	if m.Node == nil {
		return ""
	}
	return p.have.Kube.Plane.Parts[m.Node.Name].PendingCSR
}

// joined is a machine that was seen whole: what let it in is deleted, and it must stay whole for a while.
func (p *plane) joined(pending logbook.Pending) Decision {
	if p.have.Kube.Plane.Credentials {
		return p.deleteCredentials(pending.Name + " has joined, and nothing else is to")
	}
	if sick := p.sick(""); len(sick) > 0 {
		return p.heal(sick)
	}
	if until := pending.Joined.Add(p.want.StableFor); p.now.Before(until) {
		return Wait{Until: until, Why: fmt.Sprintf("%s must stay healthy for %s", pending.Name, p.want.StableFor), Subject: pending.Name, ResumedBy: AwaitedTime}
	}
	return Do{Step: Step{
		Subject: pending.Name, Why: fmt.Sprintf("it has been healthy for %s", p.want.StableFor), Act: Note{noteStable},
		Before: p.note(func(b *logbook.Book, _ *logbook.Roll) { b.Pending = nil }),
	}}
}

// giveUpMachine writes down that a machine is taken back, before anything of it is undone.
func (p *plane) giveUpMachine(pending logbook.Pending, why string) Decision {
	return Do{Step: Step{
		Subject: pending.Name, Why: "it is taken back: " + why, Act: Note{"give-up-machine"},
		Before: p.note(func(b *logbook.Book, _ *logbook.Roll) {
			next := pending
			next.GivenUp = why
			b.Pending = &next
		}),
	}}
}
