// SPDX-License-Identifier: Apache-2.0

package kubeadm_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/theseus-gitops/theseus/executors/kubeadm"
	"github.com/theseus-gitops/theseus/reconcile/rollout"
)

// stopping runs StopAPIServer beside a node that does something with the pod, and reports whether somebody still answers.
func stopping(t *testing.T, client kubernetes.Interface, does func(pod *corev1.Pod, answers *atomic.Bool)) error {
	t.Helper()
	ctx := t.Context()
	t.Cleanup(func() {
		_ = client.CoreV1().Nodes().Delete(context.WithoutCancel(ctx), "seed-cp-1", metav1.DeleteOptions{})
	})
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "seed-cp-1"}}
	if _, err := client.CoreV1().Nodes().Create(t.Context(), node, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	var answers atomic.Bool
	answers.Store(true)
	go func() {
		for ctx.Err() == nil {
			if pod, err := client.CoreV1().Pods("kube-system").Get(ctx, "theseus-stop-apiserver", metav1.GetOptions{}); err == nil {
				does(pod, &answers)
				return
			}
			time.Sleep(20 * time.Millisecond)
		}
	}()
	bounded, cancel := context.WithTimeout(ctx, time.Minute) // far less than it waits for a pod that says nothing
	defer cancel()
	err := kubeadm.StopAPIServer(bounded, client, rollout.StopAPIServer{Node: "seed-cp-1", Image: "registry.k8s.io/kube-apiserver:v1.36.3"},
		func(context.Context) bool { return answers.Load() }, func(string) {})
	if _, gone := client.CoreV1().Pods("kube-system").Get(ctx, "theseus-stop-apiserver", metav1.GetOptions{}); gone == nil {
		t.Error("its pod is left")
	}
	return err
}

// The kubelet of that node loses its API server with the pod's success, and can never tell of it.
func TestStopAPIServerOfASilentKubelet(t *testing.T) {
	server.Reset(t)
	client := server.Client(t)
	err := stopping(t, client, func(pod *corev1.Pod, answers *atomic.Bool) {
		if c := pod.Spec.Containers[0]; pod.Spec.NodeName != "seed-cp-1" || !strings.Contains(strings.Join(c.Command, " "), "kube-apiserver.yaml") {
			t.Errorf("pod on %q: %q", pod.Spec.NodeName, c.Command)
		}
		answers.Store(false)
	})
	if err != nil {
		t.Error(err)
	}
}

func TestStopAPIServerFails(t *testing.T) {
	server.Reset(t)
	client := server.Client(t)
	err := stopping(t, client, func(pod *corev1.Pod, _ *atomic.Bool) {
		phase(t.Context(), t, client, pod, corev1.PodFailed, "mv: read-only file system")
	})
	var failure *rollout.Failure
	if !errors.As(err, &failure) || failure.Reason != "APIServerNotStopped" || !strings.Contains(failure.Message, "read-only file system") || !failure.Elsewhere {
		t.Errorf("got %v", err)
	}
}
