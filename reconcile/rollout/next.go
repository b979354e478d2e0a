// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"fmt"
	"slices"
	"time"

	"github.com/theseus-gitops/theseus/reconcile/live"
	"github.com/theseus-gitops/theseus/reconcile/logbook"
)

// Want is what the effective spec asks of a cluster.
type Want struct {
	// Revision is the hash of the effective spec.
	Revision string
	// Owner is the spec itself, as the logbook names it.
	Owner logbook.Owner
	// Siblings are the names of all clusters of the fleet, this one included; nil when not all can be told.
	Siblings []string
	// Plane is nil when the spec leaves the machines alone.
	Plane *WantPlane
	// DNS is nil when the spec names no CoreDNS tag: CoreDNS is then left alone.
	DNS *WantDNS
}

// WantDNS is what the spec says of CoreDNS.
type WantDNS struct {
	Tag           string
	Repository    string
	SkipMigration bool
	TakeOver      bool
}

// observeAgain is how long to wait for a view that is missing.
const observeAgain = 10 * time.Second

// Next decides what to do next, from what is wanted, what was observed and the time of the observation.
// It is asked again after every step, so it plans nothing ahead; Play does.
func Next(want Want, have live.Cluster, now time.Time) Decision {
	if have.Kube == nil {
		return Wait{Until: now.Add(observeAgain), Why: "the cluster was not observed yet", ResumedBy: AwaitedNothing}
	}
	if owner := have.Kube.Book.Owner; !want.owns(owner) {
		return Stalled{Failure: ownedElsewhere(want.Owner, owner)}
	}
	if have.Kube.DNS.Canary {
		return Do{Step: Step{
			Subject: subjectCanary, Why: "an interrupted run left it",
			Act: RemoveCanary{},
		}}
	}
	if want.Plane != nil {
		if d := nextPlane(want, have, now); d != nil {
			return d
		}
	}
	var decision Decision
	if want.DNS == nil {
		decision = withdrawDNS(want, *have.Kube, now)
	} else {
		decision = nextDNS(want, *have.Kube, now)
	}
	if done, ok := decision.(Done); ok && want.Plane != nil {
		return planeDone(want, have, done)
	}
	return decision
}

// owns reports whether the spec may change a cluster with that owner. A spec that was renamed within its repository
// takes over what no spec claims any more.
func (w Want) owns(owner logbook.Owner) bool {
	if !owner.Known() || owner == w.Owner {
		return true
	}
	return owner.Place() == w.Owner.Place() && w.Siblings != nil && !slices.Contains(w.Siblings, owner.Cluster)
}

func ownedElsewhere(own, other logbook.Owner) Failure {
	whose := fmt.Sprintf("spec %s of %s", other.Cluster, other)
	if other.Place() == own.Place() {
		whose = fmt.Sprintf("spec %s of this fleet", other.Cluster)
	}
	return Failure{
		Reason:  "ClusterOwnedElsewhere",
		Message: fmt.Sprintf("spec %s of %s reaches a cluster that is upgraded by %s: two specs for one cluster would undo each other's work", own.Cluster, own, whose),
		Remedy: "correct spec.access, or remove one of the two specs; to hand the cluster over to this one, stop the other and remove \"owner\" from key " + logbook.Key +
			": kubectl -n " + logbook.Namespace + " edit configmap " + logbook.Name,
	}
}

// GiveUp is the step that remembers that the wanted CoreDNS has failed, for an executor that found it out in a step.
// It is nil when nothing is wanted that could fail, and when the target is not to blame. A machine that fails is
// remembered when it is taken back.
func GiveUp(want Want, have live.Cluster, failed Step, f Failure, now time.Time) *Step {
	switch failed.Act.(type) {
	case EnsureDNSRole, CanaryDNS, RemoveCanary, SyncDNSConfig, WriteCorefile, PatchDNS, VerifyDNS, RecordDNSRun:
	default:
		return nil
	}
	if f.Elsewhere || have.Kube == nil || want.DNS == nil || absentDNS(*have.Kube) != nil {
		return nil
	}
	d := lookAtDNS(want, *have.Kube, now)
	if d.resolveTarget() != nil {
		return nil
	}
	step := d.giveUp(f)
	return &step
}
