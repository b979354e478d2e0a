// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/theseus-gitops/theseus/reconcile/kubeadmconfig"
	"github.com/theseus-gitops/theseus/reconcile/live"
	"github.com/theseus-gitops/theseus/reconcile/logbook"
)

// Subjects of the steps before a join.
const (
	subjectKubelet = "configmap/kubelet-config"
	subjectRBAC    = "rbac"
	subjectEtcd    = "etcd"
)

// obtainCredentials is the step that lets this process see etcd, and let machines join.
func (p *plane) obtainCredentials() Decision {
	for _, m := range slices.Backward(p.byAge()) {
		if m.Node == nil || !m.Node.Ready || m.Node.Leaving != "" || p.book.Pending != nil && p.book.Pending.Name == m.Name {
			continue
		}
		if api := p.have.Kube.Plane.Parts[m.Node.Name].APIServer; api.Ready {
			return Do{Step: Step{
				Subject: m.Node.Name, Why: "etcd can be seen, and a machine let in, only with the cluster's certificates",
				Act: ObtainCredentials{Node: m.Node.Name, Image: api.Image},
			}}
		}
	}
	why := "no control-plane machine that stays is Ready with a healthy API server, so its certificates can't be had"
	return Wait{
		Until: p.now.Add(healthPatience), Why: why, Subject: "credentials", ResumedBy: AwaitedHealth,
		Else: &Failure{Reason: "ControlPlaneUnhealthy", Message: why, Remedy: "mend the machines; the next pass then goes on"},
	}
}

// byAge are the machines from the oldest to the newest, then by name.
func (p *plane) byAge() []live.MergedMachine {
	out := slices.Clone(p.all.Machines)
	slices.SortStableFunc(out, func(a, b live.MergedMachine) int {
		if c := a.Created.Compare(b.Created); c != 0 {
			return c
		}
		return strings.Compare(a.Name, b.Name)
	})
	return out
}

func (p *plane) deleteCredentials(why string) Decision {
	return Do{Step: Step{Subject: "credentials", Why: why, Act: DeleteCredentials{}}}
}

// add brings everything in place that a join needs, then adds a machine.
func (p *plane) add() Decision {
	if p.have.Kube.DNS.Config != nil && p.have.Kube.DNS.Config.Run.Open() && p.DNS != nil {
		if d := nextDNS(p.Want, *p.have.Kube, p.now); !finished(d) {
			return d
		}
	}
	if failure := p.etcdAddable(); failure != nil {
		return Stalled{Failure: *failure}
	}
	if p.want.Snapshot && p.begun().Snapshot == "" {
		after := p.noteAfter(func(_ *logbook.Book, r *logbook.Roll, _ time.Time) { r.Snapshot = p.snapshotName() })
		return Do{Step: Step{Subject: subjectEtcd, Why: "a verified snapshot is the way back", Act: SnapshotEtcd{p.snapshotName()}, After: after}}
	}
	if p.begun().Prepared != p.want.target() {
		after := p.noteAfter(func(_ *logbook.Book, r *logbook.Roll, _ time.Time) { r.Prepared = p.want.target() })
		return Do{Step: Step{Subject: subjectRBAC, Why: "a join needs roles and bindings that it does not make", Act: EnsureJoinRBAC{}, After: after}}
	}
	text, failure := p.wantedConfig()
	if failure != nil {
		return Stalled{Failure: *failure}
	}
	if text != p.have.Kube.KubeadmConfig.ClusterConfiguration {
		return p.syncConfig(text, "a joining machine takes its versions from kubeadm-config")
	}
	if d := p.syncKubelet(); d != nil {
		return d
	}
	return p.begin()
}

func finished(d Decision) bool {
	_, done := d.(Done)
	return done
}

