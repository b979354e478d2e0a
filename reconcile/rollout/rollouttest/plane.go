// SPDX-License-Identifier: Apache-2.0

package rollouttest

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/theseus-gitops/theseus/reconcile/live"
	"github.com/theseus-gitops/theseus/reconcile/logbook"
	"github.com/theseus-gitops/theseus/reconcile/skew"
)

// Plane is a control plane as Terraform, machines, kubeadm, etcd and Kubernetes would keep it, coarser than that of package
// planetest: for planes that grow and shrink, and load balancers that find machines by themselves, which that one has not yet. Machines boot and join by
// themselves, as far as etcd's and kubeadm's rules let them; nothing else happens that was not asked for. It shares no code with
// the steps' models. Start at NewPlane; Observe, Do, WriteBook and Pass are the whole world.
type Plane struct {
	Now   time.Time
	Story []string
	// Book is the logbook.
	Book logbook.Book
	// Habit is how the next machines behave.
	Habit Habit
	// ActsOnServing is the module's; without it the load balancer looks at health alone.
	ActsOnServing bool

	entries []*entry
	vms     []*vm
	members []*member
	nodes   []*node
	leader  live.MemberID
	lastID  live.MemberID
	used    map[string]bool // every name that a machine ever had
	token   string          // for whom something is there that lets a machine join; empty for nobody

	config, kubelet, proxy string
	version                int
	// sees and idle are this process's: gone with it.
	sees, idle bool
	lastLine   string
	repeats    int
}

// Habit is how a machine behaves.
type Habit struct {
	// Boot is how long it boots.
	Boot time.Duration
	// Sick machines join and never become healthy.
	Sick bool
}

// entry is one of the registry: what was asked for.
type entry struct {
	live.Machine
}

// vm is a machine that runs, or boots. It joins once, and then never again.
type vm struct {
	name, address string
	version, etcd string
	created       time.Time
	habit         Habit
	phase         phase
	since         time.Time // of the phase
	apiDown       bool
	pods          []live.Evictee
}

// phase is how far a machine has joined.
type phase int

const (
	boots phase = iota
	asksForMembership
	learns
	registers
	serves
	failed
)

// member is one that etcd has on its list.
type member struct {
	id      live.MemberID
	name    string // empty until it has started
	url     string
	learner bool
	vm      string // whose it is; empty for a placeholder
}

type node struct{ live.Node }

// joinTakes is how long a machine needs for each phase after it has booted.
const joinTakes = 5 * time.Second

// NewPlane is a healthy control plane of so many machines, NAME-cp-1 and so on, led by the first, each with a pod to evict.
func NewPlane(name string, machines int, now time.Time, config string) *Plane {
	w := &Plane{
		Now: now, Habit: Habit{Boot: 30 * time.Second}, ActsOnServing: true,
		used: map[string]bool{}, config: config, lastID: 100, proxy: "registry.k8s.io/kube-proxy:v1.36.3",
		kubelet: "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n",
	}
	for i := range machines {
		m := live.Machine{
			Name: fmt.Sprintf("%s-cp-%d", name, i+1), Role: live.ControlPlanePool, Pool: live.ControlPlanePool,
			KubernetesVersion: "v1.36.3", Image: "debian-12", Created: now.Add(time.Duration(i-1000) * time.Hour), Serving: true,
		}
		v := w.make(m)
		v.phase, v.version, v.etcd, v.created = serves, "v1.36.3", "3.6.16-0", m.Created
		v.pods = []live.Evictee{{Namespace: "default", Name: fmt.Sprintf("web-%d", i+1)}}
		w.members = append(w.members, &member{id: w.nextID(), name: m.Name, url: peerURL(v), vm: m.Name})
		w.register(v)
		w.find(m.Name).Ready = true
	}
	w.leader = w.members[0].id
	return w
}

func peerURL(v *vm) string { return "https://" + v.address + ":2380" }

func (w *Plane) nextID() live.MemberID { w.lastID++; return w.lastID }

// Tell adds a line to the story. The same line again is only counted.
func (w *Plane) Tell(format string, args ...any) {
	line := fmt.Sprintf(format, args...)
	if n := len(w.Story) - 1; n >= 0 && line == w.lastLine {
		w.repeats++
		w.Story[n] = fmt.Sprintf("%s (%d times)", line, w.repeats)
		return
	}
	w.Story, w.lastLine, w.repeats = append(w.Story, line), line, 1
}

