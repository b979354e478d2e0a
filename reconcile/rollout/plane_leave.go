// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/theseus-gitops/theseus/reconcile/live"
	"github.com/theseus-gitops/theseus/reconcile/logbook"
)

// beginLeaving is the step that begins a machine's removal.
func (p *plane) beginLeaving(m live.MergedMachine) Decision {
	why := p.stale(m)
	if why == "" {
		why = fmt.Sprintf("%s wanted, there are %d", count(p.want.Replicas, "machine"), len(p.all.Machines))
	}
	return p.beginLeavingAs(m, why, func(*logbook.Book) {})
}

func (p *plane) beginLeavingAs(m live.MergedMachine, why string, change func(b *logbook.Book)) Decision {
	if others := p.sick(m.Name); len(others) > 0 && p.book.Pending == nil {
		return p.heal(others)
	}
	if !p.safeWithout(&m) {
		return Stalled{Failure: Failure{
			Reason: "EtcdNoQuorum", Message: fmt.Sprintf("machine %s is to go, but etcd would have no quorum without its member", m.Name),
			Remedy: "bring the other members back first",
		}}
	}
	leaving := logbook.Leaving{Name: m.Name, Since: p.now}
	before := p.note(func(b *logbook.Book, _ *logbook.Roll) {
		change(b)
		if m.Member != nil {
			leaving.MemberID = m.Member.ID.String()
		}
		if m.Node != nil {
			leaving.Node = m.Node.Name
		}
		b.Leaving, b.Members, b.Serial = &leaving, p.recorded(), p.lastSerial()
	})
	if m.Node == nil {
		return Do{Step: Step{Subject: m.Name, Why: why, Act: Note{"mark-leaving"}, Before: before}}
	}
	return Do{Step: Step{Subject: m.Name, Why: why, Act: MarkLeaving{m.Node.Name}, Before: before}}
}

// leave goes on with the machine that is being removed, in the order that keeps it able to end its pods: its kubelet talks
// to the API server beside it, which ends with the member (kubernetes-sigs/cluster-api#11138). So the member goes last.
func (p *plane) leave(leaving logbook.Leaving) Decision {
	m := p.all.Find(leaving.Name)
	member := p.leavingMember(leaving)
	if m == nil {
		return p.gone(leaving, member)
	}
	node := p.leavingNode(leaving, *m)
	if member != nil && p.wantedAgain(*m) && m.Serving && leaving.Left.IsZero() {
		return p.stay(leaving, node)
	}
	if node != nil {
		if d := p.empty(leaving, *m, *node); d != nil {
			return d
		}
	}
	if member != nil {
		return p.removeMember(*m, *member)
	}
	if (m.Missing || m.Broken) && node == nil {
		return Do{Step: Step{Subject: m.Name, Why: "Terraform's state has it only half", Act: DropEntry{m.Name}, Limit: p.want.Timeouts.Destroy}}
	}
	return Do{Step: Step{Subject: m.Name, Why: "its pods and its etcd member are gone", Act: DestroyMachine{m.Name}, Limit: p.want.Timeouts.Destroy}}
}

// empty is what is left to do on the node itself, nil when nothing is. A node that does not answer can't end its pods, so
// nothing is waited for there.
func (p *plane) empty(leaving logbook.Leaving, m live.MergedMachine, node live.Node) Decision {
	if node.Leaving == "" {
		return Do{Step: Step{Subject: m.Name, Why: "it is marked as leaving before anything of it ends", Act: MarkLeaving{node.Name}}}
	}
	if node.Ready {
		for _, next := range []func(logbook.Leaving, live.MergedMachine, live.Node) Decision{p.leaveSelf, p.handOver, p.cordon, p.drain, p.leaveEndpoint} {
			if d := next(leaving, m, node); d != nil {
				return d
			}
		}
	}
	return nil
}

// leavingNode is the Node that has to go with the machine, nil when there is none.
func (p *plane) leavingNode(leaving logbook.Leaving, m live.MergedMachine) *live.Node {
	if leaving.Node == "" {
		return m.Node
	}
	return p.node(leaving.Node)
}

// leavingMember is the member that has to go with the machine, nil when it is gone.
func (p *plane) leavingMember(leaving logbook.Leaving) *live.Member {
	for i, e := range p.have.Etcd.Members {
		if e.ID.String() == leaving.MemberID {
			return &p.have.Etcd.Members[i]
		}
	}
	return nil
}

// wantedAgain reports whether the machine would not have to go, were it not marked.
func (p *plane) wantedAgain(m live.MergedMachine) bool {
	return p.stale(m) == "" && len(p.all.Machines) <= p.want.Replicas && len(p.problems(m)) == 0
}

