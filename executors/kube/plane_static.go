// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"cmp"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/theseus-gitops/theseus/reconcile/live"
	"github.com/theseus-gitops/theseus/reconcile/logbook"
)

// kubeadm labels its static pods so; component is also the container's name.
const (
	tierLabel      = "tier"
	tierPlane      = "control-plane"
	componentLabel = "component"
)

// staticParts finds the control plane's static pods among those of a node. Their mirror pods are written by the node's
// kubelet: when that is silent they are stale, and say nothing (kubernetes-sigs/cluster-api, KCP's conditions).
func staticParts(pods []corev1.Pod, node live.Node) live.Parts {
	var out live.Parts
	for name, into := range map[string]*live.Part{
		"kube-apiserver": &out.APIServer, "kube-controller-manager": &out.ControllerManager, "kube-scheduler": &out.Scheduler, "etcd": &out.Etcd,
	} {
		if pod := staticPod(pods, name); pod != nil {
			*into = partOf(*pod, name, node)
		}
	}
	return out
}

// staticPod prefers a pod that is not about to be replaced.
func staticPod(pods []corev1.Pod, component string) *corev1.Pod {
	var found *corev1.Pod
	for i := range pods {
		p := &pods[i]
		if p.Namespace != logbook.Namespace || p.Labels[tierLabel] != tierPlane || p.Labels[componentLabel] != component || !mirror(*p) {
			continue
		}
		if found == nil || found.DeletionTimestamp != nil {
			found = p
		}
	}
	return found
}

func mirror(p corev1.Pod) bool {
	_, ok := p.Annotations[corev1.MirrorPodAnnotationKey]
	return ok
}

func partOf(p corev1.Pod, container string, node live.Node) live.Part {
	out := live.Part{Image: imageOf(p.Spec, container)}
	ready := conditionOf(p, corev1.PodReady)
	switch {
	case !node.Ready || unreachable(node):
		out.Why = "node " + node.Name + " is not Ready, so nothing newer is known of it"
	case p.DeletionTimestamp != nil:
		out.Why = "its pod is being replaced"
	case ready == nil:
		out.Why = "the kubelet has not reported on it yet"
	case ready.Status == corev1.ConditionTrue:
		out.Ready = true
	default:
		out.Why = whyNotReady(p, container, *ready)
	}
	return out
}

func whyNotReady(p corev1.Pod, container string, ready corev1.PodCondition) string {
	for _, s := range p.Status.ContainerStatuses {
		if s.Name != container {
			continue
		}
		if reason, message := waiting(s); reason != "" {
			return strings.TrimSuffix(reason+": "+message, ": ")
		}
		if s.State.Running != nil && !s.Ready {
			return "it runs, but is not ready"
		}
	}
	return cmp.Or(ready.Message, ready.Reason, "its pod is not Ready")
}

func conditionOf(p corev1.Pod, kind corev1.PodConditionType) *corev1.PodCondition {
	for i := range p.Status.Conditions {
		if p.Status.Conditions[i].Type == kind {
			return &p.Status.Conditions[i]
		}
	}
	return nil
}

// unreachable says that the node controller has lost the kubelet, which it may notice before Ready changes hands.
func unreachable(n live.Node) bool {
	for _, t := range n.Taints {
		if t.Key == corev1.TaintNodeUnreachable {
			return true
		}
	}
	return false
}
