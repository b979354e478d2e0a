// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"maps"
	"slices"
	"time"

	"github.com/theseus-gitops/theseus/reconcile/live"
	"github.com/theseus-gitops/theseus/reconcile/logbook"
	"github.com/theseus-gitops/theseus/reconcile/skew"
)

// applyPlane is the model of a step of the control plane's part. It reports whether the step is one.
//
//nolint:cyclop // one line per step
func applyPlane(step Step, have live.Cluster) bool {
	kube := have.Kube
	switch act := step.Act.(type) {
	case CheckModule:
		have.Machines.Idle = true
	case DeleteCredentials:
		kube.Plane.Credentials = false
	case SyncKubeadmConfig:
		kube.KubeadmConfig.ClusterConfiguration = act.Text
	case SyncKubeletConfig:
		kube.KubeletConfig.Data[kubeletKey] = act.Text
	case AddMachine:
		have.Machines.All = append(have.Machines.All, act.Machine)
		kube.Plane.Credentials = true
	case ApproveServingCSR:
		parts := kube.Plane.Parts[act.Node]
		parts.PendingCSR = ""
		kube.Plane.Parts[act.Node] = parts
	case UpdateKubeProxy:
		kube.KubeProxy.Image = act.Image
		kube.KubeProxy.Rollout.Generation++
		kube.KubeProxy.Rollout.Updated = 0
	case DropEntry:
		removeMachine(have, act.Machine)
	case DestroyMachine:
		removeMachine(have, act.Machine)
	case ObtainCredentials, SnapshotEtcd, EnsureJoinRBAC, Note: // what they change is a view of its own, or the logbook
	default:
		return applyNode(step, have) || applyEtcd(step, have)
	}
	return true
}

func removeMachine(have live.Cluster, name string) {
	have.Machines.All = slices.DeleteFunc(have.Machines.All, func(m live.Machine) bool { return m.Name == name })
	editNode(have.Kube, name, func(n *live.Node) { n.Ready = false })
	delete(have.Kube.Plane.Parts, name)
}

// applyNode is the model of the steps on a leaving node.
func applyNode(step Step, have live.Cluster) bool {
	kube := have.Kube
	switch act := step.Act.(type) {
	case MarkLeaving:
		editNode(kube, act.Node, func(n *live.Node) { n.Leaving = time.Time{}.Format(time.RFC3339) })
	case UnmarkLeaving:
		editNode(kube, act.Node, func(n *live.Node) { n.Leaving, n.Schedulable = "", true })
	case Cordon:
		editNode(kube, act.Node, func(n *live.Node) { n.Schedulable = false })
	case Drain:
		parts := kube.Plane.Parts[act.Node]
		parts.Pods = nil
		kube.Plane.Parts[act.Node] = parts
	case LeaveEndpoint:
		for i := range have.Machines.All {
			if m := &have.Machines.All[i]; m.Name == act.Machine {
				m.Serving = false
			}
		}
	case StopAPIServer:
		parts := kube.Plane.Parts[act.Node]
		parts.APIServer.Ready = false
		kube.Plane.Parts[act.Node] = parts
	case DeleteNode:
		kube.Nodes = slices.DeleteFunc(kube.Nodes, func(n live.Node) bool { return n.Name == act.Node })
	default:
		return false
	}
	return true
}

func editNode(kube *live.Kube, name string, edit func(n *live.Node)) {
	for i := range kube.Nodes {
		if kube.Nodes[i].Name == name {
			edit(&kube.Nodes[i])
		}
	}
}

// applyEtcd is the model of the steps on etcd's membership.
func applyEtcd(step Step, have live.Cluster) bool {
	switch act := step.Act.(type) {
	case MoveLeader:
		lead(have.Etcd, act.To.ID)
	case RemoveMember:
		removeModel(have.Etcd, act.Member.ID)
	case RemovePlaceholder:
		removeModel(have.Etcd, act.Member.ID)
	case AddPlaceholder:
		have.Etcd.Members = append(have.Etcd.Members, live.Member{ID: nextID(have.Etcd), PeerURLs: []string{act.PeerURL}, Learner: true})
	default:
		return false
	}
	return true
}

// removeModel removes a member; a leader's removal makes another lead.
func removeModel(etcd *live.Etcd, id live.MemberID) {
	leader := etcd.Leader()
	etcd.Members = slices.DeleteFunc(etcd.Members, func(m live.Member) bool { return m.ID == id })
	if i := slices.IndexFunc(etcd.Members, live.Member.Healthy); leader == id && i >= 0 {
		lead(etcd, etcd.Members[i].ID)
	}
}

// lead makes a member the leader that all others know.
func lead(etcd *live.Etcd, id live.MemberID) {
	for i := range etcd.Members {
		if s := etcd.Members[i].Status; s != nil {
			changed := *s
			changed.Leader = id
			etcd.Members[i].Status = &changed
		}
	}
}

