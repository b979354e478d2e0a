// SPDX-License-Identifier: Apache-2.0

// Package planetest is a cluster's control plane as a value, for whole rolls of machines by the driver that the job has.
// It shares no code with the steps' models, nor with what decides: it follows the rules of etcd, kubeadm, Kubernetes and
// Terraform by itself, so that it can contradict them. Start at New; Observe, Execute, WriteBook and Pass are the whole world.
package planetest

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/theseus-gitops/theseus/reconcile/live"
	"github.com/theseus-gitops/theseus/reconcile/logbook"
)

// Plane is a cluster's control plane as a value: machines that boot, join and are destroyed, etcd with its votes and its
// leader, Nodes and pods, a load balancer, Terraform's state, and the process that works on it all. It follows the rules of
// etcd, kubeadm, Kubernetes and Terraform by itself and shares no code with the steps' models.
//
// Observe, Execute and WriteBook are what a roll sees of it; Pass lets time go by. Whatever happens is told in Story, and what
// must never happen in Violations.
type Plane struct {
	Now   time.Time
	Story []string
	// Violations are sentences: what happened and must never happen.
	Violations []string
	// Book is the logbook.
	Book logbook.Book
	// Fates are what befalls machines that are yet to be made, by name.
	Fates map[string]Fate
	// Strike decides what befalls each write, counted from 1; nil for nothing.
	Strike func(n int, what string) Blow
	// Least is how many API servers must serve at any time, and Most how many machines there may be.
	Least, Most int
	// RunsOn is the node that the process runs on, "" when that is elsewhere.
	RunsOn string

	vms         map[string]*vm
	state       terraform
	etcd        etcd
	nodes       map[string]*node
	config      object
	kubelet     object
	proxy       proxy
	credentials credentials
	roles       bool
	bookVersion int
	process     process
	writes      int
	// blow is what befalls the write under way.
	blow Blow
	// names are all that machines ever had.
	names map[string]bool
	// looked is when the process looked last.
	looked time.Time
}

// object is one that only its text matters of.
type object struct {
	text    string
	version int
}

func (o *object) set(text string) { o.text, o.version = text, o.version+1 }

// credentials are what lets a machine join: a token and the certificates; left is what obtains them.
type credentials struct {
	machine string
	until   time.Time
	left    bool
}

// process is what one run has in memory.
type process struct {
	// sees tells that it has etcd's certificates.
	sees bool
	// idle is the serial of the state that a plan was seen to change nothing of, 0 for none.
	idle int
	// reclaimed tells that it looked for the locks of dead runs, interrupted that it broke one.
	reclaimed, interrupted bool
}

// Config is how a Plane begins.
type Config struct {
	Machines int
	Now      time.Time
	// ClusterConfiguration is the document in kubeadm-config.
	ClusterConfiguration string
	Kubernetes, Image    string
	// Serving tells that the module acts on serving.
	Serving bool
}

// New is a healthy control plane of machines seed-cp-1 and so on. The oldest leads etcd, and each has two pods to evict
// and a volume.
func New(c Config) *Plane {
	p := &Plane{
		Now: c.Now, Fates: map[string]Fate{}, vms: map[string]*vm{}, nodes: map[string]*node{}, names: map[string]bool{},
		Least: c.Machines, Most: c.Machines + 1, state: terraform{registry: map[string]live.Machine{}, serial: 1, serving: c.Serving},
		config: object{c.ClusterConfiguration, 1}, kubelet: object{"apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n", 1},
		proxy: proxy{object: object{"registry.k8s.io/kube-proxy:" + c.Kubernetes, 1}}, bookVersion: 1, etcd: etcd{last: 100},
	}
	for i := range c.Machines {
		name := fmt.Sprintf("seed-cp-%d", i+1)
		v := p.power(live.Machine{
			Name: name, Role: live.ControlPlanePool, Pool: live.ControlPlanePool, KubernetesVersion: c.Kubernetes, Image: c.Image,
			Created: c.Now.Add(time.Duration(i-1000) * time.Hour), Serving: true,
		})
		v.inState, v.phase, v.behind, v.etcdTag, v.apiVersion = true, joined, true, p.etcdTag(), p.configVersion()
		p.state.registry[name] = v.machine
		v.member = p.etcd.add(v.peer(), v)
		v.member.name, v.member.learner = name, false
		p.register(v)
		n := p.nodes[name]
		n.controlPlane, n.schedulable, n.beat = true, true, c.Now
		n.pods = []*pod{{name: fmt.Sprintf("web-%d", i+1)}, {name: fmt.Sprintf("db-%d", i+1)}}
		n.volumes = []string{fmt.Sprintf("csi-%d", i+1)}
		n.seen = v.parts()
	}
	p.etcd.leader = p.etcd.members[0]
	return p
}

// Pass lets time go by, second by second.
func (p *Plane) Pass(d time.Duration) {
	for end := p.Now.Add(d); p.Now.Before(end); {
		p.Now = p.Now.Add(time.Second)
		p.tick()
	}
}

func (p *Plane) tick() {
	p.elect()
	for _, name := range slices.Sorted(maps.Keys(p.vms)) {
		v := p.vms[name]
		if v.on {
			p.join(v)
		}
		p.balance(v)
	}
	p.beat()
	p.endPods()
	p.check()
}

// Restart is a new process, which remembers nothing. One that runs in the cluster comes to a node that takes pods.
func (p *Plane) Restart() {
	p.process = process{}
	if p.RunsOn == "" {
		return
	}
	for _, name := range slices.Sorted(maps.Keys(p.nodes)) {
		if n := p.nodes[name]; n.schedulable && p.ready(n) {
			p.RunsOn = name
			return
		}
	}
}

// Made is how many machines there ever were.
func (p *Plane) Made() int { return len(p.names) }

// Tell adds a line to the story.
func (p *Plane) Tell(format string, args ...any) {
	p.Story = append(p.Story, p.Now.Format("15:04:05")+" "+fmt.Sprintf(format, args...))
}

// tell is about what the world does by itself.
func (p *Plane) tell(format string, args ...any) { p.Tell("  "+format, args...) }

func (p *Plane) violate(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	if !slices.Contains(p.Violations, text) {
		p.Violations = append(p.Violations, text)
		p.Tell("!! %s", text)
	}
}
