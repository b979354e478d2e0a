// SPDX-License-Identifier: Apache-2.0

package coredns_test

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/client-go/kubernetes"

	"github.com/theseus-gitops/theseus/executors/coredns"
	"github.com/theseus-gitops/theseus/reconcile/live"
	"github.com/theseus-gitops/theseus/reconcile/rollout"
)

// wire is what goes to the API server: it keeps the bodies of patches and can lose requests.
type wire struct {
	next http.RoundTripper

	mu      sync.Mutex
	patches []string
	lose    func(*http.Request) bool
	// logs answers requests for logs, of which queries keeps what they asked for; nil leaves them to the API server.
	logs    func() (status int, text string)
	queries []string
	// hang keeps requests for logs until they are given up.
	hang bool
}

func (w *wire) RoundTrip(r *http.Request) (*http.Response, error) {
	w.mu.Lock()
	lost := w.lose != nil && w.lose(r)
	w.mu.Unlock()
	if lost {
		return nil, errors.New("the network is away")
	}
	if strings.HasSuffix(r.URL.Path, "/log") {
		if w.hang {
			<-r.Context().Done()
			return nil, r.Context().Err()
		}
		w.mu.Lock()
		defer w.mu.Unlock()
		w.queries = append(w.queries, strings.TrimPrefix(r.URL.Path, "/api/v1/namespaces/kube-system/pods/")+"?"+r.URL.Query().Encode())
		if w.logs != nil {
			status, text := w.logs()
			return &http.Response{StatusCode: status, Header: http.Header{"Content-Type": {"text/plain"}}, Body: io.NopCloser(strings.NewReader(text)), Request: r}, nil
		}
	}
	if r.Method == http.MethodPatch {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return nil, err
		}
		w.mu.Lock()
		w.patches = append(w.patches, string(body))
		w.mu.Unlock()
		r = r.Clone(r.Context())
		r.Body = io.NopCloser(bytes.NewReader(body))
	}
	return w.next.RoundTrip(r)
}

// wired gives the world's executor a wire.
func (w *world) wired(change ...func(*coredns.Options)) *wire {
	w.t.Helper()
	line := &wire{}
	config := server.Config(w.t)
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { line.next = next; return line })
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		w.t.Fatal(err)
	}
	w.exec = w.executor(client, change...)
	return line
}

// A patch that names only what changes can't drop a field that this client does not know.
func TestPatchesNameOnlyWhatChanges(t *testing.T) {
	w := newWorld(t)
	line := w.wired()
	deploy, config := w.deployment(), w.config()
	act := rollout.PatchDNS{Image: target, Volume: "config-volume", Items: []live.VolumeItem{{Key: "Corefile", Path: "Corefile"}}, ResourceVersion: deploy.ResourceVersion}
	if err := w.exec.Patch(t.Context(), act); err != nil {
		t.Fatal(err)
	}
	if err := w.exec.WriteCorefile(t.Context(), rollout.WriteCorefile{Key: "Corefile", Text: "x", ResourceVersion: config.ResourceVersion}); err != nil {
		t.Fatal(err)
	}
	want := []string{
		`{"metadata":{"annotations":{"theseus.dev/coredns-changed":"2026-03-04T05:06:07Z"},"resourceVersion":"` + deploy.ResourceVersion + `"},` +
			`"spec":{"template":{"spec":{"containers":[{"image":"` + target + `","name":"coredns"}],` +
			`"volumes":[{"configMap":{"items":[{"key":"Corefile","path":"Corefile"}]},"name":"config-volume"}]}}}}`,
		`{"data":{"Corefile":"x"},"metadata":{"resourceVersion":"` + config.ResourceVersion + `"}}`,
	}
	if got := strings.Join(line.patches, "\n"); got != strings.Join(want, "\n") {
		t.Errorf("patches are\n%s\nwant\n%s", got, strings.Join(want, "\n"))
	}
}

func ofCanary(r *http.Request, method string) bool {
	return r.Method == method && strings.HasSuffix(r.URL.Path, "/pods/"+canary)
}

func TestCanaryOutlivesAFewLostRequests(t *testing.T) {
	w := newWorld(t)
	line := w.wired()
	w.dns.serve(canary, positive)
	w.play(isReady)
	looks := 0
	line.lose = func(r *http.Request) bool {
		if ofCanary(r, http.MethodGet) {
			looks++
		}
		return ofCanary(r, http.MethodGet) && looks > 1 && looks < 5 // the first is before the canary's start
	}
	if err := w.exec.Canary(t.Context(), w.canaryAct()); err != nil {
		t.Fatal(err)
	}
	w.nothingLeft()
}

// The API server goes away for good: nothing was learnt about the target, and the canary is left for the next run.
func TestCanaryWithoutAPIServer(t *testing.T) {
	w := newWorld(t)
	line := w.wired(func(o *coredns.Options) {
		o.ReadyTimeout, o.CleanUpTimeout = 200*time.Millisecond, 200*time.Millisecond
	})
	w.dns.serve(canary, positive)
	looks := 0
	line.lose = func(r *http.Request) bool {
		if ofCanary(r, http.MethodGet) {
			looks++
		}
		return looks > 1
	}
	wantTransient(t, w.exec.Canary(t.Context(), w.canaryAct()), "not seen Ready within 200ms")
	line.mu.Lock()
	line.lose = nil
	line.mu.Unlock()
	w.exec = w.executor(w.client)
	w.play(isReady)
	if err := w.exec.Canary(t.Context(), w.canaryAct()); err != nil {
		t.Fatal(err)
	}
	w.nothingLeft()
}

// A canary that can't be removed is told, and not recorded as passed: the next run removes it.
func TestCanaryThatCannotBeRemoved(t *testing.T) {
	w := newWorld(t)
	line := w.wired()
	w.dns.serve(canary, positive)
	w.play(isReady)
	line.lose = func(r *http.Request) bool { return ofCanary(r, http.MethodDelete) }
	wantTransient(t, w.exec.Canary(t.Context(), w.canaryAct()), "pods/theseus-coredns-canary in kube-system: delete")
	w.notRecorded()
}
