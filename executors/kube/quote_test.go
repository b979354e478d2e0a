// SPDX-License-Identifier: Apache-2.0

package kube_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/theseus-gitops/theseus/executors/kube"
)

// dnsPodIn makes a CoreDNS pod whose container is in that state.
func dnsPodIn(t *testing.T, name string, restarts int32, state corev1.ContainerState) {
	t.Helper()
	pods := server.Client(t).CoreV1().Pods("kube-system")
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"k8s-app": "kube-dns"}}, Spec: dnsPod()}
	pod, err := pods.Create(t.Context(), pod, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	pod.Status.Phase = corev1.PodRunning
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "coredns", RestartCount: restarts, State: state}}
	if _, err := pods.UpdateStatus(t.Context(), pod, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
}

// crashing is a server with pods in every state, and a client through a gate that answers for logs.
func crashing(t *testing.T, logs func(http.ResponseWriter, *http.Request)) (*gate, *kube.Client) {
	t.Helper()
	server.Reset(t)
	back := corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff"}}
	dnsPodIn(t, "a-runs-again", 3, corev1.ContainerState{Running: &corev1.ContainerStateRunning{}})
	dnsPodIn(t, "b-never-ran", 0, corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ErrImagePull"}})
	dnsPodIn(t, "c-crashes", 1, back)
	dnsPodIn(t, "d-crashes", 2, back)
	dnsPodIn(t, "e-crashes", 3, back)
	g := newGate(t)
	g.setFail(func(w http.ResponseWriter, r *http.Request) bool {
		if !strings.HasSuffix(r.URL.Path, "/log") {
			return false
		}
		logs(w, r)
		return true
	})
	return g, g.client(t)
}

func words(t *testing.T, client *kube.Client) []string {
	t.Helper()
	have, err := client.Observe(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, p := range have.DNS.Pods {
		out = append(out, p.Name+": "+p.LastWords)
	}
	return out
}

// An upgrade that fails is told with CoreDNS's own words; looking at a healthy cluster takes no call more than before.
func TestObserveQuotesCrashedPods(t *testing.T) {
	g, client := crashing(t, func(w http.ResponseWriter, r *http.Request) {
		_, _ = fmt.Fprintf(w, "[INFO]\x1b plugin\n%s\n", strings.Split(r.URL.Path, "/")[6])
	})
	want := []string{
		"a-runs-again: ", "b-never-ran: ", "c-crashes: [INFO] plugin | c-crashes", "d-crashes: [INFO] plugin | d-crashes", "e-crashes: ",
	}
	if got := words(t, client); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	if len(g.calls) != 14 {
		t.Errorf("%d calls, want 12 and two for logs:\n%s", len(g.calls), strings.Join(g.calls, "\n"))
	}
	const log = "GET /api/v1/namespaces/kube-system/pods/c-crashes/log?container=coredns&limitBytes=32768&previous=true&tailLines=5"
	if !slices.Contains(g.calls, log) {
		t.Errorf("calls are\n%s\nwant\n%s", strings.Join(g.calls, "\n"), log)
	}
}

func TestObserveDoesWithoutLogs(t *testing.T) {
	for name, logs := range map[string]func(http.ResponseWriter, *http.Request){
		"refused": func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "no", http.StatusForbidden) },
		"hanging": func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() },
		"empty":   func(http.ResponseWriter, *http.Request) {},
	} {
		t.Run(name, func(t *testing.T) {
			_, client := crashing(t, logs)
			began := time.Now()
			for _, w := range words(t, client) {
				if !strings.HasSuffix(w, ": ") {
					t.Errorf("got %q, want no words", w)
				}
			}
			if took := time.Since(began); took > 20*time.Second {
				t.Errorf("it took %s", took)
			}
		})
	}
}
