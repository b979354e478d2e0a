// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"maps"
	"slices"
	"time"

	"github.com/theseus-gitops/theseus/reconcile/live"
	"github.com/theseus-gitops/theseus/reconcile/logbook"
)

// Apply is the model of a step: the cluster as it will be observed once the step has worked.
// What it was given stays as it was.
//
//nolint:cyclop // one line per step; those of the control plane are in applyPlane
func Apply(step Step, have live.Cluster, now time.Time) live.Cluster {
	have = copyCluster(have)
	kube := have.Kube
	write(kube, step.Before)
	switch act := step.Act.(type) {
	case ObtainCredentials:
		have.Etcd = assumedEtcd(have)
	case RemoveCanary:
		kube.DNS.Canary = false
	case EnsureDNSRole:
		kube.DNS.Role.Rules = append(kube.DNS.Role.Rules, live.PolicyRule{
			APIGroups: []string{"discovery.k8s.io"}, Resources: []string{"endpointslices"}, Verbs: []string{"list", "watch"},
		})
	case CanaryDNS:
		kube.DNS.Config.Run = &act.Run
	case SyncDNSConfig:
		kube.KubeadmConfig.DNS = act.DNS
		if act.Original != "" {
			kube.Book.Originals = &logbook.Originals{KubeadmConfig: act.Original}
		}
	case WriteCorefile:
		kube.DNS.Config.Data[act.Key] = act.Text
	case PatchDNS:
		patchModel(&kube.DNS, act, now)
	case RecordFailure:
		kube.Book.FailedTarget = &act.Failed
	case VerifyDNS:
		kube.DNS.Config.Run = &act.Run
	case RecordDNSRun:
		kube.DNS.Config.Run = &act.Run
	default:
		applyPlane(step, have)
	}
	if step.After != nil {
		write(kube, step.After(now))
	}
	return have
}

// patchModel is a changed pod template, of which no pod runs yet.
func patchModel(d *live.DNS, act PatchDNS, now time.Time) {
	if act.Image != "" {
		d.Deployment.Image = act.Image
	}
	if act.Volume != "" {
		d.Deployment.Volume = &live.ConfigVolume{Name: act.Volume, Items: act.Items}
	}
	d.Deployment.Changed = now
	d.Deployment.Rollout.Generation++
	d.Deployment.Rollout.Updated = 0
	d.Deployment.Rollout.Stuck = ""
}

// Await is the model of a wait: the cluster once what is awaited has happened.
func Await(what Awaited, have live.Cluster) live.Cluster {
	have = copyCluster(have)
	kube := have.Kube
	switch what { //nolint:exhaustive // the others are in awaitPlane
	case AwaitedDNSRollout:
		r := &kube.DNS.Deployment.Rollout
		r.ObservedGeneration, r.Updated, r.Total, r.Unavailable = r.Generation, r.Wanted, r.Wanted, 0
		for i := range kube.DNS.Pods {
			kube.DNS.Pods[i].Image, kube.DNS.Pods[i].Ready = kube.DNS.Deployment.Image, true
		}
	default:
		awaitPlane(what, have)
	}
	return have
}

// copyKube copies what the models change, so that the original stays as it was.
func copyKube(kube *live.Kube) *live.Kube {
	out := *kube
	copyPlane(&out)
	if kube.KubeadmConfig != nil {
		c := *kube.KubeadmConfig
		out.KubeadmConfig = &c
	}
	if kube.DNS.Config != nil {
		c := *kube.DNS.Config
		c.Data = maps.Clone(c.Data)
		out.DNS.Config = &c
	}
	if kube.DNS.Deployment != nil {
		c := *kube.DNS.Deployment
		out.DNS.Deployment = &c
	}
	if kube.DNS.Role != nil {
		c := *kube.DNS.Role
		c.Rules = slices.Clone(c.Rules)
		out.DNS.Role = &c
	}
	out.DNS.Pods = slices.Clone(kube.DNS.Pods)
	return &out
}