// etcdAddable refuses a new member where it could cost the quorum.
func (p *plane) etcdAddable() *Failure {
	etcd := p.have.Etcd
	count := etcd.CountWith()
	switch {
	case !etcd.Confirmed || !etcd.Count().Quorum():
		return &Failure{Reason: "EtcdNoQuorum", Message: "etcd has no quorum, or none that could be seen", Remedy: "bring its members back; Theseus changes no membership without a quorum"}
	case len(etcd.Strangers) > 0 || len(etcd.Differences) > 0:
		return &Failure{Reason: "EtcdMembersDiffer", Message: "etcd's members disagree about who they are: " + strings.Join(append(strangers(etcd), etcd.Differences...), "; "), Remedy: "see `etcdctl member list` on each of them; the next pass looks again"}
	case !count.Quorum():
		return &Failure{Reason: "EtcdNoQuorum", Message: fmt.Sprintf("with one more member, %d of %d would be healthy", count.Healthy, count.Voters), Remedy: "mend or remove the member that is not healthy first"}
	}
	return nil
}

func strangers(e *live.Etcd) []string {
	var out []string
	for _, s := range e.Strangers {
		out = append(out, "the etcd on "+s.Node+" is no member")
	}
	return out
}

// snapshotName is the same for all passes of a roll, and another for the next.
func (p *plane) snapshotName() string {
	id := p.begun().ID
	if id == "" {
		id = p.now.UTC().Format("20060102T150405Z")
	}
	return p.Owner.Cluster + "-" + id + ".db"
}

// begun is the roll under way, the zero value when none was begun yet.
func (p *plane) begun() logbook.Roll {
	if p.book.Roll == nil {
		return logbook.Roll{}
	}
	return *p.book.Roll
}

// note is the logbook with a change; the roll in it is a copy, empty when none was begun yet.
func (p *plane) note(change func(b *logbook.Book, r *logbook.Roll)) *logbook.Book {
	book, roll := p.book, p.begun()
	change(&book, &roll)
	if p.book.Roll != nil || roll.Prepared != "" || roll.Snapshot != "" {
		book.Roll = &roll
	}
	return &book
}

// noteAfter is note for what is written once an act has worked, when it is known how late that is.
func (p *plane) noteAfter(change func(b *logbook.Book, r *logbook.Roll, now time.Time)) func(now time.Time) *logbook.Book {
	return func(now time.Time) *logbook.Book {
		return p.note(func(b *logbook.Book, r *logbook.Roll) { change(b, r, now) })
	}
}

// keep is the logbook with an original in it, when it has none of that kind yet.
func (p *plane) keep(into func(o *logbook.Originals) *string, text string) *logbook.Book {
	originals := logbook.Originals{}
	if p.book.Originals != nil {
		originals = *p.book.Originals
	}
	if at := into(&originals); *at == "" {
		*at = text
	}
	return p.note(func(b *logbook.Book, _ *logbook.Roll) { b.Originals = &originals })
}

func (p *plane) syncConfig(text, why string) Decision {
	cfg := p.have.Kube.KubeadmConfig
	return Do{Step: Step{
		Subject: subjectKubeadm, Why: why, Act: SyncKubeadmConfig{Text: text, ResourceVersion: cfg.ResourceVersion},
		Before: p.keep(func(o *logbook.Originals) *string { return &o.KubeadmConfig }, cfg.ClusterConfiguration),
	}}
}

// kubeletKey is that of ConfigMap kubelet-config.
const kubeletKey = "kubelet"

// syncKubelet drops from kubelet-config what the target's kubelet does not start with; nil when there is nothing to do.
func (p *plane) syncKubelet() Decision {
	cfg := p.have.Kube.KubeletConfig
	if cfg == nil {
		return nil
	}
	present := cfg.Data[kubeletKey]
	text, notes, err := kubeadmconfig.PruneKubelet(present, p.want.Kubernetes)
	if err != nil {
		return Stalled{Failure: Failure{Reason: "KubeletConfigUnfit", Message: "ConfigMap kube-system/kubelet-config, key kubelet: " + err.Error(), Remedy: "correct it by hand"}}
	}
	if o := p.book.Originals; o != nil && o.KubeletConfig != "" {
		if back, _, err := kubeadmconfig.PruneKubelet(o.KubeletConfig, p.want.Kubernetes); err == nil {
			text = back // what was dropped for a target that is no longer wanted comes back
		}
	}
	if text == present {
		return nil
	}
	why := "the new kubelets must start with it"
	if len(notes) > 0 {
		why = strings.Join(notes, "; ")
	}
	return Do{Step: Step{
		Subject: subjectKubelet, Why: why, Act: SyncKubeletConfig{Text: text, ResourceVersion: cfg.ResourceVersion},
		Before: p.keep(func(o *logbook.Originals) *string { return &o.KubeletConfig }, present),
	}}
}

