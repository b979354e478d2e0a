// SPDX-License-Identifier: Apache-2.0

package coredns_test

import (
	"slices"
	"strings"
	"sync"
	"testing"

	"golang.org/x/net/dns/dnsmessage"
	corev1 "k8s.io/api/core/v1"

	"github.com/theseus-gitops/theseus/executors/coredns"
)

// heard keeps what an executor tells.
type heard struct {
	mu    sync.Mutex
	texts []string
}

func (h *heard) tell(text string) { h.mu.Lock(); defer h.mu.Unlock(); h.texts = append(h.texts, text) }

// inOrder wants texts, in that order, among what was told, each of them once in a row.
func (h *heard) inOrder(t *testing.T, want ...string) {
	t.Helper()
	h.mu.Lock()
	defer h.mu.Unlock()
	rest := h.texts
	for _, text := range want {
		i := slices.IndexFunc(rest, func(s string) bool { return strings.Contains(s, text) })
		if i < 0 {
			t.Fatalf("%q is missing, or comes too early, in\n%s", text, strings.Join(h.texts, "\n"))
		}
		rest = rest[i+1:]
	}
	if got := slices.Compact(slices.Clone(h.texts)); len(got) != len(h.texts) {
		t.Errorf("a text was told twice in a row:\n%s", strings.Join(h.texts, "\n"))
	}
}

func TestCanaryTellsWhatItWaitsFor(t *testing.T) {
	var told heard
	w := newWorld(t, func(o *coredns.Options) { o.Tell = told.tell })
	w.dns.serve(canary, first(1, withCode(dnsmessage.RCodeServerFailure), positive))
	pull := isWaiting("ErrImagePull", "no\nroute to registry")
	w.play(func(*corev1.Pod) {}, pull, pull, isRunning, isReady)
	if err := w.exec.Canary(t.Context(), w.canaryAct()); err != nil {
		t.Fatal(err)
	}
	told.inOrder(t,
		"canary: container coredns waits: ErrImagePull: no route to registry",
		"canary: container coredns runs, but its readiness probe does not pass",
		"canary: it is Ready, and is asked what the present pods are asked (questions: 1)",
		"pod theseus-coredns-canary is asked again for "+kubeName.String()+", it says SERVFAIL",
	)
}

func TestVerifyTellsWhomItAsks(t *testing.T) {
	var told heard
	w := newWorld(t, func(o *coredns.Options) { o.Tell = told.tell })
	w.dns.serve("coredns-b", first(1, silent, positive))
	act := w.verifyAct()
	if err := w.exec.Verify(t.Context(), act); err != nil {
		t.Fatal(err)
	}
	told.inOrder(t, "verify: pod coredns-a is asked (1 of 2)", "verify: pod coredns-b is asked (2 of 2)", "pod coredns-b is asked again")
}
