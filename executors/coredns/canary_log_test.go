// SPDX-License-Identifier: Apache-2.0

package coredns_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/dns/dnsmessage"
	corev1 "k8s.io/api/core/v1"

	"github.com/theseus-gitops/theseus/executors/coredns"
)

func TestFailedCanaryQuotesItsLog(t *testing.T) {
	const log = "old\n[INFO] plugin/reload\nmaxprocs: 2\n\x1b[31m1\n2\x00\n\nlisten tcp :53: bind: address in use\n"
	const quote = "; its log ends: [INFO] plugin/reload | maxprocs: 2 | [31m1 | 2 | listen tcp :53: bind: address in use (node node-7)"
	restarted := func(pod *corev1.Pod) {
		isWaiting("CrashLoopBackOff", "back-off 10s")(pod)
		pod.Status.ContainerStatuses[0].RestartCount = 2
	}
	const latest, previous = canary + "/log?container=coredns&limitBytes=32768&tailLines=5", canary + "/log?container=coredns&limitBytes=32768&previous=true&tailLines=5"
	for name, c := range map[string]struct {
		state   func(*corev1.Pod)
		status  int
		ends    string
		queries []string
	}{
		"exits":                {hasExited(1, "Error", ""), http.StatusOK, "container coredns exited with code 1 (Error)" + quote, []string{latest}},
		"restarts":             {restarted, http.StatusOK, "CrashLoopBackOff: back-off 10s" + quote, []string{previous}},
		"never ready":          {isRunning, http.StatusOK, "its readiness probe does not pass" + quote, []string{latest}},
		"says why by itself":   {hasExited(1, "Error", "1\n2\n3\n4\n5\n6\n"), http.StatusOK, "(Error): 2 | 3 | 4 | 5 | 6 (node node-7)", nil},
		"its log is forbidden": {hasExited(1, "Error", ""), http.StatusForbidden, "exited with code 1 (Error) (node node-7)", []string{latest}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			line := w.wired(func(o *coredns.Options) { o.ReadyTimeout = 500 * time.Millisecond })
			line.logs = func() (int, string) { return c.status, log }
			w.play(c.state)
			err := w.refused(w.canaryAct())
			wantFailure(t, err, "DNSCanaryFailed")
			if !strings.HasSuffix(err.Error(), c.ends) {
				t.Errorf("message is\n%v\nwant it to end\n%s", err, c.ends)
			}
			if !slices.Equal(line.queries, c.queries) {
				t.Errorf("asked for %q, want %q", line.queries, c.queries)
			}
		})
	}
}

func TestCanaryThatDiesWhileAskedQuotesItsLog(t *testing.T) {
	w := newWorld(t)
	line := w.wired()
	line.logs = func() (int, string) { return http.StatusOK, "panic: nil map\n" }
	w.dns.serve(canary, func(dnsmessage.Message) *dnsmessage.Message {
		w.setStatus(canary, hasExited(2, "Error", ""))
		return nil
	})
	w.play(isReady)
	wantFailure(t, w.refused(w.canaryAct()), "DNSCanaryFailed", "container coredns exited with code 2 (Error); its log ends: panic: nil map (node node-7)")
}

func TestLogThatHangsHoldsNothingUp(t *testing.T) {
	w := newWorld(t)
	line := w.wired(func(o *coredns.Options) { o.AskTimeout = 100 * time.Millisecond })
	line.hang = true
	w.play(hasExited(1, "Error", ""))
	began := time.Now()
	err := w.refused(w.canaryAct())
	wantFailure(t, err, "DNSCanaryFailed", "exited with code 1")
	if took := time.Since(began); took > 15*time.Second {
		t.Errorf("it took %s", took)
	}
}