// stay takes a mark back.
func (p *plane) stay(leaving logbook.Leaving, node *live.Node) Decision {
	if node == nil {
		before := p.note(func(b *logbook.Book, _ *logbook.Roll) { b.Leaving = nil })
		return Do{Step: Step{Subject: leaving.Name, Why: "it is wanted again", Act: Note{"unmark-leaving"}, Before: before}}
	}
	after := p.noteAfter(func(b *logbook.Book, _ *logbook.Roll, _ time.Time) { b.Leaving = nil })
	return Do{Step: Step{Subject: leaving.Name, Why: "it is wanted again", Act: UnmarkLeaving{node.Name}, After: after}}
}

// leaveSelf sees to it that this process does not end in the middle of a drain of its own: new pods are kept away, then the
// pass ends, and the next one starts elsewhere.
func (p *plane) leaveSelf(leaving logbook.Leaving, m live.MergedMachine, node live.Node) Decision {
	if p.have.Kube.Plane.OwnNode != node.Name {
		return nil
	}
	if d := p.cordon(leaving, m, node); d != nil {
		return d
	}
	return Wait{Until: p.now.Add(observeAgain), Why: "Theseus itself runs on " + node.Name + ", which is to be drained: the next run starts on another node and goes on", Subject: m.Name, ResumedBy: AwaitedNothing}
}

// handOver moves leadership away from a member that is to go, to one that stays.
func (p *plane) handOver(_ logbook.Leaving, m live.MergedMachine, _ live.Node) Decision {
	if !p.leads(m) {
		return nil
	}
	to := p.successor(m)
	if to == nil {
		return nil // an election follows; with quorum it ends by itself (kubernetes-sigs/cluster-api#8465)
	}
	return Do{Step: Step{Subject: to.Name, Why: fmt.Sprintf("%s leads etcd and is to go", m.Name), Act: MoveLeader{to.Ref()}}}
}

// successor is the member that leadership goes to: one that is as wanted before others, then the newest.
func (p *plane) successor(but live.MergedMachine) *live.Member {
	outdated := p.outdated()
	var best *live.MergedMachine
	for _, m := range p.byAge() {
		if m.Name == but.Name || m.Member == nil || !m.Member.Healthy() || m.Node == nil || m.Node.Leaving != "" {
			continue
		}
		if best == nil || outdated[m.Name] == "" || outdated[best.Name] != "" {
			best = &m
		}
	}
	if best == nil {
		return nil
	}
	return best.Member
}

func (p *plane) cordon(_ logbook.Leaving, m live.MergedMachine, node live.Node) Decision {
	if !node.Schedulable {
		return nil
	}
	return Do{Step: Step{Subject: m.Name, Why: "no new pod is to come to it", Act: Cordon{node.Name}}}
}

// drain waits for the pods to go, then for the volumes. Nothing is forced.
func (p *plane) drain(leaving logbook.Leaving, m live.MergedMachine, node live.Node) Decision {
	parts := p.have.Kube.Plane.Parts[node.Name]
	switch {
	case !leaving.Drained.IsZero():
		return nil
	case len(parts.Pods) > 0:
		return p.evict(leaving, node.Name, parts.Pods)
	case len(parts.Volumes) > 0:
		return p.detach(leaving, m, parts.Volumes)
	}
	return Do{Step: Step{
		Subject: m.Name, Why: "its pods are gone and no volume is attached to it", Act: Note{"await-detached"},
		Before: p.note(func(b *logbook.Book, _ *logbook.Roll) {
			next := leaving
			next.Drained = p.now
			b.Leaving = &next
		}),
	}}
}

// drainAgain is how long after a drain that took too long another one is begun. That is in another pass.
const drainAgain = time.Minute

// evict moves the pods away, for as long as a drain may take. What was too long once is tried again by a later pass, if there
// is a pod that can go now: a budget may have room by then, and a process may have been killed while the time went by.
func (p *plane) evict(leaving logbook.Leaving, node string, pods []live.Evictee) Decision {
	if f := p.consent(leaving.Name, pods); f != nil {
		return Stalled{Failure: *f}
	}
	step := Step{
		Subject: leaving.Name, Why: "to move to other nodes: " + count(len(pods), "pod"),
		Act: Drain{Node: node, Pods: pods},
	}
	deadline := leaving.Draining.Add(p.want.Timeouts.Drain)
	switch canGo := slices.ContainsFunc(pods, func(e live.Evictee) bool { return !e.Terminating && len(e.Budgets) == 0 }); {
	case leaving.Draining.IsZero(), canGo && p.now.After(deadline.Add(drainAgain)):
		step.Before = p.note(func(b *logbook.Book, _ *logbook.Roll) {
			next := leaving
			next.Draining = p.now
			b.Leaving = &next
		})
	case !p.now.Before(deadline):
		return Stalled{Failure: p.drainBlocked(leaving.Name, pods)}
	}
	return Do{Step: step}
}

