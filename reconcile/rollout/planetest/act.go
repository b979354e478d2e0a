// SPDX-License-Identifier: Apache-2.0

package planetest

import (
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/theseus-gitops/theseus/reconcile/live"
	"github.com/theseus-gitops/theseus/reconcile/logbook"
	"github.com/theseus-gitops/theseus/reconcile/rollout"
)

// Blow is what befalls a write.
type Blow int

// The blows. A process that dies does so with a panic of type Killed.
const (
	NoBlow Blow = iota
	// FailBefore: an error, and nothing happened. FailAfter: it happened, and the answer was lost.
	FailBefore
	FailAfter
	// DieBefore and DieAfter: the process is killed.
	DieBefore
	DieAfter
	// DieAmid kills it while Terraform works. FailHalf and FailTainted are Terraform's own: asked for and not made, or half made.
	DieAmid
	FailHalf
	FailTainted
)

// Killed is what a killed process panics with.
type Killed struct{ At string }

func (p *Plane) die(how string) {
	p.Tell("# %s", how)
	panic(Killed{how})
}

// ErrUnreachable is a cluster whose API does not answer.
var ErrUnreachable = errors.New("the endpoint does not answer")

// write is one change of the world by the process, and what befalls it.
func (p *Plane) write(what string, act func() error) error {
	p.writes++
	p.blow = NoBlow
	if p.Strike != nil {
		p.blow = p.Strike(p.writes, what)
	}
	blow := p.blow
	switch blow { //nolint:exhaustive // the others come later, or from Terraform
	case DieBefore:
		p.die("killed before " + what)
	case FailBefore:
		return fmt.Errorf("%s: a connection broke", what)
	}
	if !p.reachable() {
		return fmt.Errorf("%s: %w", what, ErrUnreachable)
	}
	p.Pass(time.Second)
	err := act()
	p.blow = NoBlow
	p.check()
	if err != nil {
		return err
	}
	switch blow { //nolint:exhaustive // the others came before
	case DieAfter:
		p.die("killed after " + what)
	case FailAfter:
		return fmt.Errorf("%s: the answer was lost", what)
	}
	return nil
}

// WriteBook writes the logbook under the version that was seen.
func (p *Plane) WriteBook(version string, book logbook.Book) (string, error) {
	err := p.write("logbook", func() error {
		if version != strconv.Itoa(p.bookVersion) {
			return fmt.Errorf("logbook: %w", rollout.ErrConflict)
		}
		p.Book = book
		p.bookVersion++
		return nil
	})
	return strconv.Itoa(p.bookVersion), err
}

// Execute carries out a step as the executors do.
func (p *Plane) Execute(step rollout.Step) error {
	if err := p.reclaim(); err != nil {
		return err
	}
	name := step.Name() + " " + step.Subject
	p.promoteNow(step.Name())
	return p.write(name, func() error { return p.act(step.Act) })
}

func (p *Plane) act(act rollout.Act) error {
	switch act := act.(type) {
	case rollout.CheckModule:
		p.process.idle = p.state.serial
	case rollout.ObtainCredentials:
		return p.obtain(act)
	case rollout.DeleteCredentials:
		p.credentials = credentials{}
	case rollout.SnapshotEtcd:
		if !p.process.sees {
			return errors.New("no way to etcd")
		}
	case rollout.EnsureJoinRBAC:
		p.roles = true
	case rollout.SyncKubeadmConfig:
		return sync(&p.config, act.Text, act.ResourceVersion)
	case rollout.SyncKubeletConfig:
		return sync(&p.kubelet, act.Text, act.ResourceVersion)
	case rollout.UpdateKubeProxy:
		p.proxy.changed = p.Now
		return sync(&p.proxy.object, act.Image, act.ResourceVersion)
	case rollout.AddMachine:
		return p.addMachine(act)
	default:
		return p.actOnMember(act)
	}
	return nil
}

func (p *Plane) actOnMember(act rollout.Act) error {
	switch act := act.(type) {
	case rollout.MoveLeader:
		return p.moveLeader(act.To)
	case rollout.RemoveMember:
		return p.removeMember(act.Member)
	case rollout.AddPlaceholder:
		return p.addPlaceholder(act.PeerURL)
	case rollout.RemovePlaceholder:
		return p.removeMember(act.Member)
	case rollout.DestroyMachine:
		return p.destroyMachine(act.Machine)
	case rollout.DropEntry:
		return p.destroyMachine(act.Machine)
	case rollout.LeaveEndpoint:
		return p.leaveEndpoint(act.Machine)
	default:
		return p.actOnNode(act)
	}
}

func (p *Plane) actOnNode(act rollout.Act) error {
	switch act := act.(type) {
	case rollout.MarkLeaving:
		return p.onNode(act.Node, func(n *node) { n.leaving = p.Now.Format(time.RFC3339) })
	case rollout.UnmarkLeaving:
		return p.onNode(act.Node, func(n *node) { n.leaving, n.schedulable = "", true })
	case rollout.Cordon:
		return p.onNode(act.Node, func(n *node) { n.schedulable = false })
	case rollout.Drain:
		return p.drain(act)
	case rollout.DeleteNode:
		p.deleteNode(act.Node)
		return nil
	case rollout.StopAPIServer:
		v := p.vms[act.Node]
		if v == nil || !v.on {
			return errors.New("the pod that stops it never ran")
		}
		p.mayStop(v)
		v.stopped = true
		p.Pass(5 * time.Second)
		return nil
	default:
		return fmt.Errorf("no executor for %T", act)
	}
}

// obtain has a node print the certificates. What was there for a join goes with it.
func (p *Plane) obtain(act rollout.ObtainCredentials) error {
	n := p.nodes[act.Node]
	if n == nil || !p.connected(n) {
		return fmt.Errorf("the pod on %s never ran", act.Node)
	}
	p.credentials = credentials{left: true}
	p.Pass(10 * time.Second)
	p.credentials = credentials{}
	p.process.sees = true
	return nil
}

func sync(o *object, text, version string) error {
	if version != versionOf(o.version) {
		return rollout.ErrConflict
	}
	o.set(text)
	return nil
}

// Observe is what an honest observer sees now.
func (p *Plane) Observe() (live.Cluster, error) {
	if !p.reachable() {
		return live.Cluster{}, ErrUnreachable
	}
	p.looked = p.Now
	return p.view(), nil
}
