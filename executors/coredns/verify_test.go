// SPDX-License-Identifier: Apache-2.0

package coredns_test

import (
	"context"
	"errors"
	"reflect"
	"testing"
	"time"

	"golang.org/x/net/dns/dnsmessage"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/theseus-gitops/theseus/reconcile/live"
	"github.com/theseus-gitops/theseus/reconcile/rollout"
)

func (w *world) verifyAct() rollout.VerifyDNS {
	w.t.Helper()
	return rollout.VerifyDNS{
		Questions: []rollout.Question{kubeName, stubZone}, ResourceVersion: w.config().ResourceVersion,
		Image: target, Answers: map[string]string{kubeName.String(): "NOERROR", stubZone.String(): "SERVFAIL"},
		Run: live.DNSRun{From: present, To: target, Closed: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)},
	}
}

// notRecorded wants that a verification which failed wrote nothing.
func (w *world) notRecorded() {
	w.t.Helper()
	if note, ok := w.config().Annotations[live.DNSRunAnnotation]; ok {
		w.t.Errorf("the run was closed all the same: %s", note)
	}
}

func TestVerifyAsksEveryPodAndClosesTheRun(t *testing.T) {
	w := newWorld(t)
	stubDown := byName("consul", withCode(dnsmessage.RCodeServerFailure), positive)
	w.dns.serve("coredns-a", stubDown)
	w.dns.serve("coredns-b", first(2, silent, stubDown)) // just up
	w.createPod("coredns-c")
	w.dns.serve("coredns-c", silent)
	w.setStatus("coredns-c", isRunning) // not Ready: it serves nobody
	act := w.verifyAct()
	if err := w.exec.Verify(t.Context(), act); err != nil {
		t.Fatal(err)
	}
	if got := recorded(t, w.config()); !reflect.DeepEqual(got, act.Run) {
		t.Errorf("recorded %+v, want %+v", got, act.Run)
	}
	want := []string{"kubernetes.default.svc.cluster.local. TypeA", "consul.local. TypeSOA"}
	if got := w.dns.asked["coredns-a"]; !reflect.DeepEqual(got, want) {
		t.Errorf("coredns-a was asked %v, want %v", got, want)
	}
	wantConflict(t, w.exec.Verify(t.Context(), act))
}

func TestVerifyOnePodIsWorse(t *testing.T) {
	for name, r := range map[string]reply{
		"SERVFAIL": withCode(dnsmessage.RCodeServerFailure), "NXDOMAIN": withCode(dnsmessage.RCodeNameError), "nothing": silent,
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.dns.serve("coredns-b", r)
			wantFailure(t, w.exec.Verify(t.Context(), w.verifyAct()), "DNSVerifyFailed",
				kubeName.String()+": pod coredns-b says "+name, "the canary said NOERROR", "(node node-1)", target)
			w.notRecorded()
		})
	}
}

func TestVerifyAQuestionThatTheCanaryWasNotAsked(t *testing.T) {
	w := newWorld(t)
	act := w.verifyAct()
	act.Answers = nil
	w.dns.serve("coredns-b", withCode(dnsmessage.RCodeServerFailure))
	if err := w.exec.Verify(t.Context(), act); err != nil {
		t.Error("a reply of any kind is enough:", err)
	}
	act = w.verifyAct()
	act.Answers = nil
	w.dns.serve("coredns-b", silent)
	wantFailure(t, w.exec.Verify(t.Context(), act), "DNSVerifyFailed", "coredns-b says nothing")
}

func TestVerifyWithoutPods(t *testing.T) {
	w := newWorld(t)
	w.setStatus("coredns-a", isRunning)
	w.setStatus("coredns-b", isRunning)
	wantTransient(t, w.exec.Verify(t.Context(), w.verifyAct()), "wants pods, but none is Ready")
	w.notRecorded()
	deploy := w.deployment()
	zero := int32(0)
	deploy.Spec.Replicas = &zero
	if _, err := w.client.AppsV1().Deployments(system).Update(t.Context(), deploy, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := w.exec.Verify(t.Context(), w.verifyAct()); err != nil {
		t.Error("scaled to zero:", err)
	}
}

func TestVerifyBlamesNobodyWithoutConnections(t *testing.T) {
	w := newWorld(t)
	w.dns.broken = errors.New("pods/portforward is forbidden")
	wantTransient(t, w.exec.Verify(t.Context(), w.verifyAct()), "no connection to any pod")
	w.notRecorded()
}

func TestVerifyDoesNotJudgePodsThatLeave(t *testing.T) {
	w := newWorld(t)
	now := int64(0)
	leave := func(pod string) reply {
		return func(dnsmessage.Message) *dnsmessage.Message {
			_ = w.client.CoreV1().Pods(system).Delete(t.Context(), pod, metav1.DeleteOptions{GracePeriodSeconds: &now})
			return nil
		}
	}
	w.dns.serve("coredns-b", leave("coredns-b"))
	if err := w.exec.Verify(t.Context(), w.verifyAct()); err != nil {
		t.Error(err)
	}
	w = newWorld(t)
	w.dns.serve("coredns-a", leave("coredns-a"))
	w.dns.serve("coredns-b", leave("coredns-b"))
	wantTransient(t, w.exec.Verify(t.Context(), w.verifyAct()), "every pod of deployments/coredns in kube-system left")
	w.notRecorded()
}

func TestVerifyCancelled(t *testing.T) {
	w := newWorld(t)
	ctx, cancel := context.WithCancel(t.Context())
	w.dns.serve("coredns-a", func(dnsmessage.Message) *dnsmessage.Message { cancel(); return nil })
	err := w.exec.Verify(ctx, w.verifyAct())
	if !errors.Is(err, context.Canceled) {
		t.Errorf("error is %v, want a cancelled context", err)
	}
	wantTransient(t, err, "")
	w.notRecorded()
}

func TestVerifySkipsPodsThatGo(t *testing.T) {
	w := newWorld(t)
	w.dns.serve("coredns-b", silent)
	// With a node and a grace period, the API server only marks it; its kubelet would end it.
	if err := w.client.CoreV1().Pods(system).Delete(t.Context(), "coredns-b", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	if pod, err := w.client.CoreV1().Pods(system).Get(t.Context(), "coredns-b", metav1.GetOptions{}); err != nil || pod.DeletionTimestamp == nil {
		t.Fatalf("the pod is not being deleted: %v", err)
	}
	if err := w.exec.Verify(t.Context(), w.verifyAct()); err != nil {
		t.Error(err)
	}
}
