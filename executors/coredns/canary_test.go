// SPDX-License-Identifier: Apache-2.0

package coredns_test

import (
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/dns/dnsmessage"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/theseus-gitops/theseus/reconcile/live"
	"github.com/theseus-gitops/theseus/reconcile/rollout"
)

var (
	kubeName = rollout.Question{Name: "kubernetes.default.svc.cluster.local.", Type: "A", Port: 53}
	stubZone = rollout.Question{Name: "consul.local.", Type: "SOA", Port: 53}
)

const candidate = ".:53 {\n    # ours\n    kubernetes cluster.local\n    forward . 10.0.0.1\n}\n"

// canaryAct asks for the target with the candidate, at the world's present state.
func (w *world) canaryAct(questions ...rollout.Question) rollout.CanaryDNS {
	w.t.Helper()
	if len(questions) == 0 {
		questions = []rollout.Question{kubeName}
	}
	return rollout.CanaryDNS{
		Image: target, Corefile: candidate, Questions: questions, ResourceVersion: w.config().ResourceVersion,
		Run: live.DNSRun{From: present, To: target, Corefile: live.Hash(corefile), Opened: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)},
	}
}

// refused runs a canary that must not pass: nothing of it may be left, and nothing may be written.
func (w *world) refused(act rollout.CanaryDNS) error {
	w.t.Helper()
	config, deploy := w.config(), w.deployment()
	err := w.exec.Canary(w.t.Context(), act)
	if err == nil {
		w.t.Fatal("the canary passed")
	}
	w.nothingLeft()
	if w.config().ResourceVersion != config.ResourceVersion || w.deployment().ResourceVersion != deploy.ResourceVersion {
		w.t.Error("ConfigMap or Deployment was written")
	}
	return err
}

func wantFailure(t *testing.T, err error, reason string, texts ...string) {
	t.Helper()
	var failure *rollout.Failure
	if !errors.As(err, &failure) {
		t.Fatalf("error is %v, want a failure of the target", err)
	}
	if failure.Elsewhere {
		t.Errorf("the target is not blamed: %v", err)
	}
	wantTold(t, failure, reason, texts...)
}

// wantElsewhere wants what stops an upgrade until a person acts, and is no failure of the target.
func wantElsewhere(t *testing.T, err error, reason string, texts ...string) {
	t.Helper()
	var failure *rollout.Failure
	if !errors.As(err, &failure) || !failure.Elsewhere {
		t.Fatalf("error is %v, want a failure elsewhere", err)
	}
	wantTold(t, failure, reason, texts...)
}

func wantTold(t *testing.T, failure *rollout.Failure, reason string, texts ...string) {
	t.Helper()
	if failure.Reason != reason || failure.Remedy == "" {
		t.Errorf("reason %q, remedy %q; want reason %s and a remedy", failure.Reason, failure.Remedy, reason)
	}
	for _, text := range texts {
		if !strings.Contains(failure.Message, text) {
			t.Errorf("message is\n%s\nwant it to contain\n%s", failure.Message, text)
		}
	}
}

// wantTransient wants an error that is no failure of the target.
func wantTransient(t *testing.T, err error, text string) {
	t.Helper()
	wantError(t, err, text)
	var failure *rollout.Failure
	if errors.As(err, &failure) {
		t.Errorf("the target is blamed: %v", err)
	}
}

func TestCanaryPasses(t *testing.T) {
	w := newWorld(t)
	w.dns.serve(canary, positive)
	w.play(isWaiting("ContainerCreating", ""), isRunning, isReady)
	before, deploy := w.config(), w.deployment()
	if err := w.exec.Canary(t.Context(), w.canaryAct(kubeName)); err != nil {
		t.Fatal(err)
	}
	w.nothingLeft()
	after := w.config()
	want := w.canaryAct().Run
	want.Answers = map[string]string{"kubernetes.default.svc.cluster.local. A :53": "NOERROR"}
	if got := recorded(t, after); !reflect.DeepEqual(got, want) {
		t.Errorf("recorded %+v, want %+v", got, want)
	}
	if !reflect.DeepEqual(after.Data, before.Data) || !reflect.DeepEqual(after.BinaryData, before.BinaryData) {
		t.Error("the ConfigMap's content changed")
	}
	if w.deployment().ResourceVersion != deploy.ResourceVersion {
		t.Error("the Deployment was touched")
	}
	if got := len(w.dns.asked["coredns-b"]); got != 0 {
		t.Errorf("coredns-b was asked %d questions although coredns-a had answered", got)
	}
}

func TestCanaryThatDiesWhileAsked(t *testing.T) {
	w := newWorld(t)
	w.dns.serve(canary, func(dnsmessage.Message) *dnsmessage.Message {
		w.setStatus(canary, hasExited(2, "Error", "panic: nil map"))
		return nil
	})
	w.play(isReady)
	wantFailure(t, w.refused(w.canaryAct()), "DNSCanaryFailed", "container coredns exited with code 2 (Error): panic: nil map")
}

func TestCanaryThatIsDeletedWhileAsked(t *testing.T) {
	w := newWorld(t)
	now := int64(0)
	w.dns.serve(canary, func(dnsmessage.Message) *dnsmessage.Message {
		_ = w.client.CoreV1().Pods(system).Delete(t.Context(), canary, metav1.DeleteOptions{GracePeriodSeconds: &now})
		return nil
	})
	w.play(isReady)
	wantTransient(t, w.refused(w.canaryAct()), "was deleted while it was being tried")
}

func TestCanaryOfAnOlderView(t *testing.T) {
	t.Run("before", func(t *testing.T) {
		w := newWorld(t)
		act := w.canaryAct()
		w.touchConfig()
		wantConflict(t, w.refused(act))
		if len(w.canaries) != 0 {
			t.Error("a canary was started in vain")
		}
	})
	t.Run("meanwhile", func(t *testing.T) {
		w := newWorld(t)
		w.dns.serve(canary, func(q dnsmessage.Message) *dnsmessage.Message { w.touchConfig(); return positive(q) })
		w.play(isReady)
		err := w.exec.Canary(t.Context(), w.canaryAct())
		wantConflict(t, err)
		w.nothingLeft()
		if note, ok := w.config().Annotations[live.DNSRunAnnotation]; ok {
			t.Errorf("a run was recorded over another's write: %s", note)
		}
	})
}

func TestCanaryNeedsItsObjects(t *testing.T) {
	w := newWorld(t)
	act := w.canaryAct()
	act.Image = " spaces "
	wantFailure(t, w.refused(act), "DNSCanaryFailed", "the API server refuses a pod of image")
	act = w.canaryAct(rollout.Question{Name: "relative", Type: "A", Port: 53})
	w.play(isReady)
	wantTransient(t, w.refused(act), "not an absolute DNS name")
	act = w.canaryAct(rollout.Question{Name: "a.", Type: "HINFO", Port: 53})
	wantTransient(t, w.refused(act), "neither A nor SOA")
	if err := w.client.AppsV1().Deployments(system).Delete(t.Context(), "coredns", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	wantError(t, w.exec.Canary(t.Context(), act), "deployments/coredns in kube-system does not exist")
	server.Reset(t)
	wantError(t, w.exec.Canary(t.Context(), act), "configmaps/coredns in kube-system does not exist")
}
