// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/theseus-gitops/theseus/reconcile/live"
)

// podInitializing is what a container waits for until all init containers have ended.
const podInitializing = "PodInitializing"

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
			Created:  p.CreationTimestamp.Time,
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
		if !pod.Ready {
			pod.Sidecar = sidecarOf(p)
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

// sidecarOf is live.DNSPod's field of a pod that is not Ready.
func sidecarOf(p corev1.Pod) string {
	for _, s := range p.Status.ContainerStatuses {
		notItsTurn := s.State.Waiting != nil && s.State.Waiting.Reason == podInitializing
		if s.Name == coreDNSName && (s.Ready || notItsTurn) {
			return holdUp(p)
		}
	}
	return ""
}

// holdUp names the first container other than CoreDNS's that holds its pod up.
func holdUp(p corev1.Pod) string {
	for _, s := range p.Status.InitContainerStatuses {
		over := s.State.Terminated != nil && s.State.Terminated.ExitCode == 0
		beside := s.Started != nil && *s.Started
		if text := trouble("init container "+s.Name, s, "has not ended"); !over && !beside && text != "" {
			return text
		}
	}
	for _, s := range p.Status.ContainerStatuses {
		if text := trouble("container "+s.Name, s, "runs, but is not Ready"); s.Name != coreDNSName && !s.Ready && text != "" {
			return text
		}
	}
	return ""
}

// trouble says why a container holds its pod up, "" when it is about to start. running is the word for one that runs.
func trouble(who string, s corev1.ContainerStatus, running string) string {
	reason, message := waiting(s)
	switch {
	case s.State.Running != nil:
		return who + " of the pod " + running
	case s.State.Terminated != nil:
		return who + " of the pod ended: " + reason + ": " + message
	case reason == "" || reason == podInitializing || reason == "ContainerCreating":
		return ""
	}
	return strings.TrimSuffix(who+" of the pod can't start: "+reason+": "+message, ": ")
}
