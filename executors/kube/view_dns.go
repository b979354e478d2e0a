// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/theseus-gitops/theseus/reconcile/live"
)

func dnsConfigOf(m *corev1.ConfigMap) *live.DNSConfig {
	if m == nil {
		return nil
	}
	out := &live.DNSConfig{
		ResourceVersion: m.ResourceVersion,
		Data:            m.Data,
		BinaryKeys:      slices.Sorted(maps.Keys(m.BinaryData)),
		Manager:         managerOf(m.ObjectMeta),
	}
	if text, ok := m.Annotations[live.DNSRunAnnotation]; ok {
		run, err := runOf(text)
		if err != nil {
			out.RunUnreadable = err.Error()
		}
		out.Run = run
	}
	return out
}

// dnsCanaryOf reports a canary by its ConfigMap, which is made before the pod and removed after it. Somebody else's
// object of that name is no canary.
func dnsCanaryOf(m *corev1.ConfigMap) bool {
	return m != nil && m.Labels[managedByLabel] == fieldManager
}

// runOf reads the annotation. A run that does not say what it changed, or when it began, is unreadable: taken for an
// open one it would be undone, to nothing.
func runOf(text string) (*live.DNSRun, error) {
	var run live.DNSRun
	if err := json.Unmarshal([]byte(text), &run); err != nil {
		return nil, err
	}
	var missing []string
	for _, f := range []struct {
		name  string
		there bool
	}{
		{"from", run.From != ""}, {"to", run.To != ""}, {"corefile", run.Corefile != ""}, {"opened", !run.Opened.IsZero()},
	} {
		if !f.there {
			missing = append(missing, f.name)
		}
	}
	if len(missing) > 0 {
		return nil, fmt.Errorf("it does not say %s", strings.Join(missing, ", "))
	}
	return &run, nil
}

func dnsDeploymentOf(d *appsv1.Deployment) *live.DNSDeployment {
	if d == nil {
		return nil
	}
	out := &live.DNSDeployment{
		ResourceVersion: d.ResourceVersion,
		Image:           imageOf(d.Spec.Template.Spec, coreDNSName),
		Volume:          configVolumeOf(d.Spec.Template.Spec),
		Rollout:         rolloutOf(d),
		Manager:         managerOf(d.ObjectMeta),
	}
	for _, c := range d.Spec.Template.Spec.Containers {
		out.Containers = append(out.Containers, c.Name)
	}
	// A time that can't be read is not one of ours; the zero value says so.
	if changed, err := time.Parse(time.RFC3339, d.Annotations[live.DNSChangedAnnotation]); err == nil {
		out.Changed = changed
	}
	return out
}

// configVolumeOf is the volume through which the coredns container sees ConfigMap coredns. One that it does
// not mount decides nothing.
func configVolumeOf(pod corev1.PodSpec) *live.ConfigVolume {
	container := containerOf(pod, coreDNSName)
	if container == nil {
		return nil
	}
	for _, v := range pod.Volumes {
		mounted := slices.ContainsFunc(container.VolumeMounts, func(m corev1.VolumeMount) bool { return m.Name == v.Name })
		if v.ConfigMap == nil || v.ConfigMap.Name != coreDNSName || !mounted {
			continue
		}
		out := &live.ConfigVolume{Name: v.Name}
		for _, item := range v.ConfigMap.Items {
			out.Items = append(out.Items, live.VolumeItem{Key: item.Key, Path: item.Path, Mode: item.Mode})
		}
		return out
	}
	return nil
}

func rolloutOf(d *appsv1.Deployment) live.Rollout {
	out := live.Rollout{
		Generation:         d.Generation,
		ObservedGeneration: d.Status.ObservedGeneration,
		Wanted:             1, // what the API server takes an unset field for
		Total:              d.Status.Replicas,
		Updated:            d.Status.UpdatedReplicas,
		Unavailable:        d.Status.UnavailableReplicas,
		Paused:             d.Spec.Paused,
	}
	if d.Spec.Replicas != nil {
		out.Wanted = *d.Spec.Replicas
	}
	for _, c := range d.Status.Conditions {
		if c.Type == appsv1.DeploymentProgressing && c.Status == corev1.ConditionFalse {
			out.Stuck = cmp.Or(c.Message, c.Reason, "the Deployment makes no progress")
		}
	}
	return out
}

func dnsRoleOf(r *rbacv1.ClusterRole) *live.DNSRole {
	if r == nil {
		return nil
	}
	out := &live.DNSRole{ResourceVersion: r.ResourceVersion}
	for _, rule := range r.Rules {
		// A rule for named objects grants no list or watch of all.
		if len(rule.ResourceNames) > 0 {
			continue
		}
		out.Rules = append(out.Rules, live.PolicyRule{APIGroups: rule.APIGroups, Resources: rule.Resources, Verbs: rule.Verbs})
	}
	return out
}
