// SPDX-License-Identifier: Apache-2.0

package rollouttest

import (
	"slices"
	"strings"
	"time"

	"github.com/theseus-gitops/theseus/reconcile/live"
	"github.com/theseus-gitops/theseus/reconcile/skew"
)

// tick is how finely time passes.
const tick = 5 * time.Second

// Pass lets time pass: machines boot and join, a dead leader is followed by another, Nodes of dead machines become unready.
func (w *Plane) Pass(d time.Duration) {
	for end := w.Now.Add(d); w.Now.Before(end); {
		w.Now = w.Now.Add(min(tick, end.Sub(w.Now)))
		w.Settle()
	}
}

// Settle is what happens without anybody's doing.
func (w *Plane) Settle() {
	for _, v := range w.vms {
		w.join(v)
	}
	w.elect()
	for _, n := range w.nodes {
		v := w.machine(n.Name)
		n.Ready = v != nil && v.phase == serves && !v.habit.Sick
	}
}

// join takes a machine one phase further, by kubeadm's rules: it needs the credentials until it is a member, etcd takes one
// learner at a time, and a learner is promoted once it has caught up.
func (w *Plane) join(v *vm) {
	next := func(p phase) { v.phase, v.since = p, w.Now }
	switch v.phase {
	case boots:
		if !w.Now.Before(v.since.Add(v.habit.Boot)) {
			next(asksForMembership)
		}
	case asksForMembership:
		if w.Quorum() {
			w.askForMembership(v, next)
		}
	case learns, registers:
		w.joinOn(v, next)
	case serves, failed:
	}
}

// joinOn takes a member on: to a voter, then to a Node.
func (w *Plane) joinOn(v *vm, next func(phase)) {
	m := w.memberOf(v.name)
	switch {
	case !w.Quorum() || w.Now.Before(v.since.Add(joinTakes)):
	case m == nil: // kubeadm does not add its member a second time
		next(failed)
	case v.phase == registers:
		if w.find(v.name) == nil {
			w.register(v)
		}
		next(serves)
	default:
		m.learner = false
		w.Tell("  # %s is a voter", v.name)
		next(registers)
	}
}

func (w *Plane) askForMembership(v *vm, next func(phase)) {
	switch {
	case w.token != v.name, w.find(v.name) != nil:
		next(failed)
	case slices.ContainsFunc(w.members, func(m *member) bool { return m.learner }):
		// kubeadm asks again until its time is over.
		if w.Now.Sub(v.since) > 2*time.Minute {
			next(failed)
		}
	default:
		v.etcd = w.etcdTag()
		w.members = append(w.members, &member{id: w.nextID(), name: v.name, url: peerURL(v), learner: true, vm: v.name})
		next(learns)
	}
}

// etcdTag is what kubeadm-config says, or what kubeadm of its version brings.
func (w *Plane) etcdTag() string {
	value := func(key string) string {
		_, rest, _ := strings.Cut(w.config, "\n"+key)
		line, _, _ := strings.Cut(rest, "\n")
		return strings.TrimSpace(line)
	}
	if t := value("    imageTag: "); t != "" {
		return t
	}
	v, _ := skew.Parse(value("kubernetesVersion: "))
	return skew.KubeadmEtcd(v)
}

// elect gives leadership to the first voter that runs when there is no leader that does.
func (w *Plane) elect() {
	for _, m := range w.members {
		if m.id == w.leader && !m.learner && w.runs(m) {
			return
		}
	}
	w.leader = 0
	for _, m := range w.members {
		if !m.learner && w.runs(m) && w.Quorum() {
			w.leader = m.id
			return
		}
	}
}

// Observe is a look at all of it, as far as this process can.
func (w *Plane) Observe() live.Cluster {
	w.Settle()
	version := ""
	for _, v := range w.vms {
		if w.answers(v) {
			version = v.version
		}
	}
	c := live.Cluster{
		Kube: &live.Kube{
			ServerVersion: version, Book: w.Book,
			KubeadmConfig: &live.KubeadmConfig{ResourceVersion: w.rv(), ClusterConfiguration: w.config},
			KubeletConfig: &live.ConfigMap{ResourceVersion: w.rv(), Data: map[string]string{"kubelet": w.kubelet}},
			KubeProxy:     &live.KubeProxy{ResourceVersion: w.rv(), Image: w.proxy},
			Plane:         &live.Plane{Parts: map[string]live.Parts{}, Served: []string{}, Credentials: w.token != ""},
			DNS:           New("registry.k8s.io/coredns/coredns:v1.14.2", DefaultCorefile).Observe().Kube.DNS,
		},
		Machines: &live.Machines{Endpoint: "10.0.0.1:6443", ActsOnServing: w.ActsOnServing, Idle: w.idle},
	}
	for _, e := range w.entries {
		c.Machines.All = append(c.Machines.All, e.Machine)
	}
	for _, n := range w.nodes {
		c.Kube.Nodes = append(c.Kube.Nodes, n.Node)
	}
	for _, v := range w.vms {
		if v.phase != serves {
			continue
		}
		c.Kube.Plane.Parts[v.name] = w.parts(v)
		if w.answers(v) && (w.serving(v.name) || !w.ActsOnServing) {
			c.Kube.Plane.Served = append(c.Kube.Plane.Served, v.name)
		}
	}
	if w.sees {
		c.Etcd = w.etcd()
	}
	return c
}

func (w *Plane) serving(name string) bool {
	return slices.ContainsFunc(w.entries, func(e *entry) bool { return e.Name == name && e.Serving })
}

func (w *Plane) parts(v *vm) live.Parts {
	part := func(component, tag string, ready bool) live.Part {
		return live.Part{Image: "registry.k8s.io/" + component + ":" + tag, Ready: ready && !v.habit.Sick}
	}
	return live.Parts{
		APIServer: part("kube-apiserver", v.version, !v.apiDown), ControllerManager: part("kube-controller-manager", v.version, true),
		Scheduler: part("kube-scheduler", v.version, true), Etcd: part("etcd", v.etcd, w.memberOf(v.name) != nil),
		Pods: slices.Clone(v.pods),
	}
}

// etcd is what its members say.
func (w *Plane) etcd() *live.Etcd {
	out := &live.Etcd{Confirmed: w.Quorum(), AlarmsSeen: true}
	for _, m := range w.members {
		seen := live.Member{ID: m.id, Name: m.name, PeerURLs: []string{m.url}, Learner: m.learner}
		if w.runs(m) {
			seen.Status = &live.MemberStatus{Version: tag(w.machine(m.vm).etcd).String()[1:], Leader: w.leader, RaftTerm: 2}
		} else {
			seen.Unreachable = "nobody answers"
		}
		out.Members = append(out.Members, seen)
	}
	return out
}
