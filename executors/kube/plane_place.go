// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/klog/v2"

	"github.com/theseus-gitops/theseus/reconcile/live"
)

// nowhereElse says why no other node could take a pod, "" when one could or when that can't be told: it is no scheduler, and
// knows labels and taints only, neither free memory nor other pods. A node like the pod's own counts as well, under another
// name: a roll brings one before the pod's machine goes.
func nowhereElse(p corev1.Pod, own live.Node, all []live.Node) string {
	for _, n := range all {
		if n.Name != own.Name && n.Ready && n.Schedulable && unfit(p.Spec, n) == "" {
			return ""
		}
	}
	return unfit(p.Spec, successor(own))
}

// successor is a node as the machine that replaces this one's will be: nothing in it says which node it is.
func successor(n live.Node) live.Node {
	host := n.Labels[corev1.LabelHostname]
	n.Labels = maps.Clone(n.Labels)
	maps.DeleteFunc(n.Labels, func(_, value string) bool { return value != "" && (value == n.Name || value == host) })
	n.Taints = slices.DeleteFunc(slices.Clone(n.Taints), func(t live.Taint) bool { return strings.HasPrefix(t.Key, "node.kubernetes.io/") })
	n.Name = ""
	return n
}

// unfit says why a node does not take a pod, "" when nothing is known against it.
func unfit(pod corev1.PodSpec, n live.Node) string {
	for _, key := range slices.Sorted(maps.Keys(pod.NodeSelector)) {
		if want := pod.NodeSelector[key]; n.Labels[key] != want || !has(n.Labels, key) {
			return fmt.Sprintf("its nodeSelector asks for %s=%s", key, want)
		}
	}
	for _, t := range n.Taints {
		if t.Effect != string(corev1.TaintEffectPreferNoSchedule) && !tolerated(pod.Tolerations, t) {
			return fmt.Sprintf("it does not tolerate taint %s=%s:%s", t.Key, t.Value, t.Effect)
		}
	}
	if a := pod.Affinity; a != nil && a.NodeAffinity != nil && !affine(a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution, n) {
		return "its required node affinity admits no other node"
	}
	return ""
}

func has(labels map[string]string, key string) bool {
	_, ok := labels[key]
	return ok
}

func tolerated(tolerations []corev1.Toleration, t live.Taint) bool {
	taint := corev1.Taint{Key: t.Key, Value: t.Value, Effect: corev1.TaintEffect(t.Effect)}
	return slices.ContainsFunc(tolerations, func(o corev1.Toleration) bool { return o.ToleratesTaint(klog.Logger{}, &taint, true) })
}

// affine reports whether one of the selector's terms admits the node.
func affine(selector *corev1.NodeSelector, n live.Node) bool {
	if selector == nil {
		return true
	}
	return slices.ContainsFunc(selector.NodeSelectorTerms, func(term corev1.NodeSelectorTerm) bool {
		if len(term.MatchExpressions)+len(term.MatchFields) == 0 {
			return false
		}
		return meets(term.MatchExpressions, n.Labels) && meets(term.MatchFields, map[string]string{"metadata.name": n.Name})
	})
}

func meets(requirements []corev1.NodeSelectorRequirement, have map[string]string) bool {
	for _, r := range requirements {
		operator, known := operatorOf(r.Operator)
		requirement, err := labels.NewRequirement(r.Key, operator, r.Values)
		// What can't be understood is not held against a node.
		if known && err == nil && !requirement.Matches(labels.Set(have)) {
			return false
		}
	}
	return true
}

func operatorOf(o corev1.NodeSelectorOperator) (operator selection.Operator, known bool) {
	switch o {
	case corev1.NodeSelectorOpIn:
		return selection.In, true
	case corev1.NodeSelectorOpNotIn:
		return selection.NotIn, true
	case corev1.NodeSelectorOpExists:
		return selection.Exists, true
	case corev1.NodeSelectorOpDoesNotExist:
		return selection.DoesNotExist, true
	case corev1.NodeSelectorOpGt:
		return selection.GreaterThan, true
	case corev1.NodeSelectorOpLt:
		return selection.LessThan, true
	}
	return "", false
}
