// SPDX-License-Identifier: Apache-2.0

// In the package itself, as view_test.go is: which node could take a pod is a function of values.
package kube

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/theseus-gitops/theseus/reconcile/live"
)

func TestNowhereElse(t *testing.T) {
	const host = corev1.LabelHostname
	taint := live.Taint{Key: controlPlaneLabel, Effect: "NoSchedule"}
	own := live.Node{
		Name: "cp-1", Labels: map[string]string{host: "cp-1", "zone": "a", "disk": "ssd", "vendor/node": "cp-1", "cpus": "8"},
		Taints: []live.Taint{taint, {Key: "node.kubernetes.io/unschedulable", Effect: "NoSchedule"}},
	}
	worker := live.Node{Name: "w-1", Ready: true, Schedulable: true, Labels: map[string]string{host: "w-1", "zone": "b"}}
	closed, silent := worker, worker
	closed.Schedulable, silent.Ready = false, false
	tolerant := corev1.PodSpec{Tolerations: []corev1.Toleration{{Key: controlPlaneLabel, Operator: corev1.TolerationOpExists}}}
	selecting := func(key, value string) corev1.PodSpec {
		p := tolerant
		p.NodeSelector = map[string]string{key: value}
		return p
	}
	affine := func(terms ...corev1.NodeSelectorTerm) corev1.PodSpec {
		p := tolerant
		p.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{NodeSelectorTerms: terms}}}
		return p
	}
	expression := func(key string, op corev1.NodeSelectorOperator, values ...string) corev1.NodeSelectorTerm {
		return corev1.NodeSelectorTerm{MatchExpressions: []corev1.NodeSelectorRequirement{{Key: key, Operator: op, Values: values}}}
	}
	field := corev1.NodeSelectorTerm{MatchFields: []corev1.NodeSelectorRequirement{{Key: "metadata.name", Operator: corev1.NodeSelectorOpIn, Values: []string{"cp-1"}}}}
	const noAffinity = "its required node affinity admits no other node"
	for name, c := range map[string]struct {
		pod    corev1.PodSpec
		others []live.Node
		want   string
	}{
		"a worker takes it":                {corev1.PodSpec{}, []live.Node{own, worker}, ""},
		"the successor takes it":           {tolerant, []live.Node{own}, ""},
		"it tolerates nothing":             {corev1.PodSpec{}, []live.Node{own}, "it does not tolerate taint node-role.kubernetes.io/control-plane=:NoSchedule"},
		"a worker that is closed":          {corev1.PodSpec{}, []live.Node{own, closed}, "it does not tolerate taint node-role.kubernetes.io/control-plane=:NoSchedule"},
		"a worker that is silent":          {corev1.PodSpec{}, []live.Node{own, silent}, "it does not tolerate taint node-role.kubernetes.io/control-plane=:NoSchedule"},
		"selects this host":                {selecting(host, "cp-1"), []live.Node{own, worker}, "its nodeSelector asks for kubernetes.io/hostname=cp-1"},
		"selects this node by a vendor":    {selecting("vendor/node", "cp-1"), []live.Node{own, worker}, "its nodeSelector asks for vendor/node=cp-1"},
		"selects the zone":                 {selecting("zone", "a"), []live.Node{own, worker}, ""},
		"selects a label of the worker":    {selecting("zone", "b"), []live.Node{own, worker}, ""},
		"selects what nobody has":          {selecting("gpu", ""), []live.Node{own, worker}, "its nodeSelector asks for gpu="},
		"this host by affinity":            {affine(expression(host, corev1.NodeSelectorOpIn, "cp-1")), []live.Node{own, worker}, noAffinity},
		"this node by its name":            {affine(field), []live.Node{own, worker}, noAffinity},
		"this host or the zone":            {affine(expression(host, corev1.NodeSelectorOpIn, "cp-1"), expression("zone", corev1.NodeSelectorOpExists)), []live.Node{own}, ""},
		"any but this host":                {affine(expression(host, corev1.NodeSelectorOpNotIn, "cp-1")), []live.Node{own}, ""},
		"more processors":                  {affine(expression("cpus", corev1.NodeSelectorOpGt, "4")), []live.Node{own}, ""},
		"still more":                       {affine(expression("cpus", corev1.NodeSelectorOpGt, "8")), []live.Node{own, worker}, noAffinity},
		"fewer":                            {affine(expression("cpus", corev1.NodeSelectorOpLt, "9")), []live.Node{own}, ""},
		"without a label":                  {affine(expression("disk", corev1.NodeSelectorOpDoesNotExist)), []live.Node{own}, noAffinity},
		"an operator that is not known":    {affine(expression("zone", "Near", "x")), []live.Node{own}, ""},
		"a number that is none":            {affine(expression("cpus", corev1.NodeSelectorOpGt, "many")), []live.Node{own}, ""},
		"a term that says nothing":         {affine(corev1.NodeSelectorTerm{}), []live.Node{own, worker}, noAffinity},
		"only preferred against the taint": {corev1.PodSpec{}, []live.Node{own, {Name: "w-2", Ready: true, Schedulable: true, Taints: []live.Taint{{Key: "x", Effect: "PreferNoSchedule"}}}}, ""},
	} {
		if got := nowhereElse(corev1.Pod{Spec: c.pod}, own, c.others); got != c.want {
			t.Errorf("%s: got %q, want %q", name, got, c.want)
		}
	}
	if own.Labels[host] != "cp-1" || len(own.Taints) != 2 {
		t.Error("the node itself was changed")
	}
}
