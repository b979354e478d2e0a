// SPDX-License-Identifier: Apache-2.0

package reconcile

import (
	"fmt"
	"slices"

	"github.com/theseus-gitops/theseus/reconcile/live"
	"github.com/theseus-gitops/theseus/reconcile/rollout"
	"github.com/theseus-gitops/theseus/reconcile/skew"
	"github.com/theseus-gitops/theseus/reconcile/spec"
)

// want is what this version acts on, of what the spec wants.
func (p *Pass) want(f fleet, c spec.EffectiveCluster) (rollout.Want, error) {
	want := rollout.Want{Revision: c.Revision, Owner: p.Place(), Siblings: f.known}
	want.Owner.Cluster = c.Name
	if dns := c.Spec.CoreDNS; dns.ImageTag != "" {
		want.DNS = &rollout.WantDNS{Tag: dns.ImageTag, Repository: dns.ImageRepository, SkipMigration: dns.SkipCorefileMigration, TakeOver: dns.TakeOver}
	}
	if !c.Spec.RollsMachines() {
		return want, nil
	}
	version, err := skew.Parse(string(c.Spec.KubernetesVersion))
	if err != nil {
		return want, fmt.Errorf("kubernetesVersion: %w", err)
	}
	want.Plane = wantPlane(c, version)
	return want, nil
}

// wantPlane is what the spec says of the control plane's machines.
func wantPlane(c spec.EffectiveCluster, version skew.Version) *rollout.WantPlane {
	cp := c.Spec.ControlPlane
	out := &rollout.WantPlane{
		Replicas: cp.Replicas, Kubernetes: version, Image: c.Image,
		ImageRepository: c.Spec.ImageRepository, EtcdTag: c.Spec.Etcd.ImageTag,
		FailureDomains: cp.FailureDomains, Values: cp.Values,
		Surge: cp.Rollout.MaxSurge, Unavailable: cp.Rollout.MaxUnavailable, StableFor: cp.Rollout.StableFor.Std(),
		Timeouts: rollout.Timeouts{
			Create: cp.Timeouts.Create.Std(), Join: cp.Timeouts.Join.Std(), Drain: cp.Timeouts.Drain.Std(),
			Detach: cp.Timeouts.Detach.Std(), Destroy: cp.Timeouts.Destroy.Std(),
		},
		Attempts: cp.Attempts,
		Consent:  rollout.Consent{EmptyDir: cp.Drain.DeleteEmptyDirData, Unmanaged: cp.Drain.EvictUnmanaged, LocalVolumes: cp.Drain.LoseLocalVolumes},
		Snapshot: c.Spec.Etcd.Snapshot != nil, RollAfter: cp.RollAfter.Time,
		Files: slices.Clone(cp.ProvidedByImage), EndsTLS: c.Spec.Endpoint.Mode == "terminating", ApproveCSR: cp.ApproveServingCSR,
	}
	for _, f := range cp.Join.Files {
		out.Files = append(out.Files, f.Path)
	}
	if taints := cp.Join.NodeRegistration.Taints; taints != nil {
		out.Taints = make([]live.Taint, 0, len(taints))
		for _, t := range taints {
			out.Taints = append(out.Taints, live.Taint(t))
		}
	}
	return out
}
