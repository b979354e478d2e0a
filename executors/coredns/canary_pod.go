// SPDX-License-Identifier: Apache-2.0

package coredns

import (
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/theseus-gitops/theseus/reconcile/live"
)

// interviewTime is more than the questions to a canary can take.
const interviewTime = 10 * time.Minute

// canaryLabels hold no label of the template: the Service must not send it queries, and the Deployment must not
// count or adopt it.
func canaryLabels() labels.Set {
	return labels.Set{labelName: canaryName, labelManagedBy: "theseus"}
}

// canaryPod is the Deployment's pod as it would be with the image and the canary's ConfigMap, but for what would
// let it serve, get in the way of the real pods, or live on.
func canaryPod(deploy *appsv1.Deployment, image string, readyTimeout time.Duration) *corev1.Pod {
	template := deploy.Spec.Template.DeepCopy()
	spec := template.Spec
	for i := range spec.Containers {
		c := &spec.Containers[i]
		if c.Name == containerName {
			c.Image = image
		}
		// Brings the end of the log into the pod's status, so that a failure can be told without reading logs.
		c.TerminationMessagePolicy = corev1.TerminationMessageFallbackToLogsOnError
		// The present pods may hold host ports on every node. Questions come through the pod's own address.
		for j := range c.Ports {
			c.Ports[j].HostPort = 0
		}
	}
	for i := range spec.Volumes {
		useCanaryConfig(&spec.Volumes[i])
	}
	// An exit is certain and at once seen as one; with restarts it would take a back-off to tell.
	spec.RestartPolicy = corev1.RestartPolicyNever
	deadline := int64((readyTimeout + interviewTime).Seconds())
	spec.ActiveDeadlineSeconds = &deadline
	spec.HostNetwork = false
	// Rules about where the present pods are would keep the canary from nodes that have one.
	spec.TopologySpreadConstraints = nil
	if spec.Affinity != nil {
		spec.Affinity = &corev1.Affinity{NodeAffinity: spec.Affinity.NodeAffinity}
	}
	// Gates are opened by controllers that know the Deployment's pods only.
	spec.ReadinessGates = nil
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: canaryName, Namespace: namespace, Labels: canaryLabels(), Annotations: template.Annotations},
		Spec:       spec,
	}
}

// useCanaryConfig points a volume of ConfigMap coredns to the canary's, in which the key Corefile is the candidate.
func useCanaryConfig(v *corev1.Volume) {
	if v.ConfigMap != nil && v.ConfigMap.Name == objectName {
		v.ConfigMap.Name = canaryName
		useCorefile(v.ConfigMap.Items)
	}
	if v.Projected == nil {
		return
	}
	for i := range v.Projected.Sources {
		if c := v.Projected.Sources[i].ConfigMap; c != nil && c.Name == objectName {
			c.Name = canaryName
			useCorefile(c.Items)
		}
	}
}

func useCorefile(items []corev1.KeyToPath) {
	for i := range items {
		if items[i].Key == live.CorefileBackupKey {
			items[i].Key = live.CorefileKey
		}
	}
}
