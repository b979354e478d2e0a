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

// dnsPodsOf leaves out pods that have ended, by eviction for example: they are records, and never serve again.
func dnsPodsOf(pods []corev1.Pod) []live.DNSPod {
	var out []live.DNSPod
	for _, p := range pods {
		if p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed {
			continue
		}
		pod := live.DNSPod{
			Name:     p.Name,
			Node:     p.Spec.NodeName,
			Image:    imageOf(p.Spec, coreDNSName),
			Deleting: p.DeletionTimestamp != nil,
			Ready: slices.ContainsFunc(p.Status.Conditions, func(c corev1.PodCondition) bool {
				return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
			}),
		}
		pod.Waiting, pod.Message = unscheduled(p)
		for _, s := range p.Status.ContainerStatuses {
			if s.Name == coreDNSName {
				pod.Restarts = s.RestartCount
				pod.Waiting, pod.Message = waiting(s)
			}
		}
		out = append(out, pod)
	}
	slices.SortFunc(out, func(a, b live.DNSPod) int { return cmp.Compare(a.Name, b.Name) })
	return out
}

// unscheduled says why a pod has no node yet; the reason is "" when it has one.
func unscheduled(p corev1.Pod) (reason, message string) {
	for _, c := range p.Status.Conditions {
		if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse {
			return c.Reason, c.Message
		}
	}
	return "", ""
}

// waiting says why a container is not running, with the last words of its newest end; the reason is "" when it runs.
func waiting(s corev1.ContainerStatus) (reason, message string) {
	switch {
	case s.State.Waiting != nil:
		reason, message = s.State.Waiting.Reason, s.State.Waiting.Message
	case s.State.Terminated != nil:
		return cmp.Or(s.State.Terminated.Reason, "Terminated"), endOf(s.State.Terminated)
	default:
		return "", ""
	}
	if last := s.LastTerminationState.Terminated; last != nil {
		message += "; before: " + endOf(last)
	}
	return reason, message
}

func endOf(t *corev1.ContainerStateTerminated) string {
	if t.Message != "" {
		return fmt.Sprintf("exit code %d: %s", t.ExitCode, t.Message)
	}
	return fmt.Sprintf("exit code %d", t.ExitCode)
}
