// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/theseus-gitops/theseus/reconcile/kubeadmconfig"
	"github.com/theseus-gitops/theseus/reconcile/live"
	"github.com/theseus-gitops/theseus/reconcile/logbook"
)

// plane is one look at the control plane: what is wanted, what is there, and what follows from the two alone.
type plane struct {
	Want
	want WantPlane
	have live.Cluster
	now  time.Time
	all  live.Merged
	book logbook.Book
	// config are the facts of kubeadm-config.
	config kubeadmconfig.Facts
}

// nextPlane decides the control plane's part, and is nil when that is as wanted. The order is that of a roll:
//
//	module idle → credentials → [snapshot] → roles → kubeadm-config → kubelet-config →
//	per machine: add → joined → credentials deleted → stable → an old one leaves → kube-proxy
//
// A machine that was begun, to be added or to be removed, comes before everything else: the plane must come to rest.
func nextPlane(want Want, have live.Cluster, now time.Time) Decision {
	if have.Machines == nil || have.Kube.Plane == nil {
		return Wait{Until: now.Add(observeAgain), Why: "the control plane's machines were not observed yet", ResumedBy: AwaitedNothing}
	}
	p := &plane{Want: want, want: *want.Plane, have: have, now: now, all: live.Merge(have), book: have.Kube.Book}
	if failure := p.read(); failure != nil {
		return Stalled{Failure: *failure}
	}
	if have.Kube.Plane.Credentials && p.book.Pending == nil {
		return p.deleteCredentials("an interrupted run left them")
	}
	if p.settled() {
		return p.afterwards()
	}
	return p.roll()
}

// roll goes on with a roll, or begins one.
func (p *plane) roll() Decision {
	if p.book.Pending == nil && p.book.Leaving == nil {
		if failure := p.refuse(); failure != nil {
			return Stalled{Failure: *failure}
		}
		if !p.have.Machines.Idle && p.halfMade() == nil {
			return Do{Notices: p.preview(), Step: Step{
				Subject: subjectModule, Why: "the module must plan no change of its own before machines are replaced",
				Act: CheckModule{},
			}}
		}
	}
	switch {
	case p.mayBeLost():
		return p.giveUpMachine(*p.book.Pending, interrupted)
	case p.have.Etcd == nil && p.joinsUnseen():
		return p.join(*p.book.Pending)
	case p.have.Etcd == nil:
		return p.obtainCredentials()
	case p.book.Leaving != nil:
		return p.leave(*p.book.Leaving)
	case p.book.Pending != nil:
		return p.join(*p.book.Pending)
	}
	return p.rest()
}

const subjectModule = "terraform"

// planeDone is the end for a plane and CoreDNS that are both as wanted.
func planeDone(want Want, have live.Cluster, dns Done) Done {
	p := &plane{Want: want, want: *want.Plane, have: have, all: live.Merge(have), book: have.Kube.Book}
	dns.Why = fmt.Sprintf("%s with Kubernetes %s; %s", count(len(p.all.Machines), "control-plane machine"), p.want.Kubernetes, dns.Why)
	for _, n := range p.all.Nodes {
		dns.Notices = append(dns.Notices, fmt.Sprintf("control-plane node %s is not in the module's registry: it is left alone, and no roll begins while it is there", n.Name))
	}
	for _, m := range p.all.Machines {
		if m.Node == nil || !m.Node.Ready {
			dns.Notices = append(dns.Notices, fmt.Sprintf("machine %s has no Ready Node", m.Name))
		}
	}
	return dns
}

// read understands kubeadm-config, without which no machine can be judged nor join.
func (p *plane) read() *Failure {
	cfg := p.have.Kube.KubeadmConfig
	if cfg == nil {
		return &Failure{
			Reason: "KubeadmConfigMissing", Message: "ConfigMap kube-system/kubeadm-config does not exist, and without it no machine can join",
			Remedy: "restore it with `kubeadm init phase upload-config kubeadm` on a control-plane machine",
		}
	}
	var err error
	if p.config, err = kubeadmconfig.Read(cfg.ClusterConfiguration); err != nil {
		return &Failure{
			Reason: "KubeadmConfigUnreadable", Message: "ConfigMap kube-system/kubeadm-config, key ClusterConfiguration: " + err.Error(),
			Remedy: "correct it by hand, or write it again with `kubeadm init phase upload-config kubeadm`",
		}
	}
	return nil
}