// detach waits for the volumes to be detached.
func (p *plane) detach(leaving logbook.Leaving, m live.MergedMachine, volumes []string) Decision {
	text := "volumes are attached to it: " + strings.Join(volumes, ", ")
	deadline := cmp.Or(leaving.Draining, leaving.Since).Add(p.want.Timeouts.Drain + p.want.Timeouts.Detach)
	if !p.now.Before(deadline) {
		return Stalled{Failure: Failure{
			Reason: "VolumesAttached", Message: fmt.Sprintf("machine %s is drained, but %s", m.Name, text),
			Remedy: "see why they do not detach (kubectl get volumeattachments); the next pass looks again",
		}}
	}
	return Wait{Until: deadline, Why: m.Name + ": " + text, Subject: m.Name, ResumedBy: AwaitedDetach}
}

func (p *plane) drainBlocked(machine string, pods []live.Evictee) Failure {
	reasons := budgetBlocks(pods)
	for _, pod := range pods {
		switch {
		case pod.Terminating:
			reasons = append(reasons, fmt.Sprintf("pod %s was evicted and has not ended", pod))
		case len(pod.Budgets) == 0:
			reasons = append(reasons, fmt.Sprintf("pod %s was not evicted", pod))
		}
	}
	return Failure{
		Reason:  "DrainBlocked",
		Message: fmt.Sprintf("machine %s could not be drained within %s: %s", machine, p.want.Timeouts.Drain, strings.Join(reasons, "; ")),
		Remedy:  "see to these pods, or give more time with controlPlane.timeouts.drain; the next pass looks again",
	}
}

// leaveEndpoint sees to it that nobody is sent to an API server that is about to end, and that those who are connected to it
// go elsewhere. It ends in order, before its etcd member: so it tells its clients to connect anew, which they do at once. Those
// of a machine that is just destroyed wait for answers until their time is over, kubelets of workers for as long as it takes to
// be called NotReady.
func (p *plane) leaveEndpoint(leaving logbook.Leaving, m live.MergedMachine, node live.Node) Decision {
	if p.have.Machines.ActsOnServing {
		if m.Serving {
			return Do{Step: Step{Subject: m.Name, Why: "clients are no longer to be sent to it", Act: LeaveEndpoint{m.Name}, Limit: p.want.Timeouts.Destroy}}
		}
		if d := p.awaitUnserved(leaving, m, node); d != nil && leaving.Left.IsZero() {
			return d
		}
	}
	if !leaving.Left.IsZero() {
		return p.awaitUnserved(leaving, m, node)
	}
	if member := p.leavingMember(leaving); member != nil {
		if d := p.quorumWithout(m, *member); d != nil {
			return d // as long as it might have to stay, it serves
		}
	}
	why := "the endpoint finds machines by their health, so its API server ends before its etcd member"
	if p.have.Machines.ActsOnServing {
		why = "who is still connected to its API server is to go elsewhere before it ends"
	}
	return Do{Step: Step{
		Subject: m.Name, Why: why,
		Act: StopAPIServer{Node: node.Name, Image: p.have.Kube.Plane.Parts[node.Name].APIServer.Image},
		After: p.noteAfter(func(b *logbook.Book, _ *logbook.Roll, now time.Time) {
			next := leaving
			next.Left = now
			b.Leaving = &next
		}),
	}}
}

// awaitUnserved waits until the endpoint leads to the machine no more, with patience: its API server ends whatever the load
// balancer believes, and its health check then tells it.
func (p *plane) awaitUnserved(leaving logbook.Leaving, m live.MergedMachine, node live.Node) Decision {
	plane := p.have.Kube.Plane
	until := cmp.Or(leaving.Left, leaving.Drained, leaving.Since).Add(endpointPatience)
	if plane.Served == nil || !plane.ServedBy(node.Name) || !p.now.Before(until) {
		return nil
	}
	return Wait{Until: until, Why: fmt.Sprintf("the endpoint still leads to %s", m.Name), Subject: m.Name, ResumedBy: AwaitedEndpoint}
}

