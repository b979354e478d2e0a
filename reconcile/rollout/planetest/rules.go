// SPDX-License-Identifier: Apache-2.0

package planetest

import (
	"fmt"
	"maps"
	"slices"

	"github.com/theseus-gitops/theseus/reconcile/logbook"
	"github.com/theseus-gitops/theseus/reconcile/skew"
)

// check looks for what must never be, after every second and every act.
func (p *Plane) check() {
	if !p.etcd.quorum() {
		voters, running := p.etcd.votes()
		p.violate("etcd has no quorum: %d of %d voters run", running, voters)
	}
	var leaving []string
	serving, there := 0, 0
	for _, name := range slices.Sorted(maps.Keys(p.nodes)) {
		if p.nodes[name].leaving != "" {
			leaving = append(leaving, name)
		}
	}
	for _, v := range p.vms {
		if v.serves(p) && v.behind {
			serving++
		}
		if v.inState {
			there++
		}
	}
	switch {
	case len(leaving) > 1:
		p.violate("two machines leave at once: %v", leaving)
	case p.etcd.leader != nil && serving < p.Least:
		p.violate("only %d API servers serve, and %d should", serving, p.Least)
	case there > p.Most:
		p.violate("there are %d machines, and at most %d should be", there, p.Most)
	}
	p.checkSkew()
}

// checkSkew: no kubelet is newer than the API server that it talks to.
func (p *Plane) checkSkew() {
	for _, v := range p.vms {
		if !v.serves(p) {
			continue
		}
		own, errOwn := skew.Parse(v.machine.KubernetesVersion)
		api, errAPI := skew.Parse(v.apiVersion)
		if errOwn != nil || errAPI != nil || own.Minor > api.Minor {
			p.violate("%s has a kubelet of %s and an API server of %s", v.name, v.machine.KubernetesVersion, v.apiVersion)
		}
	}
}

// mayGo: a member is removed only when its machine leaves, is taken back or is gone, and never the last voter.
func (p *Plane) mayGo(m *member) {
	if voters, _ := p.etcd.votes(); voters == 1 && !m.learner {
		p.violate("the last voter, %s, was removed", m.name)
	}
	if m.vm != nil && p.vms[m.vm.name] == m.vm && m.vm.inState {
		p.mayLoseMember(m.vm.name, p.Book)
	}
}

func (p *Plane) mayLoseMember(name string, book logbook.Book) {
	if book.Pending != nil && book.Pending.Name == name && book.Pending.GivenUp != "" {
		return
	}
	if book.Leaving == nil || book.Leaving.Name != name {
		p.violate("the member of %s was removed, and it is not leaving", name)
	}
	if n := p.nodes[name]; n != nil && p.ready(n) && len(n.pods) > 0 {
		p.violate("the member of %s was removed before its pods had ended", name)
	}
}

// mayBeDestroyed: no machine goes with a vote. The one exception is the vote that a joining machine got after the last look,
// beside three others or more: it costs nothing there, and is removed afterwards.
func (p *Plane) mayBeDestroyed(v *vm) {
	if p.credentials.machine == v.name {
		p.violate("%s was destroyed before what lets it join was deleted", v.name)
	}
	m := v.member
	if m == nil || m.learner {
		return
	}
	voters, _ := p.etcd.votes()
	if m.promoted.After(p.looked) && voters > 3 {
		return
	}
	p.violate("%s was destroyed, and its member still votes, one of %d", v.name, voters)
}

// mayStop: an API server ends when nobody is sent to it any more, where the module can see to that.
func (p *Plane) mayStop(v *vm) {
	if p.state.serving && p.state.registry[v.name].Serving {
		p.violate("the API server of %s was stopped, and clients are sent to it", v.name)
	}
}

// Rest is what is to be in the end.
type Rest struct {
	Machines          int
	Kubernetes, Image string
}

// Left are sentences about what is not as it should be in the end.
func (p *Plane) Left(want Rest) []string {
	var out []string
	left := func(wrong bool, format string, args ...any) {
		if wrong {
			out = append(out, fmt.Sprintf(format, args...))
		}
	}
	left(len(p.vms) != want.Machines, "%d machines, want %d", len(p.vms), want.Machines)
	left(len(p.state.registry) != want.Machines, "%d entries in the registry, want %d", len(p.state.registry), want.Machines)
	left(len(p.nodes) != want.Machines, "%d Nodes, want %d", len(p.nodes), want.Machines)
	left(len(p.etcd.members) != want.Machines, "%d members, want %d", len(p.etcd.members), want.Machines)
	left(p.credentials != credentials{}, "credentials are left")
	left(p.configVersion() != want.Kubernetes, "kubeadm-config says %s, want %s", p.configVersion(), want.Kubernetes)
	left(p.proxy.text != "registry.k8s.io/kube-proxy:"+want.Kubernetes, "kube-proxy is %s", p.proxy.text)
	left(p.Book.Pending != nil || p.Book.Leaving != nil || p.Book.Roll != nil, "the logbook has something open")
	left(p.Book.Originals != nil || p.Book.FailedTarget != nil, "the logbook remembers what is over")
	for _, name := range slices.Sorted(maps.Keys(p.vms)) {
		out = append(out, p.leftOf(name, want)...)
	}
	return out
}

func (p *Plane) leftOf(name string, want Rest) []string {
	v, n := p.vms[name], p.nodes[name]
	var out []string
	if have := (Rest{want.Machines, v.machine.KubernetesVersion, v.machine.Image}); have != want || v.apiVersion != want.Kubernetes {
		out = append(out, fmt.Sprintf("%s is of %s with Kubernetes %s and an API server of %s", name, have.Image, have.Kubernetes, v.apiVersion))
	}
	if n == nil || !p.whole(n) {
		out = append(out, "the Node of "+name+" is not there, not Ready, leaving or cordoned")
	}
	if v.member == nil || v.member.learner || !v.behind || v.stopped || v.tainted {
		out = append(out, name+" does not serve, or does not vote")
	}
	return out
}

func (p *Plane) whole(n *node) bool {
	return p.ready(n) && n.leaving == "" && n.schedulable && n.controlPlane
}
