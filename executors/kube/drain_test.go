// SPDX-License-Identifier: Apache-2.0

package kube_test

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/theseus-gitops/theseus/executors/kube"
	"github.com/theseus-gitops/theseus/reconcile/rollout"
)

// endPods ends pods that were deleted, as the kubelets of all nodes but the given ones do.
func endPods(t *testing.T, client kubernetes.Interface, silent ...string) {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	var running sync.WaitGroup
	t.Cleanup(func() { stop(); running.Wait() })
	now := int64(0)
	running.Go(func() {
		for ctx.Err() == nil {
			pods, err := client.CoreV1().Pods("shop").List(ctx, metav1.ListOptions{})
			if err == nil {
				for _, p := range pods.Items {
					if p.DeletionTimestamp != nil && !slices.Contains(silent, p.Spec.NodeName) {
						_ = client.CoreV1().Pods("shop").Delete(ctx, p.Name, metav1.DeleteOptions{GracePeriodSeconds: &now})
					}
				}
			}
			time.Sleep(20 * time.Millisecond)
		}
	})
}

// drained is a control-plane node with pods on it, cordoned, in a cluster without leftovers.
func drained(t *testing.T, pods ...*corev1.Pod) *kube.Client {
	t.Helper()
	client := admin(t)
	namespace(t, client.Interface(), "shop")
	node := planeNode("cp-1", "10.0.0.11")
	node.Spec.Unschedulable = true
	place(t, client, node)
	for _, p := range pods {
		place(t, client, p)
	}
	return client
}

// drain asks for one round over all that the node has to lose, and returns what was told.
func drain(t *testing.T, looker, client *kube.Client) ([]string, error) {
	t.Helper()
	act := rollout.Drain{Node: "cp-1", Pods: lookAt(t, looker, kube.PlaneOptions{}).Plane.Parts["cp-1"].Pods}
	var told []string
	err := client.Drain(t.Context(), act, func(text string) { told = append(told, text) })
	return told, err
}

func names(t *testing.T, client *kube.Client, ns string) []string {
	t.Helper()
	pods, err := client.Interface().CoreV1().Pods(ns).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, p := range pods.Items {
		out = append(out, p.Name)
	}
	return out
}

func TestDrainEvictsWhatHasToLeave(t *testing.T) {
	client := drained(t, podOn("cp-1", "a"), podOn("cp-1", "b"), podOn("cp-2", "elsewhere"),
		podOn("cp-1", "agent", ownedBy("DaemonSet")), podOn("cp-1", "done", func(p *corev1.Pod) { p.Status.Phase = corev1.PodSucceeded }),
		staticOn("cp-1", "etcd", "e:1", condition(corev1.ConditionTrue)))
	endPods(t, client.Interface())
	g := newGate(t)
	began := time.Now()
	told, err := drain(t, client, g.client(t))
	if err != nil {
		t.Fatal(err)
	}
	if took := time.Since(began); took > 10*time.Second {
		t.Errorf("it took %s, though all pods ended at once", took)
	}
	if got := names(t, client, "shop"); !slices.Equal(got, []string{"agent", "done", "elsewhere"}) {
		t.Errorf("left are %q", got)
	}
	if got := names(t, client, "kube-system"); !slices.Equal(got, []string{"etcd-cp-1"}) {
		t.Errorf("left in kube-system are %q", got)
	}
	if len(told) == 0 || told[0] != "drain of cp-1: 0 gone; waiting for shop/a, shop/b to end" || told[len(told)-1] != "drain of cp-1: 2 gone" {
		t.Errorf("told %q", told)
	}
	var evictions []string
	for _, call := range g.calls {
		if strings.HasPrefix(call, http.MethodPost) {
			evictions = append(evictions, call)
		} else if !strings.HasPrefix(call, http.MethodGet) {
			t.Errorf("%s: a drain evicts, and writes nothing else", call)
		}
	}
	slices.Sort(evictions)
	if want := []string{"POST /api/v1/namespaces/shop/pods/a/eviction", "POST /api/v1/namespaces/shop/pods/b/eviction"}; !slices.Equal(evictions, want) {
		t.Errorf("evictions %q, want %q", evictions, want)
	}
	if g.most > 4 {
		t.Errorf("%d calls at once, want at most 4", g.most)
	}
}

