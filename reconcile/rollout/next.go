// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"time"

	"github.com/theseus-gitops/theseus/reconcile/live"
)

// Want is what the effective spec asks of a cluster.
type Want struct {
	// Revision is the hash of the effective spec.
	Revision string
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
	if want.DNS == nil {
		return Done{Why: "the spec names no CoreDNS tag, so CoreDNS is left alone"}
	}
	return nextDNS(want, *have.Kube, now)
}

// GiveUp is the step that remembers that the wanted target has failed, for an executor that found it out.
// It is nil when nothing is wanted that could fail.
func GiveUp(want Want, have live.Cluster, f Failure, now time.Time) *Step {
	if have.Kube == nil || want.DNS == nil || absentDNS(*have.Kube) != nil {
		return nil
	}
	d := lookAtDNS(want, *have.Kube, now)
	if d.resolveTarget() != nil {
		return nil
	}
	step := d.giveUp(f)
	return &step
}
