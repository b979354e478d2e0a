// SPDX-License-Identifier: Apache-2.0

package planetest

import (
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/theseus-gitops/theseus/reconcile/live"
)

// view is all that can be seen.
func (p *Plane) view() live.Cluster {
	kube := live.Kube{
		ServerVersion: p.serverVersion(), Book: p.Book, BookVersion: strconv.Itoa(p.bookVersion),
		KubeadmConfig: &live.KubeadmConfig{ResourceVersion: versionOf(p.config.version), ClusterConfiguration: p.config.text, KubernetesVersion: p.configVersion()},
		KubeletConfig: &live.ConfigMap{ResourceVersion: versionOf(p.kubelet.version), Data: map[string]string{"kubelet": p.kubelet.text}},
		KubeProxy:     &live.KubeProxy{ResourceVersion: versionOf(p.proxy.version), Image: p.proxy.text, Rollout: p.proxyRollout()},
		Plane:         &live.Plane{Parts: map[string]live.Parts{}, Served: []string{}, Credentials: p.credentials != credentials{}, OwnNode: p.RunsOn},
	}
	for _, name := range slices.Sorted(maps.Keys(p.nodes)) {
		n := p.nodes[name]
		kube.Nodes = append(kube.Nodes, p.viewNode(n))
		if n.controlPlane {
			kube.Plane.Parts[name] = p.viewParts(n)
		}
		if v := p.vms[name]; v != nil && v.behind && v.serves(p) {
			kube.Plane.Served = append(kube.Plane.Served, name)
		}
	}
	out := live.Cluster{Kube: &kube, Machines: p.viewMachines()}
	if p.process.sees {
		out.Etcd = p.viewEtcd()
	}
	return out
}

// serverVersion is that of the oldest API server.
func (p *Plane) serverVersion() string {
	version := ""
	for _, v := range p.vms {
		if v.serves(p) && (version == "" || v.apiVersion < version) {
			version = v.apiVersion
		}
	}
	return version
}

func (p *Plane) viewNode(n *node) live.Node {
	out := live.Node{
		Name: n.name, ControlPlane: n.controlPlane, Ready: p.ready(n), Schedulable: n.schedulable, KubeletVersion: n.version,
		Addresses: []string{n.address}, Created: n.created, Leaving: n.leaving,
	}
	if n.controlPlane {
		out.Taints = []live.Taint{{Key: "node-role.kubernetes.io/control-plane", Effect: "NoSchedule"}}
	}
	return out
}

func (p *Plane) viewParts(n *node) live.Parts {
	parts := n.seen
	if !p.ready(n) { // what the kubelet told last counts no more
		for _, part := range []*live.Part{&parts.APIServer, &parts.ControllerManager, &parts.Scheduler, &parts.Etcd} {
			part.Ready, part.Why = false, "its node is silent"
		}
	}
	parts.Volumes = slices.Clone(n.volumes)
	for _, o := range n.pods {
		e := live.Evictee{Namespace: "shop", Name: o.name, Terminating: !o.ending.IsZero(), Since: o.ending}
		if p.Now.Before(o.held) {
			e.Budgets = []string{"budget"}
		}
		parts.Pods = append(parts.Pods, e)
	}
	slices.SortFunc(parts.Pods, func(a, b live.Evictee) int { return compare(a.Name, b.Name) })
	return parts
}

func compare(a, b string) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}

func (p *Plane) viewMachines() *live.Machines {
	out := &live.Machines{
		Endpoint: "10.0.0.1:6443", ActsOnServing: p.state.serving, Idle: p.process.idle == p.state.serial, Interrupted: p.process.interrupted,
	}
	for _, name := range slices.Sorted(maps.Keys(p.state.registry)) {
		m := p.state.registry[name]
		m.Created = m.Created.Truncate(time.Second)
		if v := p.vms[name]; v != nil && v.inState {
			m.Hostname, m.Addresses, m.Broken = name, []string{v.address}, v.tainted
		} else {
			m.Missing = true
		}
		out.All = append(out.All, m)
	}
	return out
}

func (p *Plane) viewEtcd() *live.Etcd {
	out := &live.Etcd{ClusterID: 1, Confirmed: p.etcd.works(), AlarmsSeen: true}
	var leader live.MemberID
	if p.etcd.leader != nil {
		leader = p.etcd.leader.id
	}
	for _, m := range p.etcd.members {
		e := live.Member{ID: m.id, Name: m.name, PeerURLs: []string{m.peer}, Learner: m.learner}
		if m.runs() {
			e.Status = &live.MemberStatus{Version: number(m.vm.etcdTag), Leader: leader, RaftTerm: p.etcd.term}
		} else {
			e.Unreachable = "connection refused"
		}
		out.Members = append(out.Members, e)
	}
	slices.SortFunc(out.Members, func(a, b live.Member) int { return compare(a.Name+"\x00"+a.ID.String(), b.Name+"\x00"+b.ID.String()) })
	return out
}
