// SPDX-License-Identifier: Apache-2.0

package coredns_test

import (
	"context"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/theseus-gitops/theseus/executors/coredns"
)

func TestCanaryThatDoesNotStart(t *testing.T) {
	evicted := func(pod *corev1.Pod) {
		pod.Status.Phase, pod.Status.Reason, pod.Status.Message = corev1.PodFailed, "Evicted", "low on memory"
	}
	unschedulable := func(pod *corev1.Pod) {
		pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: "Unschedulable", Message: "0/3 nodes are available"}}
	}
	tests := []struct {
		name      string
		states    []func(*corev1.Pod)
		unplaced  bool
		timeout   time.Duration
		transient string
		failure   []string
	}{
		{name: "exits", states: []func(*corev1.Pod){isRunning, hasExited(1, "Error", "plugin/forward: no nameservers\n\x1b[0m found")},
			failure: []string{"container coredns exited with code 1 (Error): plugin/forward: no nameservers | [0m found", "(node node-7)", target}},
		{name: "ends without an error", states: []func(*corev1.Pod){hasExited(0, "Completed", "")}, failure: []string{"exited with code 0 (Completed)"}},
		{name: "crash loop", states: []func(*corev1.Pod){isWaiting("CrashLoopBackOff", "back-off 10s")}, failure: []string{"container coredns waits: CrashLoopBackOff: back-off 10s"}},
		{name: "image pull fails", states: []func(*corev1.Pod){isWaiting("ErrImagePull", "manifest unknown"), isWaiting("ImagePullBackOff", "Back-off pulling image: manifest unknown")},
			failure: []string{"could not be pulled", "ImagePullBackOff: Back-off pulling image: manifest unknown", "(node node-7)"}},
		{name: "image name", states: []func(*corev1.Pod){isWaiting("InvalidImageName", "couldn't parse")}, failure: []string{"InvalidImageName: couldn't parse"}},
		{name: "never ready", states: []func(*corev1.Pod){isRunning}, timeout: 300 * time.Millisecond,
			failure: []string{"was not Ready within 300ms", "container coredns runs, but its readiness probe does not pass", "(node node-7)"}},
		{name: "config error", states: []func(*corev1.Pod){isWaiting("CreateContainerConfigError", "secret x not found")}, timeout: 300 * time.Millisecond,
			failure: []string{"was not Ready", "CreateContainerConfigError: secret x not found"}},
		{name: "deadline of its own", states: []func(*corev1.Pod){func(pod *corev1.Pod) { pod.Status.Phase, pod.Status.Reason = corev1.PodFailed, "DeadlineExceeded" }},
			failure: []string{"the pod ended as Failed DeadlineExceeded"}},
		{name: "evicted", states: []func(*corev1.Pod){isRunning, evicted}, transient: "Evicted: low on memory"},
		{name: "preempted", states: []func(*corev1.Pod){func(pod *corev1.Pod) {
			pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue, Reason: "PreemptionByScheduler"}}
		}}, transient: "PreemptionByScheduler"},
		{name: "no node takes it", states: []func(*corev1.Pod){unschedulable}, unplaced: true, timeout: 300 * time.Millisecond, transient: "0/3 nodes are available"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			w := newWorld(t, func(o *coredns.Options) {
				if tt.timeout > 0 {
					o.ReadyTimeout = tt.timeout
				}
			})
			states := tt.states
			if tt.unplaced {
				go w.whenThere(tt.states[0])
				states = nil
			}
			w.play(states...)
			err := w.refused(w.canaryAct())
			if tt.transient != "" {
				wantTransient(t, err, tt.transient)
				return
			}
			wantFailure(t, err, "DNSCanaryFailed", tt.failure...)
		})
	}
}

// whenThere sets a status on the canary as soon as it exists, without a node.
func (w *world) whenThere(status func(*corev1.Pod)) {
	for w.t.Context().Err() == nil {
		pod, err := w.client.CoreV1().Pods(system).Get(w.t.Context(), canary, metav1.GetOptions{})
		if err == nil {
			status(pod)
			_, _ = w.client.CoreV1().Pods(system).UpdateStatus(w.t.Context(), pod, metav1.UpdateOptions{})
			return
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// A quota, a policy or a webhook that keeps the canary out says nothing about the target, and trying again is useless.
func TestCanaryThatIsNotAdmitted(t *testing.T) {
	w := newWorld(t)
	quotas := w.client.CoreV1().ResourceQuotas(system)
	none := corev1.ResourceList{corev1.ResourcePods: resource.MustParse("0")}
	quota, err := quotas.Create(t.Context(), &corev1.ResourceQuota{
		ObjectMeta: metav1.ObjectMeta{Name: "no-more"}, Spec: corev1.ResourceQuotaSpec{Hard: none},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = quotas.Delete(context.WithoutCancel(t.Context()), quota.Name, metav1.DeleteOptions{}) })
	quota.Status = corev1.ResourceQuotaStatus{Hard: none, Used: none} // the controller's part
	if _, err := quotas.UpdateStatus(t.Context(), quota, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	wantElsewhere(t, w.refused(w.canaryAct()), "DNSCanaryNotAdmitted", "exceeded quota: no-more")
}