// settled reports whether the machines are as wanted and nothing was left half done.
func (p *plane) settled() bool {
	return p.book.Pending == nil && p.book.Leaving == nil && len(p.all.Machines) == p.want.Replicas && p.halfMade() == nil && len(p.outdated()) == 0
}

// afterwards is what follows once all machines are as wanted.
func (p *plane) afterwards() Decision {
	if text, failure := p.wantedConfig(); failure == nil && text != p.have.Kube.KubeadmConfig.ClusterConfiguration {
		return p.syncConfig(text, "kubeadm-config is to name the version that the machines have")
	}
	return p.proxy()
}

// halfMade is a machine that Terraform did not make, or only half, and that nobody is waiting for; nil when there is none.
// One that has joined nevertheless is in use and must be replaced like any other.
func (p *plane) halfMade() *live.MergedMachine {
	for i, m := range p.all.Machines {
		if (m.Missing || m.Broken) && m.Node == nil && m.Member == nil && !p.inHand(m.Name) {
			return &p.all.Machines[i]
		}
	}
	return nil
}

// inHand reports whether the machine is being added or removed.
func (p *plane) inHand(name string) bool {
	return p.book.Pending != nil && p.book.Pending.Name == name || p.book.Leaving != nil && p.book.Leaving.Name == name
}

// outdated are the machines that are not as wanted, by name, and why.
func (p *plane) outdated() map[string]string {
	out := map[string]string{}
	for _, m := range p.all.Machines {
		if why := p.stale(m); why != "" {
			out[m.Name] = why
		}
	}
	return out
}

// stale is why a machine has to be replaced, "" when it has not.
func (p *plane) stale(m live.MergedMachine) string {
	version := p.want.Kubernetes.String()
	switch {
	case m.KubernetesVersion != version:
		return fmt.Sprintf("it was made with Kubernetes %s, and %s is wanted", m.KubernetesVersion, version)
	case m.Node != nil && m.Node.KubeletVersion != version:
		return fmt.Sprintf("its kubelet is %s, and %s is wanted", m.Node.KubeletVersion, version)
	case m.Image != p.want.Image:
		return fmt.Sprintf("it was made from image %s, and %s is wanted", m.Image, p.want.Image)
	case !maps.Equal(m.Values, p.want.Values):
		return "its values are not those wanted"
	case p.otherEtcd(m) != "":
		return fmt.Sprintf("its etcd is %s, and %s is wanted", p.otherEtcd(m), p.want.EtcdTag)
	case m.Broken:
		return "Terraform's state marks something of it as tainted"
	case !p.want.RollAfter.IsZero() && !p.now.Before(p.want.RollAfter) && m.Created.Before(p.want.RollAfter):
		return fmt.Sprintf("it was made before %s (controlPlane.rollAfter)", p.want.RollAfter.UTC().Format(time.RFC3339))
	}
	return ""
}

// otherEtcd is the tag of the etcd that the machine runs, when it is another than the spec names; "" otherwise.
func (p *plane) otherEtcd(m live.MergedMachine) string {
	if p.want.EtcdTag == "" || m.Node == nil {
		return ""
	}
	image := p.have.Kube.Plane.Parts[m.Node.Name].Etcd.Image
	if image == "" || tagOf(image) == p.want.EtcdTag {
		return ""
	}
	return tagOf(image)
}

// rest decides at a rest point: nothing joins and nothing leaves.
func (p *plane) rest() Decision {
	if m := p.halfMade(); m != nil {
		return Do{Step: Step{
			Subject: m.Name, Why: "Terraform did not make it whole, and such a machine is never completed",
			Act: DropEntry{m.Name}, Limit: p.want.Timeouts.Destroy,
			Before: p.note(func(b *logbook.Book, _ *logbook.Roll) { b.Serial = p.lastSerial() }),
		}}
	}
	if d := p.strays(); d != nil {
		return d
	}
	sick := p.sick("")
	if len(sick) > 0 {
		return p.heal(sick)
	}
	have, want := len(p.all.Machines), p.want.Replicas
	switch {
	case have > want:
		return p.beginLeaving(p.pick())
	case have == want && p.want.Surge == 0:
		return p.beginLeaving(p.pick())
	}
	return p.add()
}