// begin adds a machine, whose name is written down before anything of it exists.
func (p *plane) begin() Decision {
	serial := p.lastSerial() + 1
	pending := logbook.Pending{
		Name: fmt.Sprintf("%s-cp-%s", p.Owner.Cluster, strconv.FormatUint(serial, 36)), Serial: serial,
		Target: p.want.target(), Since: p.now, FailureDomain: p.domain(),
	}
	before := p.note(func(b *logbook.Book, _ *logbook.Roll) {
		b.Serial, b.Pending, b.Members = serial, &pending, p.recorded()
	})
	return Do{Step: p.addStep(pending, before)}
}

// addStep is the step that adds a pending machine.
func (p *plane) addStep(pending logbook.Pending, before *logbook.Book) Step {
	return Step{
		Subject: pending.Name, Why: p.addWhy(), Before: before, Limit: p.want.Timeouts.Create,
		Act: AddMachine{
			Machine: live.Machine{
				Name: pending.Name, Role: live.ControlPlanePool, Pool: live.ControlPlanePool, KubernetesVersion: p.want.Kubernetes.String(), Image: p.want.Image,
				FailureDomain: pending.FailureDomain, Created: pending.Since.UTC().Truncate(time.Second), Serving: true, Values: p.want.Values,
			},
			Until: pending.Since.Add(p.want.Timeouts.Create + p.want.Timeouts.Join), Taints: p.taints(),
		},
		After: func(now time.Time) *logbook.Book {
			book := p.note(func(*logbook.Book, *logbook.Roll) {})
			if before != nil {
				*book = *before
			}
			made := pending
			made.Made = now
			book.Pending = &made
			return book
		},
	}
}

func (p *plane) addWhy() string {
	have := len(p.all.Machines)
	if have < p.want.Replicas {
		return fmt.Sprintf("%s wanted, there are %d", count(p.want.Replicas, "machine"), have)
	}
	m := p.pick()
	return fmt.Sprintf("it takes the place of %s: %s", m.Name, p.stale(m))
}

// taints are those of new Nodes, nil to leave them to kubeadm: the spec's, or else those of the present ones.
func (p *plane) taints() []live.Taint {
	if p.want.Taints != nil {
		return p.want.Taints
	}
	for _, m := range slices.Backward(p.byAge()) {
		if m.Node == nil {
			continue
		}
		out := []live.Taint{}
		for _, t := range m.Node.Taints {
			if !strings.HasPrefix(t.Key, "node.kubernetes.io/") && !strings.HasPrefix(t.Key, "node.cloudprovider.kubernetes.io/") {
				out = append(out, t)
			}
		}
		return out
	}
	return nil
}

// lastSerial is the highest serial number that any machine of the cluster ever had, as far as anything tells. It is written
// down with whatever takes a machine away: afterwards nothing else tells of its name.
func (p *plane) lastSerial() uint64 {
	last := p.book.Serial
	seen := func(name string) {
		if text, ours := strings.CutPrefix(name, p.Owner.Cluster+"-cp-"); ours {
			if n, err := strconv.ParseUint(text, 36, 63); err == nil {
				last = max(last, n)
			}
		}
	}
	for _, m := range p.have.Machines.All {
		seen(m.Name)
	}
	for _, n := range p.have.Kube.Nodes {
		seen(n.Name)
	}
	for _, m := range p.have.Etcd.Members {
		seen(m.Name)
	}
	for name := range p.book.Members {
		seen(name)
	}
	return last
}

// recorded are the members of all present machines, for the logbook.
func (p *plane) recorded() map[string]logbook.Member {
	out := map[string]logbook.Member{}
	for _, m := range p.all.Machines {
		if m.Member != nil {
			out[m.Name] = logbook.Member{ID: m.Member.ID.String(), PeerURLs: m.Member.PeerURLs}
		}
	}
	return out
}

// without is a map of the logbook's members less one.
func without(members map[string]logbook.Member, name string) map[string]logbook.Member {
	out := maps.Clone(members)
	delete(out, name)
	return out
}