// make is what Terraform does when it creates a machine.
func (w *Plane) make(m live.Machine) *vm {
	n := len(w.used) + 11
	m.Hostname, m.Addresses = m.Name, []string{fmt.Sprintf("10.0.0.%d", n)}
	v := &vm{name: m.Name, address: m.Addresses[0], version: m.KubernetesVersion, created: w.Now, since: w.Now, habit: w.Habit}
	w.used[m.Name] = true
	w.entries = append(w.entries, &entry{m})
	w.vms = append(w.vms, v)
	return v
}

// register is what kubelet does when it first meets the API server.
func (w *Plane) register(v *vm) {
	w.nodes = append(w.nodes, &node{live.Node{
		Name: v.name, ControlPlane: true, Schedulable: true, KubeletVersion: v.version, Addresses: []string{v.address}, Created: w.Now,
		Taints: []live.Taint{{Key: "node-role.kubernetes.io/control-plane", Effect: "NoSchedule"}},
	}})
}

func (w *Plane) find(name string) *node {
	i := slices.IndexFunc(w.nodes, func(n *node) bool { return n.Name == name })
	if i < 0 {
		return nil
	}
	return w.nodes[i]
}

func (w *Plane) machine(name string) *vm {
	i := slices.IndexFunc(w.vms, func(v *vm) bool { return v.name == name })
	if i < 0 {
		return nil
	}
	return w.vms[i]
}

func (w *Plane) memberOf(name string) *member {
	i := slices.IndexFunc(w.members, func(m *member) bool { return m.vm == name })
	if i < 0 {
		return nil
	}
	return w.members[i]
}

// runs reports whether a member's etcd runs: its machine is there and has got so far.
func (w *Plane) runs(m *member) bool {
	v := w.machine(m.vm)
	return v != nil && v.phase >= learns && v.phase != failed
}

// Voters counts etcd's voters, and those of them that run.
func (w *Plane) Voters() (all, running int) {
	for _, m := range w.members {
		if m.learner {
			continue
		}
		all++
		if w.runs(m) {
			running++
		}
	}
	return all, running
}

// Quorum reports whether etcd takes writes.
func (w *Plane) Quorum() bool {
	all, running := w.Voters()
	return running > all/2
}

// Serving counts the machines whose API server answers.
func (w *Plane) Serving() (n int) {
	for _, v := range w.vms {
		if w.answers(v) {
			n++
		}
	}
	return n
}

func (w *Plane) answers(v *vm) bool {
	m := w.memberOf(v.name)
	return v.phase == serves && !v.apiDown && !v.habit.Sick && m != nil && w.Quorum()
}

// Describe is the plane in one line.
func (w *Plane) Describe() string {
	var machines, members, nodes []string
	for _, e := range w.entries {
		machines = append(machines, e.Name+" ("+e.KubernetesVersion+", "+e.Image+")")
	}
	for _, m := range w.members {
		text := m.name
		if m.learner {
			text += " (learner)"
		}
		members = append(members, text)
	}
	for _, n := range w.nodes {
		nodes = append(nodes, n.Name)
	}
	return "machines " + strings.Join(machines, ", ") + "; members " + strings.Join(members, ", ") + "; nodes " + strings.Join(nodes, ", ")
}

// Leftovers is what should be gone when nothing is under way.
func (w *Plane) Leftovers() (out []string) {
	if b := w.Book; w.token != "" || b.Pending != nil || b.Leaving != nil {
		out = append(out, "credentials, or an entry in the logbook")
	}
	for _, m := range w.members {
		if !w.known(m.vm) {
			out = append(out, "member "+m.name+" "+m.url)
		}
	}
	for _, n := range w.nodes {
		if n.Leaving != "" || !n.Schedulable || !w.known(n.Name) {
			out = append(out, "node "+n.Name)
		}
	}
	return append(out, w.unknown()...)
}

// unknown are the machines that Terraform's state does not have.
func (w *Plane) unknown() (out []string) {
	for _, v := range w.vms {
		if !w.known(v.name) {
			out = append(out, "machine "+v.name)
		}
	}
	return out
}

// known reports whether a machine runs and Terraform's state has it.
func (w *Plane) known(name string) bool {
	return w.machine(name) != nil && slices.ContainsFunc(w.entries, func(e *entry) bool { return e.Name == name })
}

func tag(version string) skew.Version {
	v, _ := skew.ParseTag(version)
	return v.Core()
}