// heal decides about machines that are not healthy at a rest point. One that is to go anyway goes first, because a dead
// member counts against every change (https://etcd.io/docs/v3.6/faq/#should-i-add-a-member-before-removing-an-unhealthy-member).
func (p *plane) heal(sick map[string][]string) Decision {
	names := slices.Sorted(maps.Keys(sick))
	text := make([]string, len(names))
	for i, n := range names {
		text[i] = n + ": " + strings.Join(sick[n], ", ")
	}
	why := strings.Join(text, "; ")
	if m := p.all.Find(names[0]); len(names) == 1 && p.want.Replicas > 1 && p.stale(*m) != "" && p.dead(*m) && p.safeWithout(m) {
		return p.beginLeaving(*m)
	}
	return Wait{
		Until: p.now.Add(healthPatience), Why: "the control plane is not healthy: " + why, Subject: "control-plane", ResumedBy: AwaitedHealth,
		Else: &Failure{
			Reason: "ControlPlaneUnhealthy", Message: "no machine is added or removed while the control plane is not healthy: " + why,
			Remedy: "mend the machine, or take it out by hand; the next pass then goes on",
		},
	}
}

// healthPatience is how long a plane may take to be healthy again after a change: an election and some probes.
const healthPatience = 5 * time.Minute

// dead reports whether a machine answers neither Kubernetes nor etcd.
func (p *plane) dead(m live.MergedMachine) bool {
	return (m.Node == nil || !m.Node.Ready) && (m.Member == nil || m.Member.Status == nil)
}

// safeWithout reports whether etcd keeps its quorum without the machine's member.
func (p *plane) safeWithout(m *live.MergedMachine) bool {
	if m.Member == nil {
		return p.have.Etcd.Count().Quorum()
	}
	return p.have.Etcd.CountWithout(m.Member.ID).Quorum()
}

// sick are the machines that are not healthy and why, but for one.
func (p *plane) sick(but string) map[string][]string {
	out := map[string][]string{}
	for _, m := range p.all.Machines {
		if problems := p.problems(m); m.Name != but && len(problems) > 0 {
			out[m.Name] = problems
		}
	}
	return out
}

// problems are what keeps a machine from being a healthy part of the plane. All parts count: API server, controller
// manager, scheduler and kubelet of a machine talk to each other (kubernetes-sigs/cluster-api does the same).
func (p *plane) problems(m live.MergedMachine) []string {
	var out []string
	switch {
	case m.Node == nil:
		return []string{"it has no Node"}
	case !m.Node.Ready:
		out = append(out, "its Node is not Ready")
	}
	out = append(out, p.have.Kube.Plane.Parts[m.Node.Name].Unhealthy()...)
	return append(out, p.memberProblems(m)...)
}

// memberProblems are those of the machine's etcd member. Nothing is said of an etcd that this process can't see.
func (p *plane) memberProblems(m live.MergedMachine) []string {
	var out []string
	switch e := m.Member; {
	case p.have.Etcd == nil:
	case e == nil:
		out = append(out, "etcd has no member of it")
	case e.Learner:
		out = append(out, "its etcd member is a learner that was not promoted yet")
	case len(e.Alarms) > 0:
		out = append(out, fmt.Sprintf("its etcd member has the alarm %s", e.Alarms[0]))
	case e.Status == nil:
		out = append(out, "its etcd member does not answer: "+e.Unreachable)
	case !e.Healthy():
		out = append(out, "its etcd member knows no leader")
	}
	return out
}

// count is a number with its noun.
func count(n int, noun string) string {
	if n != 1 {
		noun += "s"
	}
	return fmt.Sprintf("%d %s", n, noun)
}
