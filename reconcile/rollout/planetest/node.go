// SPDX-License-Identifier: Apache-2.0

package planetest

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/theseus-gitops/theseus/reconcile/live"
	"github.com/theseus-gitops/theseus/reconcile/rollout"
)

// node is a Kubernetes Node. It stays when its machine goes.
type node struct {
	name, address string
	version       string
	created       time.Time
	controlPlane  bool
	schedulable   bool
	leaving       string
	beat          time.Time
	beaten        bool
	pods          []*pod
	volumes       []string
	empty         time.Time
	seen          live.Parts
}

// pod is one that a drain has to evict. It is of a StatefulSet: once ended, it comes again under its name on another node.
type pod struct {
	name string
	// held is until when a budget keeps it.
	held time.Time
	// ending is since when it ends.
	ending time.Time
}

const (
	// silence is how long a kubelet may be silent before its Node is called NotReady.
	silence = 40 * time.Second
	podEnds = 8 * time.Second
	detach  = 6 * time.Second
)

// register is a kubelet's first word.
func (p *Plane) register(v *vm) {
	p.nodes[v.name] = &node{name: v.name, address: v.address, version: v.machine.KubernetesVersion, created: p.Now, schedulable: true, beat: p.Now}
}

// connected reports whether the node's kubelet has somebody to talk to: the API server beside it alone
// (ControlPlaneKubeletLocalMode).
func (p *Plane) connected(n *node) bool {
	v := p.vms[n.name]
	return v != nil && v.serves(p)
}

func (p *Plane) ready(n *node) bool { return n.beaten && p.Now.Sub(n.beat) < silence }

// beat lets every kubelet tell how its node is.
func (p *Plane) beat() {
	for _, n := range p.nodes {
		if p.connected(n) {
			n.beat, n.beaten, n.seen = p.Now, true, p.vms[n.name].parts()
		}
	}
}

// endPods ends pods that were evicted, where the kubelet hears of it, and detaches volumes that nobody uses any more.
func (p *Plane) endPods() {
	for _, name := range slices.Sorted(maps.Keys(p.nodes)) {
		n := p.nodes[name]
		if !p.connected(n) {
			continue
		}
		var gone []*pod
		n.pods = slices.DeleteFunc(n.pods, func(o *pod) bool {
			ended := !o.ending.IsZero() && p.Now.Sub(o.ending) >= podEnds
			if ended {
				gone = append(gone, o)
			}
			return ended
		})
		p.schedule(gone)
		if len(n.pods) > 0 {
			n.empty = p.Now
		} else if p.Now.Sub(n.empty) >= detach {
			n.volumes = nil
		}
	}
}

// schedule brings pods to the node with the fewest, with a volume for those that have one.
func (p *Plane) schedule(pods []*pod) {
	for _, o := range pods {
		var best *node
		for _, name := range slices.Sorted(maps.Keys(p.nodes)) {
			n := p.nodes[name]
			if n.schedulable && p.ready(n) && (best == nil || len(n.pods) < len(best.pods)) {
				best = n
			}
		}
		if best != nil {
			best.pods = append(best.pods, &pod{name: o.name, held: o.held})
			best.volumes = []string{"csi-of-" + best.name}
		}
	}
}

// Hold has a budget keep a pod where it is until a time.
func (p *Plane) Hold(name string, until time.Time) {
	for _, n := range p.nodes {
		for _, o := range n.pods {
			if o.name == name {
				o.held = until
			}
		}
	}
}

// onNode changes a node, which the API must have.
func (p *Plane) onNode(name string, change func(n *node)) error {
	n := p.nodes[name]
	if n == nil {
		return fmt.Errorf("node %s is gone: %w", name, rollout.ErrConflict)
	}
	change(n)
	return nil
}

// drain is one round, of up to 20 s.
func (p *Plane) drain(act rollout.Drain) error {
	n := p.nodes[act.Node]
	if n == nil || n.schedulable {
		return fmt.Errorf("node %s is gone, or no longer cordoned: %w", act.Node, rollout.ErrConflict)
	}
	for end := p.Now.Add(20 * time.Second); p.Now.Before(end) && len(n.pods) > 0; {
		for _, o := range n.pods {
			if o.ending.IsZero() && !p.Now.Before(o.held) {
				o.ending = p.Now
			}
		}
		p.Pass(time.Second)
	}
	return nil
}

// deleteNode deletes a Node; its pods come again elsewhere.
func (p *Plane) deleteNode(name string) {
	n := p.nodes[name]
	if n == nil {
		return
	}
	if v := p.vms[name]; v != nil && v.inState {
		p.violate("the Node of %s was deleted, and its machine is there", name)
	}
	delete(p.nodes, name)
	p.schedule(n.pods)
}

// proxy is DaemonSet kube-proxy; its text is the image.
type proxy struct {
	object
	changed time.Time
}

func (p *Plane) proxyRollout() live.Rollout {
	wanted := int32(len(p.nodes)) //nolint:gosec // a handful
	r := live.Rollout{Generation: 1, ObservedGeneration: 1, Wanted: wanted, Total: wanted, Updated: wanted}
	if p.Now.Sub(p.proxy.changed) < 20*time.Second {
		r.Updated = 0
	}
	return r
}