func TestDrainSaysWhatBlocksIt(t *testing.T) {
	for name, c := range map[string]struct {
		budgets []*policyv1.PodDisruptionBudget
		want    string
	}{
		"at zero":      {[]*policyv1.PodDisruptionBudget{budget("zero", "api", 0)}, "blocked: shop/api: Cannot evict pod as it would violate the pod's disruption budget: The disruption budget zero needs 1 healthy pods and has 1 currently"},
		"two budgets":  {[]*policyv1.PodDisruptionBudget{budget("a", "api", 1), budget("b", "api", 1)}, "blocked: shop/api: the API server answers 500: This pod has more than one PodDisruptionBudget, which the eviction subresource does not support"},
		"not seen yet": {[]*policyv1.PodDisruptionBudget{changed(budget("new", "api", 1), func(b *policyv1.PodDisruptionBudget) { b.Status.ObservedGeneration = 0 })}, "blocked: shop/api: Cannot evict pod as it would violate the pod's disruption budget: The disruption budget new is still being processed by the server"},
	} {
		t.Run(name, func(t *testing.T) {
			client := drained(t, podOn("cp-1", "api"), podOn("cp-1", "web"))
			endPods(t, client.Interface())
			for _, b := range c.budgets {
				place(t, client, b)
			}
			client.SetDrainRound(time.Second)
			began := time.Now()
			told, err := drain(t, client, client)
			if err != nil {
				t.Fatal(err)
			}
			if took := time.Since(began); took > 6*time.Second {
				t.Errorf("a round of 1 s took %s", took)
			}
			if last := told[len(told)-1]; last != "drain of cp-1: 1 gone; "+c.want {
				t.Errorf("got  %s\nwant %s", last, c.want)
			}
			if got := names(t, client, "shop"); !slices.Equal(got, []string{"api"}) {
				t.Errorf("left are %q, want api alone", got)
			}
		})
	}
}

// Two replicas on one node, and a budget for one of them: the second goes once the first is replaced, in the same round.
func TestDrainTriesAgain(t *testing.T) {
	client := drained(t, podOn("cp-1", "api"))
	endPods(t, client.Interface())
	zero := budget("zero", "api", 0)
	place(t, client, zero)
	go func() {
		time.Sleep(500 * time.Millisecond)
		b, err := client.Interface().PolicyV1().PodDisruptionBudgets("shop").Get(t.Context(), "zero", metav1.GetOptions{})
		if err == nil {
			b.Status.DisruptionsAllowed, b.Status.CurrentHealthy = 1, 2
			_, _ = client.Interface().PolicyV1().PodDisruptionBudgets("shop").UpdateStatus(t.Context(), b, metav1.UpdateOptions{})
		}
	}()
	told, err := drain(t, client, client)
	if err != nil || told[len(told)-1] != "drain of cp-1: 1 gone" {
		t.Errorf("got %q, %v; want the pod gone in the end", told, err)
	}
}