func nextID(etcd *live.Etcd) live.MemberID {
	var most live.MemberID
	for _, m := range etcd.Members {
		most = max(most, m.ID)
	}
	return most + 1
}

// assumedEtcd is what a plan takes etcd for before anybody could look: one healthy voter per control-plane node, led by the
// oldest machine's.
func assumedEtcd(have live.Cluster) *live.Etcd {
	etcd := &live.Etcd{Confirmed: true, AlarmsSeen: true}
	for i, n := range have.Kube.Nodes {
		if !n.ControlPlane {
			continue
		}
		version, _ := skew.ParseTag(tagOf(have.Kube.Plane.Parts[n.Name].Etcd.Image))
		m := live.Member{ID: live.MemberID(i + 1), Name: n.Name, Status: &live.MemberStatus{Version: version.Core().String()[1:]}}
		for _, a := range n.Addresses {
			m.PeerURLs = append(m.PeerURLs, "https://"+a+":2380")
		}
		etcd.Members = append(etcd.Members, m)
	}
	if len(etcd.Members) > 0 {
		lead(etcd, etcd.Members[0].ID)
	}
	return etcd
}

// joinModel is the pending machine once it has joined: a Node, its parts and a voter.
func joinModel(have live.Cluster) {
	pending := have.Kube.Book.Pending
	m := have.Machines.Find(pending.Name)
	if m == nil {
		return
	}
	have.Kube.Nodes = append(have.Kube.Nodes, live.Node{
		Name: m.Name, ControlPlane: true, Ready: true, Schedulable: true, KubeletVersion: m.KubernetesVersion, Created: m.Created, ProviderID: m.ProviderID,
	})
	ready := live.Part{Image: "registry.k8s.io/etcd:" + etcdModel(have), Ready: true}
	have.Kube.Plane.Parts[m.Name] = live.Parts{APIServer: ready, ControllerManager: ready, Scheduler: ready, Etcd: ready}
	if have.Kube.Plane.Served != nil {
		have.Kube.Plane.Served = append(have.Kube.Plane.Served, m.Name)
	}
	if have.Etcd != nil { // a process that can't see etcd yet assumes its members later
		have.Etcd.Members = append(have.Etcd.Members, live.Member{ID: nextID(have.Etcd), Name: m.Name, Status: &live.MemberStatus{Leader: have.Etcd.Leader()}})
	}
}

// etcdModel is the tag of etcd that a machine which joins now will run.
func etcdModel(have live.Cluster) string {
	p := plane{have: have}
	if p.read() != nil {
		return ""
	}
	version, err := skew.Parse(p.config.KubernetesVersion)
	if tag := p.config.EtcdImageTag; tag != "" || err != nil {
		return tag
	}
	return skew.KubeadmEtcd(version)
}

// awaitPlane is the model of a wait of the control plane's part.
func awaitPlane(what Awaited, have live.Cluster) {
	switch what {
	case AwaitedJoin:
		joinModel(have)
	case AwaitedDetach:
		node := have.Kube.Book.Leaving.Node
		parts := have.Kube.Plane.Parts[node]
		parts.Volumes = nil
		have.Kube.Plane.Parts[node] = parts
	case AwaitedEndpoint:
		node := have.Kube.Book.Leaving.Node
		have.Kube.Plane.Served = slices.DeleteFunc(have.Kube.Plane.Served, func(n string) bool { return n == node })
	case AwaitedProxyRollout:
		r := &have.Kube.KubeProxy.Rollout
		r.ObservedGeneration, r.Updated, r.Total, r.Unavailable = r.Generation, r.Wanted, r.Wanted, 0
	case AwaitedNothing, AwaitedDNSRollout, AwaitedHealth, AwaitedTime:
	}
}

// copyCluster copies what the models change, so that the original stays as it was.
func copyCluster(have live.Cluster) live.Cluster {
	out := live.Cluster{Kube: copyKube(have.Kube)}
	if have.Machines != nil {
		machines := *have.Machines
		machines.All = slices.Clone(machines.All)
		out.Machines = &machines
	}
	if have.Etcd != nil {
		etcd := *have.Etcd
		etcd.Members = slices.Clone(etcd.Members)
		out.Etcd = &etcd
	}
	return out
}

// copyPlane copies what the models of the control plane change in Kubernetes.
func copyPlane(kube *live.Kube) {
	kube.Nodes = slices.Clone(kube.Nodes)
	if kube.Plane != nil {
		plane := *kube.Plane
		plane.Parts, plane.Served = maps.Clone(plane.Parts), slices.Clone(plane.Served)
		kube.Plane = &plane
	}
	if kube.KubeletConfig != nil {
		config := *kube.KubeletConfig
		config.Data = maps.Clone(config.Data)
		kube.KubeletConfig = &config
	}
	if kube.KubeProxy != nil {
		proxy := *kube.KubeProxy
		kube.KubeProxy = &proxy
	}
}

// write is the model of a logbook write.
func write(kube *live.Kube, book *logbook.Book) {
	if book != nil {
		kube.Book = *book
	}
}
