// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

const dnsPods = "k8s-app=kube-dns"

// awaitRollout waits until CoreDNS's Deployment is what was asked for and none of its older pods is left.
func awaitRollout(ctx context.Context, client kubernetes.Interface) error {
	return poll(ctx, 2*time.Minute, 300*time.Millisecond, func(ctx context.Context) error {
		d, err := client.AppsV1().Deployments(system).Get(ctx, "coredns", metav1.GetOptions{})
		if err != nil {
			return err
		}
		pods, err := client.CoreV1().Pods(system).List(ctx, metav1.ListOptions{LabelSelector: dnsPods})
		if err != nil {
			return err
		}
		want := *d.Spec.Replicas
		s := d.Status
		if s.ObservedGeneration < d.Generation || s.UpdatedReplicas != want || s.AvailableReplicas != want || len(pods.Items) != int(want) {
			return fmt.Errorf("CoreDNS: %d wanted, %d updated, %d available, %d pods in all: %s",
				want, s.UpdatedReplicas, s.AvailableReplicas, len(pods.Items), waiting(pods.Items))
		}
		for _, p := range pods.Items {
			if p.DeletionTimestamp != nil {
				return fmt.Errorf("CoreDNS: pod %s is still ending", p.Name)
			}
		}
		return nil
	})
}

// waiting names what pods wait for, to be told when it takes too long.
func waiting(pods []corev1.Pod) string {
	var reasons []string
	for _, p := range pods {
		for _, c := range p.Status.ContainerStatuses {
			if w := c.State.Waiting; w != nil {
				reasons = append(reasons, fmt.Sprintf("%s: %s %s", p.Name, w.Reason, w.Message))
			}
		}
		for _, condition := range p.Status.Conditions {
			if condition.Type == corev1.PodScheduled && condition.Status == corev1.ConditionFalse {
				reasons = append(reasons, p.Name+": "+condition.Message)
			}
		}
	}
	if len(reasons) == 0 {
		return "not ready yet"
	}
	return strings.Join(reasons, "; ")
}