// quorumWithout waits until what remains has a quorum without the member; nil when it has.
func (p *plane) quorumWithout(m live.MergedMachine, member live.Member) Decision {
	left := p.have.Etcd.CountWithout(member.ID)
	if p.have.Etcd.Confirmed && left.Quorum() && left.Settled() {
		return nil
	}
	return Wait{
		Until: p.now.Add(healthPatience), Subject: m.Name, ResumedBy: AwaitedHealth,
		Why: fmt.Sprintf("without %s, %d of %d voters would be healthy, with %d learners", m.Name, left.Healthy, left.Voters, left.Learners),
		Else: &Failure{
			Reason: "EtcdNoQuorum", Message: fmt.Sprintf("the member of %s is to be removed, but of the %d voters left only %d are healthy", m.Name, left.Voters, left.Healthy),
			Remedy: "bring the other members back; the next pass then goes on",
		},
	}
}

// removeMember is the step that no way leads back from, so what remains is looked at once more.
func (p *plane) removeMember(m live.MergedMachine, member live.Member) Decision {
	if d := p.quorumWithout(m, member); d != nil {
		return d
	}
	if p.have.Etcd.Leader() == member.ID {
		if to := p.successor(m); to != nil {
			return Do{Step: Step{Subject: to.Name, Why: fmt.Sprintf("%s leads etcd again and is to go", m.Name), Act: MoveLeader{to.Ref()}}}
		}
	}
	left := p.have.Etcd.CountWithout(member.ID)
	return Do{Step: Step{
		Subject: m.Name, Why: "what stays has a quorum: " + count(left.Healthy, "healthy voter") + fmt.Sprintf(" of %d", left.Voters),
		Act: RemoveMember{Member: member.Ref(), Machine: m.Name},
	}}
}

// gone ends a removal once Terraform has destroyed the machine.
func (p *plane) gone(leaving logbook.Leaving, member *live.Member) Decision {
	if member != nil {
		return p.removeStray(*member, "its machine "+leaving.Name+" is gone")
	}
	if node := p.node(leaving.Node); node != nil && leaving.Node != "" {
		return Do{Step: Step{Subject: leaving.Name, Why: "its machine is gone", Act: DeleteNode{node.Name}}}
	}
	counts := count(len(p.all.Machines), "machine") + ", " + count(p.have.Etcd.Count().Voters, "voter")
	return Do{Step: Step{
		Subject: leaving.Name, Why: "nothing of it is left: " + counts, Act: Note{noteGone},
		Before: p.note(func(b *logbook.Book, _ *logbook.Roll) {
			b.Leaving, b.Members = nil, without(b.Members, leaving.Name)
		}),
	}}
}

// endpointPatience is how long a load balancer may take to notice that a machine no longer serves.
const endpointPatience = 2 * time.Minute

// proxy is kube-proxy's part, once all API servers are new: it may never be newer than any of them.
func (p *plane) proxy() Decision {
	proxy := p.have.Kube.KubeProxy
	if proxy == nil || proxy.Image == "" {
		return nil
	}
	want := p.want.Kubernetes.String()
	name, tag, found := strings.Cut(lastPart(proxy.Image), ":")
	if !found || strings.Contains(proxy.Image, "@") || name != "kube-proxy" {
		return nil // a digest or an image of one's own is nobody's to change (kubernetes-sigs/cluster-api fails here)
	}
	if tag != want {
		return Do{Step: Step{
			Subject: "daemonset/kube-proxy", Why: fmt.Sprintf("all API servers run %s, kube-proxy %s", want, tag),
			Act: UpdateKubeProxy{Image: strings.TrimSuffix(proxy.Image, tag) + want, ResourceVersion: proxy.ResourceVersion},
		}}
	}
	return p.proxyRolledOut(*proxy)
}

// proxyRolledOut waits for kube-proxy on every node. A DaemonSet that replaces nothing by itself is its owner's to finish.
func (p *plane) proxyRolledOut(proxy live.KubeProxy) Decision {
	r := proxy.Rollout
	if r.Complete() || r.Paused {
		return nil
	}
	why := fmt.Sprintf("kube-proxy %s: %d of %d nodes updated, %d not available", tagOf(proxy.Image), r.Updated, r.Wanted, r.Unavailable)
	return Wait{
		Until: p.now.Add(healthPatience), Why: why, Subject: "daemonset/kube-proxy", ResumedBy: AwaitedProxyRollout,
		Else: &Failure{
			Reason: "KubeProxyNotRolledOut", Message: why,
			Remedy: "see why its pods do not come up (kubectl -n kube-system describe pods -l k8s-app=kube-proxy); the next pass goes on",
		},
	}
}

// lastPart is an image reference without registry and path.
func lastPart(image string) string { return image[strings.LastIndexByte(image, '/')+1:] }
