// SPDX-License-Identifier: Apache-2.0

package planetest

import (
	"cmp"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/theseus-gitops/theseus/reconcile/live"
	"github.com/theseus-gitops/theseus/reconcile/skew"
)

// vm is a machine that exists, whether Terraform knows it or not.
type vm struct {
	name, address string
	machine       live.Machine
	// on tells that it has power; tainted that Terraform did not finish it; inState that Terraform knows it.
	on, tainted, inState bool
	fate                 Fate
	phase                Phase
	// next is when the phase goes on, since when it began.
	next, since time.Time
	attempts    int
	// member is its own etcd while that is a member and runs.
	member              *member
	etcdTag, apiVersion string
	// stopped tells that its API server was taken away.
	stopped bool
	// behind tells that the load balancer sends clients to it, turned since when it should change its mind.
	behind bool
	turned time.Time
}

// Phase is how far a machine is with its join, in kubeadm's order.
type Phase int

// The phases. Etcd is joined before the kubelet is waited for, because the API server beside it can't start without.
const (
	booting Phase = iota
	// Preflight is kubeadm's beginning: it reads the cluster's configuration and takes the certificates.
	Preflight
	// StartingKubelet is when its Node comes.
	StartingKubelet
	// JoiningEtcd is when its member comes, as a learner.
	JoiningEtcd
	// CatchingUp is when the learner is to be promoted.
	CatchingUp
	// Rising is when its member votes and the rest starts.
	Rising
	joined
	failed
)

// Fate is what befalls a machine.
type Fate struct {
	// Boots is how long it takes until kubeadm begins, Takes how long each phase of a join takes; 0 for the usual.
	Boots, Takes time.Duration
	// Dies is the phase in which it loses power for ever, 0 for none. Fails is the phase in which kubeadm fails.
	Dies, Fails Phase
	// StaysLearner tells that its member is never promoted.
	StaysLearner bool
	// PromotedBy is the step at whose beginning, after it was decided, its learner is promoted.
	PromotedBy string
}

// Times of a join.
const (
	boot         = 30 * time.Second
	phaseTakes   = 5 * time.Second
	tryAgain     = 15 * time.Second
	mostAttempts = 5
	etcdPatience = 2 * time.Minute // kubeadm's time-out for calls to etcd
)

// power makes a machine and turns it on.
func (p *Plane) power(m live.Machine) *vm {
	if p.names[m.Name] {
		p.violate("a second machine got the name %s", m.Name)
	}
	p.names[m.Name] = true
	v := &vm{name: m.Name, machine: m, on: true, fate: p.Fates[m.Name], address: fmt.Sprintf("10.0.0.%d", 10+len(p.names))}
	v.next = p.Now.Add(cmp.Or(v.fate.Boots, boot))
	p.vms[m.Name] = v
	return v
}

// Die turns a machine off for ever.
func (p *Plane) Die(name string) {
	if v := p.vms[name]; v != nil {
		v.on = false
		p.tell("%s loses power", name)
		p.elect()
	}
}

func (v *vm) peer() string { return "https://" + v.address + ":2380" }

// enter begins a phase.
func (p *Plane) enter(v *vm, phase Phase) {
	v.attempts = 0
	v.phase, v.since, v.next = phase, p.Now, p.Now.Add(cmp.Or(v.fate.Takes, phaseTakes))
	switch phase { //nolint:exhaustive // the fate names the phases
	case v.fate.Dies:
		p.Die(v.name)
	case v.fate.Fails:
		v.phase = failed
		p.tell("%s: kubeadm fails", v.name)
	}
}

// join goes on with a machine's join.
func (p *Plane) join(v *vm) {
	if v.phase >= joined || p.Now.Before(v.next) {
		return
	}
	switch v.phase {
	case booting:
		p.tell("%s boots", v.name)
		p.enter(v, Preflight)
	case Preflight:
		p.preflight(v)
	case StartingKubelet:
		if p.tokenOf(v) {
			p.register(v)
		}
		p.enter(v, JoiningEtcd)
	case JoiningEtcd:
		p.joinEtcd(v)
	case CatchingUp:
		p.catchUp(v)
	case Rising:
		v.phase = joined
		if n := p.nodes[v.name]; n != nil {
			n.controlPlane = true
		}
		p.tell("%s: kubeadm has joined it", v.name)
	case joined, failed:
	}
}

// tokenOf reports whether the machine's token is still good.
func (p *Plane) tokenOf(v *vm) bool {
	return p.reachable() && p.credentials.machine == v.name && p.Now.Before(p.credentials.until)
}

// preflight takes all that it needs of the cluster. What is deleted later does not stop the join any more.
func (p *Plane) preflight(v *vm) {
	if why := p.refusesJoin(v); why != "" {
		v.attempts++
		v.next = p.Now.Add(tryAgain)
		if v.attempts >= mostAttempts {
			v.phase = failed
			p.tell("%s: kubeadm fails: %s", v.name, why)
		}
		return
	}
	v.apiVersion, v.etcdTag = p.configVersion(), p.etcdTag()
	p.enter(v, StartingKubelet)
}