func TestDrainOfASilentNode(t *testing.T) {
	client := drained(t, podOn("cp-1", "api"))
	node, err := client.Interface().CoreV1().Nodes().Get(t.Context(), "cp-1", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	node.Status.Conditions[0].Status = corev1.ConditionUnknown
	if _, err := client.Interface().CoreV1().Nodes().UpdateStatus(t.Context(), node, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	endPods(t, client.Interface(), "cp-1")
	client.SetDrainRound(600 * time.Millisecond)
	told, err := drain(t, client, client)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"drain of cp-1: its kubelet is silent, so pods that are evicted can't end before its machine is gone and its Node deleted",
		"drain of cp-1: 0 gone; waiting for shop/api to end",
	}
	if !slices.Equal(told, want) {
		t.Errorf("got %q, want %q", told, want)
	}
	if pods := lookAt(t, client, kube.PlaneOptions{}).Plane.Parts["cp-1"].Pods; len(pods) != 1 || !pods[0].Terminating {
		t.Errorf("got %+v, want the pod evicted, and there", pods)
	}
}

// A pod that ends between the decision and the drain, or that came back elsewhere under its name, is none of the drain's.
func TestDrainLeavesOtherPodsOfTheNameAlone(t *testing.T) {
	client := drained(t, podOn("cp-2", "db-0"))
	act := rollout.Drain{Node: "cp-1", Pods: lookAt(t, client, kube.PlaneOptions{}).Plane.Parts["cp-1"].Pods}
	act.Pods = append(act.Pods, evictee("db-0"), evictee("gone"))
	if err := client.Drain(t.Context(), act, nil); err != nil {
		t.Fatal(err)
	}
	pod, err := client.Interface().CoreV1().Pods("shop").Get(t.Context(), "db-0", metav1.GetOptions{})
	if err != nil || pod.DeletionTimestamp != nil {
		t.Errorf("got %v, %v; want the pod on the other node untouched", pod.DeletionTimestamp, err)
	}
}

func TestDrainInANamespaceThatEnds(t *testing.T) {
	client := drained(t)
	namespace(t, client.Interface(), "ending")
	pod := podOn("cp-1", "api")
	pod.Namespace = "ending"
	place(t, client, pod)
	if err := client.Interface().CoreV1().Namespaces().Delete(t.Context(), "ending", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	client.SetDrainRound(600 * time.Millisecond)
	told, err := drain(t, client, client)
	want := "drain of cp-1: 0 gone; blocked: ending/api: its namespace is being deleted, which ends it"
	if err != nil || told[len(told)-1] != want {
		t.Errorf("got %q, %v; want %q", told, err, want)
	}
}

func TestDrainNeedsItsCordon(t *testing.T) {
	client := drained(t, podOn("cp-1", "api"))
	if err := client.UnmarkLeaving(t.Context(), rollout.UnmarkLeaving{Node: "cp-1"}); err != nil {
		t.Fatal(err)
	}
	if _, err := drain(t, client, client); !errors.Is(err, rollout.ErrConflict) {
		t.Errorf("uncordoned: got %v, want a conflict", err)
	}
	if err := client.DeleteNode(t.Context(), rollout.DeleteNode{Node: "cp-1"}); err != nil {
		t.Fatal(err)
	}
	if err := client.Drain(t.Context(), rollout.Drain{Node: "cp-1"}, nil); !errors.Is(err, rollout.ErrConflict) {
		t.Errorf("gone: got %v, want a conflict", err)
	}
	if got := names(t, client, "shop"); !slices.Equal(got, []string{"api"}) {
		t.Errorf("left are %q, want the pod untouched", got)
	}
}

// Answers that an API server gives rarely, and those that end a round.
func TestDrainByAnswer(t *testing.T) {
	for name, c := range map[string]struct {
		status int
		body   string
		want   string
		ends   bool
	}{
		"another pod by now":   {409, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Conflict","message":"Precondition failed: UID","code":409}`, "blocked: shop/api: Precondition failed: UID", false},
		"overload":             {429, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"TooManyRequests","message":"too many requests","details":{"retryAfterSeconds":1},"code":429}`, "blocked: shop/api: too many requests", false},
		"a webhook that fails": {500, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"InternalError","message":"failed calling webhook x","code":500}`, "blocked: shop/api: the API server answers 500: failed calling webhook x", false},
		"gone":                 {404, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"NotFound","message":"pods \"api\" not found","code":404}`, "waiting for shop/api to end", false},
		"no right":             {403, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Forbidden","message":"no","code":403}`, `not allowed to create pods/eviction api in namespace shop`, true},
		"no such path":         {404, `404 page not found`, "could not find the requested resource", true},
	} {
		t.Run(name, func(t *testing.T) {
			client := drained(t, podOn("cp-1", "api"))
			g := newGate(t)
			g.setFail(func(w http.ResponseWriter, r *http.Request) bool {
				if r.Method != http.MethodPost {
					return false
				}
				if strings.HasPrefix(c.body, "{") {
					w.Header().Set("Content-Type", "application/json")
				}
				w.WriteHeader(c.status)
				_, _ = w.Write([]byte(c.body))
				return true
			})
			through := g.client(t)
			through.SetDrainRound(600 * time.Millisecond)
			told, err := drain(t, client, through)
			switch {
			case c.ends && (err == nil || !strings.Contains(err.Error(), c.want)):
				t.Errorf("got %v, want an error with %q", err, c.want)
			case !c.ends && (err != nil || told[len(told)-1] != "drain of cp-1: 0 gone; "+c.want):
				t.Errorf("got %q, %v; want %q", told, err, c.want)
			}
		})
	}
}
