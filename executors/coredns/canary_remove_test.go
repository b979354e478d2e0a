// SPDX-License-Identifier: Apache-2.0

package coredns_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"golang.org/x/net/dns/dnsmessage"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestCanaryRemovesWhatAKilledRunLeft(t *testing.T) {
	w := newWorld(t)
	own := metav1.ObjectMeta{Name: canary, Labels: map[string]string{"app.kubernetes.io/name": canary, "app.kubernetes.io/managed-by": "theseus"}}
	w.orphan(own)
	w.dns.serve(canary, positive)
	w.play(isReady)
	if err := w.exec.Canary(t.Context(), w.canaryAct()); err != nil {
		t.Fatal(err)
	}
	w.nothingLeft()
	last := w.configs[len(w.configs)-1]
	if last.Data["Corefile"] != candidate {
		t.Errorf("the canary read the orphan's Corefile %q", last.Data["Corefile"])
	}
}

func (w *world) orphan(meta metav1.ObjectMeta) {
	w.t.Helper()
	pod := &corev1.Pod{ObjectMeta: meta, Spec: corev1.PodSpec{NodeName: "gone", Containers: []corev1.Container{{Name: "coredns", Image: "old"}}}}
	if _, err := w.client.CoreV1().Pods(system).Create(w.t.Context(), pod, metav1.CreateOptions{}); err != nil {
		w.t.Fatal(err)
	}
	config := &corev1.ConfigMap{ObjectMeta: meta, Data: map[string]string{"Corefile": "old"}}
	if _, err := w.client.CoreV1().ConfigMaps(system).Create(w.t.Context(), config, metav1.CreateOptions{}); err != nil {
		w.t.Fatal(err)
	}
}

func TestCanaryLeavesForeignObjectsAlone(t *testing.T) {
	w := newWorld(t)
	w.orphan(metav1.ObjectMeta{Name: canary, Labels: map[string]string{"app.kubernetes.io/name": canary}})
	wantElsewhere(t, w.exec.Canary(t.Context(), w.canaryAct()), "DNSCanaryNameTaken",
		"pods/theseus-coredns-canary in kube-system exists, but is not Theseus's: it lacks app.kubernetes.io/managed-by=theseus")
	now := int64(0)
	if err := w.client.CoreV1().Pods(system).Delete(t.Context(), canary, metav1.DeleteOptions{GracePeriodSeconds: &now}); err != nil {
		t.Fatal("the foreign pod is gone:", err)
	}
	wantElsewhere(t, w.exec.Canary(t.Context(), w.canaryAct()), "DNSCanaryNameTaken", "configmaps/theseus-coredns-canary in kube-system exists, but")
	if _, err := w.client.CoreV1().ConfigMaps(system).Get(t.Context(), canary, metav1.GetOptions{}); err != nil {
		t.Error("the foreign ConfigMap is gone:", err)
	}
}

// A message that differs from pass to pass would be a commit of status each time.
func TestForeignObjectIsToldInOneWay(t *testing.T) {
	w := newWorld(t)
	w.orphan(metav1.ObjectMeta{Name: canary})
	const want = "pods/theseus-coredns-canary in kube-system exists, but is not Theseus's: it lacks app.kubernetes.io/managed-by=theseus and app.kubernetes.io/name=" + canary
	for range 5 {
		if err := w.exec.Canary(t.Context(), w.canaryAct()); err == nil || err.Error() != want {
			t.Fatalf("error is\n%v\nwant\n%s", err, want)
		}
	}
}

func TestCanaryThatTheDeploymentWouldAdopt(t *testing.T) {
	w := newWorld(t)
	if err := w.client.AppsV1().Deployments(system).Delete(t.Context(), "coredns", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	deploy := baseDeployment()
	labels := map[string]string{"app.kubernetes.io/managed-by": "theseus"}
	deploy.Spec.Selector.MatchLabels, deploy.Spec.Template.Labels = labels, labels
	if _, err := w.client.AppsV1().Deployments(system).Create(t.Context(), deploy, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	wantElsewhere(t, w.refused(w.canaryAct()), "DNSSelectorTooWide", `its selector "app.kubernetes.io/managed-by=theseus" also selects`)
}

func TestCanaryIsRemovedWhenCancelled(t *testing.T) {
	for name, when := range map[string]func(*world, context.CancelFunc){
		"while starting": func(w *world, cancel context.CancelFunc) {
			w.play(func(pod *corev1.Pod) { isRunning(pod); time.AfterFunc(50*time.Millisecond, cancel) })
		},
		"while asked": func(w *world, cancel context.CancelFunc) {
			w.dns.serve(canary, func(dnsmessage.Message) *dnsmessage.Message { cancel(); return nil })
			w.play(isReady)
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			when(w, cancel)
			before := w.config()
			err := w.exec.Canary(ctx, w.canaryAct())
			wantTransient(t, err, "")
			if !errors.Is(err, context.Canceled) {
				t.Errorf("error is %v, want a cancelled context", err)
			}
			w.nothingLeft()
			if w.config().ResourceVersion != before.ResourceVersion {
				t.Error("a run was recorded")
			}
		})
	}
}