func (p *Plane) refusesJoin(v *vm) string {
	own, err := skew.Parse(v.machine.KubernetesVersion)
	if err != nil {
		return err.Error()
	}
	cluster, err := skew.Parse(p.configVersion())
	switch {
	case err != nil:
		return err.Error()
	case !p.tokenOf(v):
		return "no token"
	case !p.roles:
		return "kubelet-config may not be read"
	case own.Minor > cluster.Minor:
		return "KubeletVersion: the kubelet is newer than kubeadm-config"
	}
	return ""
}

// joinEtcd adds the machine's member. Refused for too long, kubeadm fails, and is not tried again.
func (p *Plane) joinEtcd(v *vm) {
	m, err := p.addLearner(v.peer(), v)
	if err != nil {
		if v.attempts == 0 {
			p.tell("%s may not join etcd: %v", v.name, err)
		}
		v.attempts++
		v.next = p.Now.Add(phaseTakes)
		if p.Now.Sub(v.since) >= etcdPatience {
			v.phase = failed
			p.tell("%s: kubeadm fails: %v", v.name, err)
		}
		return
	}
	v.member = m
	p.tell("%s is a learner of etcd", v.name)
	p.enter(v, CatchingUp)
}

// catchUp starts the member, then has it promoted. One that was removed meanwhile is not added again.
func (p *Plane) catchUp(v *vm) {
	if v.member == nil {
		v.phase = failed
		p.tell("%s: kubeadm fails: its member was removed", v.name)
		return
	}
	v.next = p.Now.Add(phaseTakes)
	if v.member.name == "" {
		v.member.name = v.name
		return
	}
	if v.fate.StaysLearner || v.fate.PromotedBy != "" && v.member.learner || v.member.learner && p.promote(v.member) != nil {
		if p.Now.Sub(v.since) >= etcdPatience && v.fate.PromotedBy == "" {
			v.phase = failed
			p.tell("%s: kubeadm fails: its member is not promoted", v.name)
		}
		return
	}
	p.enter(v, Rising)
}

// promoteNow promotes the learners whose time has come with a step.
func (p *Plane) promoteNow(step string) {
	for _, v := range p.vms {
		if v.fate.PromotedBy == step && v.member != nil && v.member.learner && v.member.name != "" {
			_ = p.promote(v.member)
		}
	}
}

// serves reports whether the machine's API server answers: it needs the etcd beside it.
func (v *vm) serves(p *Plane) bool {
	return v.on && v.phase == joined && !v.stopped && v.member != nil && !v.member.learner && p.etcd.works()
}

// reachable reports whether the cluster's API answers through the endpoint.
func (p *Plane) reachable() bool {
	for _, v := range p.vms {
		if v.behind && v.serves(p) {
			return true
		}
	}
	return false
}

// balance is the load balancer's health check of a machine.
func (p *Plane) balance(v *vm) {
	const notices = 10 * time.Second
	should := v.serves(p) && (!p.state.serving || !v.inState || p.state.registry[v.name].Serving)
	if should == v.behind {
		v.turned = p.Now
		return
	}
	if p.Now.Sub(v.turned) >= notices {
		v.behind = should
	}
}

// parts are the static pods as the kubelet sees them.
func (v *vm) parts() live.Parts {
	part := func(component, tag string, ready bool) live.Part {
		return live.Part{Image: "registry.k8s.io/" + component + ":" + tag, Ready: ready}
	}
	up := v.phase == joined && v.member != nil && !v.stopped
	return live.Parts{
		APIServer: part("kube-apiserver", v.apiVersion, up), ControllerManager: part("kube-controller-manager", v.apiVersion, up),
		Scheduler: part("kube-scheduler", v.apiVersion, up), Etcd: part("etcd", v.etcdTag, v.member != nil),
	}
}

var (
	versionLine = regexp.MustCompile(`(?m)^kubernetesVersion: (\S+)$`)
	etcdLine    = regexp.MustCompile(`(?m)^ +imageTag: (\S+)$`)
)

// configVersion is what kubeadm-config says.
func (p *Plane) configVersion() string { return first(versionLine, p.config.text) }

func (p *Plane) etcdTag() string { return first(etcdLine, p.config.text) }

func first(r *regexp.Regexp, text string) string {
	if m := r.FindStringSubmatch(text); m != nil {
		return m[1]
	}
	return ""
}

// number is the tag's core, "3.6.16" of "3.6.16-0".
func number(tag string) string {
	core, _, _ := strings.Cut(tag, "-")
	return core
}

func versionOf(n int) string { return strconv.Itoa(n) }
