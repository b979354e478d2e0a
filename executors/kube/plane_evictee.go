// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"cmp"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/theseus-gitops/theseus/reconcile/live"
)

// leavesByDrain says which pods a drain has to evict. Mirror pods end with their node, DaemonSet pods would come back at once
// because they tolerate a cordon, and finished pods hold nothing. So does "kubectl drain".
func leavesByDrain(p corev1.Pod) bool { return !mirror(p) && !ofDaemonSet(p) && !finished(p) }

func ofDaemonSet(p corev1.Pod) bool {
	owner := metav1.GetControllerOf(&p)
	return owner != nil && owner.Kind == "DaemonSet" && owner.APIVersion == appsv1.SchemeGroupVersion.String()
}

func finished(p corev1.Pod) bool {
	return p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed
}

func (g planeObjects) evictee(p corev1.Pod, node live.Node, all []live.Node) live.Evictee {
	out := live.Evictee{
		Namespace: p.Namespace, Name: p.Name,
		Unmanaged:    metav1.GetControllerOf(&p) == nil,
		EmptyDir:     slices.ContainsFunc(p.Spec.Volumes, keepsData),
		LocalVolumes: g.localVolumes(p, node),
	}
	if p.DeletionTimestamp != nil {
		out.Terminating, out.Since = true, deletedAt(p)
		return out
	}
	out.Budgets = budgetsAgainst(p, g.budgets)
	if !out.Unmanaged {
		out.NowhereElse = nowhereElse(p, node, all)
	}
	return out
}

// keepsData says that a volume's data ends with the pod. What is kept in memory is no data that anybody counts on.
func keepsData(v corev1.Volume) bool {
	return v.EmptyDir != nil && v.EmptyDir.Medium != corev1.StorageMediumMemory
}

// deletedAt is when a deletion was asked for: deletionTimestamp is when its grace ends.
func deletedAt(p corev1.Pod) time.Time {
	at := p.DeletionTimestamp.UTC()
	if p.DeletionGracePeriodSeconds != nil {
		at = at.Add(-time.Duration(*p.DeletionGracePeriodSeconds) * time.Second)
	}
	return at
}

// budgetsAgainst are the names of the budgets that would refuse the pod's eviction now, as the API server decides it
// (pkg/registry/core/pod/storage/eviction.go of kubernetes/kubernetes v1.37.2): it answers 500, for ever, when there are two.
func budgetsAgainst(p corev1.Pod, budgets []policyv1.PodDisruptionBudget) []string {
	if p.Status.Phase == corev1.PodPending {
		return nil
	}
	var over []policyv1.PodDisruptionBudget
	for _, b := range budgets {
		selector, err := metav1.LabelSelectorAsSelector(b.Spec.Selector)
		if err == nil && b.Namespace == p.Namespace && selector.Matches(labels.Set(p.Labels)) {
			over = append(over, b)
		}
	}
	if len(over) == 1 && allows(over[0], p) {
		return nil
	}
	var out []string
	for _, b := range over {
		out = append(out, b.Name)
	}
	slices.Sort(out)
	return out
}

func allows(b policyv1.PodDisruptionBudget, p corev1.Pod) bool {
	ready := conditionOf(p, corev1.PodReady)
	if ready == nil || ready.Status != corev1.ConditionTrue {
		always := b.Spec.UnhealthyPodEvictionPolicy != nil && *b.Spec.UnhealthyPodEvictionPolicy == policyv1.AlwaysAllow
		if always || b.Status.CurrentHealthy >= b.Status.DesiredHealthy && b.Status.DesiredHealthy > 0 {
			return true
		}
	}
	return b.Status.ObservedGeneration >= b.Generation && b.Status.DisruptionsAllowed > 0
}

func byNamespaceAndName(a, b live.Evictee) int {
	return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
}
