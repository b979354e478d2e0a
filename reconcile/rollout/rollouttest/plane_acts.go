// SPDX-License-Identifier: Apache-2.0

package rollouttest

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/theseus-gitops/theseus/reconcile/live"
	"github.com/theseus-gitops/theseus/reconcile/logbook"
	"github.com/theseus-gitops/theseus/reconcile/rollout"
)

func (w *Plane) rv() string { return strconv.Itoa(w.version) }

// WriteBook writes the logbook.
func (w *Plane) WriteBook(b logbook.Book) { w.Book = b }

// Die ends this process: what it alone had is gone.
func (w *Plane) Die() { w.sees, w.idle, w.interrupted = false, false, false }

// ErrCutOff is the end of this process in the middle of an act.
var ErrCutOff = errors.New("killed together with Terraform")

// Do carries out an act by the rules of who carries it out.
//
//nolint:cyclop // one line per act
func (w *Plane) Do(act rollout.Act) error {
	if w.locked && (rollout.Step{Act: act}).LocksState() {
		w.locked, w.interrupted = false, true // whoever needs the lock next breaks the dead one, and looks again
		return rollout.ErrConflict
	}
	switch a := act.(type) {
	case rollout.CheckModule:
		w.idle = true
	case rollout.ObtainCredentials:
		w.sees, w.token = true, "" // whatever an earlier run left is removed
		w.Settle()
	case rollout.DeleteCredentials:
		w.token = ""
	case rollout.SnapshotEtcd, rollout.EnsureJoinRBAC, rollout.Note:
	case rollout.SyncKubeadmConfig:
		return w.write(a.ResourceVersion, &w.config, a.Text)
	case rollout.SyncKubeletConfig:
		return w.write(a.ResourceVersion, &w.kubelet, a.Text)
	case rollout.UpdateKubeProxy:
		return w.write(a.ResourceVersion, &w.proxy, a.Image)
	case rollout.AddMachine:
		return w.add(a)
	case rollout.DestroyMachine:
		return w.destroy(a.Machine)
	case rollout.DropEntry:
		return w.destroy(a.Machine)
	case rollout.LeaveEndpoint:
		for _, e := range w.entries {
			if e.Name == a.Machine {
				e.Serving = false
			}
		}
	default:
		return w.doOnNode(act)
	}
	return nil
}

func (w *Plane) write(resourceVersion string, to *string, text string) error {
	if resourceVersion != w.rv() {
		return rollout.ErrConflict
	}
	w.version++
	*to = text
	return nil
}

func (w *Plane) add(a rollout.AddMachine) error {
	if w.used[a.Machine.Name] {
		return fmt.Errorf("machine %s was there before", a.Machine.Name)
	}
	if !w.sees {
		return errors.New("without credentials nothing can be prepared for a join")
	}
	w.token = a.Machine.Name
	w.make(a.Machine)
	if w.CutOff {
		w.CutOff, w.locked, w.orphans[a.Machine.Name] = false, true, true
		w.entries = w.entries[:len(w.entries)-1]
		return ErrCutOff
	}
	return nil
}

func (w *Plane) destroy(name string) error {
	w.entries = slices.DeleteFunc(w.entries, func(e *entry) bool { return e.Name == name })
	w.vms = slices.DeleteFunc(w.vms, func(v *vm) bool { return v.name == name })
	return nil
}

func (w *Plane) doOnNode(act rollout.Act) error {
	switch a := act.(type) {
	case rollout.MarkLeaving:
		return w.onNode(a.Node, func(n *node) { n.Leaving = w.Now.Format("2006-01-02T15:04:05Z07:00") })
	case rollout.UnmarkLeaving:
		return w.onNode(a.Node, func(n *node) { n.Leaving, n.Schedulable = "", true })
	case rollout.Cordon:
		return w.onNode(a.Node, func(n *node) { n.Schedulable = false })
	case rollout.DeleteNode:
		w.nodes = slices.DeleteFunc(w.nodes, func(n *node) bool { return n.Name == a.Node })
	case rollout.Drain:
		w.drain(a.Node)
	case rollout.StopAPIServer:
		if v := w.machine(a.Node); v != nil {
			v.apiDown = true
		}
	default:
		return w.doInEtcd(act)
	}
	return nil
}

func (w *Plane) onNode(name string, edit func(n *node)) error {
	n := w.find(name)
	if n == nil {
		return rollout.ErrConflict
	}
	edit(n)
	return nil
}

// drain moves the pods to another node, unless a budget keeps them.
func (w *Plane) drain(name string) {
	v := w.machine(name)
	if v == nil || w.Now.Before(w.Blocked[name]) {
		return
	}
	for _, other := range w.vms {
		if n := w.find(other.name); other != v && n != nil && n.Schedulable && other.phase == serves {
			other.pods, v.pods = append(other.pods, v.pods...), nil
			return
		}
	}
}

// doInEtcd follows etcd's rules for changes of membership: a quorum must answer, one learner at a time, only a learner may be
// promoted, and the voters that are left and run must be a quorum (strict reconfiguration).
func (w *Plane) doInEtcd(act rollout.Act) error {
	if !w.sees || !w.Quorum() {
		return errors.New("etcd can't be asked")
	}
	switch a := act.(type) {
	case rollout.MoveLeader:
		m := w.memberByID(a.To.ID)
		if m == nil || m.learner || !w.runs(m) {
			return rollout.ErrConflict
		}
		w.leader = m.id
	case rollout.RemoveMember:
		return w.remove(a.Member)
	case rollout.RemovePlaceholder:
		return w.remove(a.Member)
	case rollout.AddPlaceholder:
		if slices.ContainsFunc(w.members, func(m *member) bool { return m.learner }) {
			return errors.New("etcd has a learner already")
		}
		w.members = append(w.members, &member{id: w.nextID(), url: a.PeerURL, learner: true})
	default:
		return fmt.Errorf("the world knows no act %T", act)
	}
	return nil
}

func (w *Plane) memberByID(id live.MemberID) *member {
	i := slices.IndexFunc(w.members, func(m *member) bool { return m.id == id })
	if i < 0 {
		return nil
	}
	return w.members[i]
}

// remove removes a member that is still as it was when that was decided.
func (w *Plane) remove(r live.MemberRef) error {
	m := w.memberByID(r.ID)
	switch {
	case m == nil:
		return nil
	case m.learner != r.Learner || !strings.EqualFold(m.name, r.Name):
		return rollout.ErrConflict
	}
	if !m.learner {
		all, running := w.Voters()
		if w.runs(m) {
			running--
		}
		if running <= (all-1)/2 {
			return errors.New("etcd refuses: the voters that are left and run would be no quorum")
		}
	}
	w.members = slices.DeleteFunc(w.members, func(other *member) bool { return other == m })
	if v := w.machine(m.vm); v != nil && v.phase == serves {
		v.phase = failed // its etcd ends, and its API server with it
		v.since = w.Now
	}
	w.Settle()
	return nil
}
