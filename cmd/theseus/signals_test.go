// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// hung tells that something waits for an answer.
type hung struct {
	once    sync.Once
	begun   chan struct{}
	release chan struct{}
}

func newHung() *hung { return &hung{begun: make(chan struct{}), release: make(chan struct{})} }

func (h *hung) wait(until <-chan struct{}) {
	h.once.Do(func() { close(h.begun) })
	select {
	case <-until:
	case <-h.release:
	}
}

// Read makes it a standard input that nobody writes to.
func (h *hung) Read([]byte) (int, error) {
	h.wait(nil)
	return 0, io.EOF
}

// server never answers before it is released, and then that it can't. It is not closed: what a second signal leaves
// behind would go on, and write into folders that are being removed.
func (h *hung) server(t *testing.T) *httptest.Server {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h.wait(r.Context().Done())
		w.WriteHeader(http.StatusServiceUnavailable)
	}))
	return s
}

func (h *hung) wantBegun(t *testing.T, ended <-chan int) {
	t.Helper()
	select {
	case <-h.begun:
	case code := <-ended:
		t.Fatalf("it ended with %d before it asked anything", code)
	}
}

// call runs the program and gives its exit code when it ends.
func call(t *testing.T, signals chan os.Signal, in io.Reader, args ...string) <-chan int {
	t.Helper()
	code := make(chan int, 1)
	ctx := context.WithoutCancel(t.Context())
	go func() { code <- run(ctx, args, stream{in, io.Discard, io.Discard}, signals) }()
	return code
}

func wantCode(t *testing.T, got <-chan int, want int) {
	t.Helper()
	select {
	case code := <-got:
		if code != want {
			t.Errorf("exit code %d, want %d", code, want)
		}
	case <-time.After(10 * time.Second):
		t.Fatal("it did not end within 10 s")
	}
}

func TestSignalEndsEveryCommand(t *testing.T) {
	t.Parallel()
	for name, args := range map[string][]string{
		"plan":            {"plan", "--allow-insecure-http", "--repo"},
		"status":          {"status", "--allow-insecure-http", "--repo"},
		"validate":        {"validate", "--allow-insecure-http", "--repo"},
		"reconcile":       {"reconcile", "--allow-insecure-http", "--repo"}, // nothing has begun when specs are read
		"coredns preview": {"coredns", "preview", "--from", "v1.11.3", "--to", "v1.14.6"},
	} {
		for signal, want := range map[os.Signal]int{os.Interrupt: 130, syscall.SIGTERM: 143} {
			t.Run(name+" "+signal.String(), func(t *testing.T) {
				t.Parallel()
				h, signals := newHung(), make(chan os.Signal, 1)
				args := slices.Clone(args)
				if args[len(args)-1] == "--repo" {
					args = append(args, h.server(t).URL)
				}
				code := call(t, signals, h, args...)
				h.wantBegun(t, code)
				signals <- signal
				wantCode(t, code, want)
			})
		}
	}
}

const hungCluster = `apiVersion: theseus.dev/v1alpha1
kind: Cluster
metadata: {name: a}
spec:
  kubernetesVersion: v1.36.3
  access: {allowInsecureTLS: true, kubeconfig: {path: KUBECONFIG}}
  coreDNS: {imageTag: v1.14.6}
`

const hungKubeconfig = `apiVersion: v1
kind: Config
clusters: [{name: a, cluster: {server: "SERVER"}}]
users: [{name: a, user: {token: not-a-secret}}]
contexts: [{name: a, context: {cluster: a, user: a}}]
current-context: a
`

// hungFleet is a repository with one cluster, whose API server hangs.
func hungFleet(t *testing.T, h *hung) string {
	t.Helper()
	dir := t.TempDir()
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	for path, text := range map[string]string{
		kubeconfig:                       strings.Replace(hungKubeconfig, "SERVER", h.server(t).URL, 1),
		filepath.Join(dir, "a.yaml"):     strings.Replace(hungCluster, "KUBECONFIG", kubeconfig, 1),
		filepath.Join(dir, "fleet.yaml"): "apiVersion: theseus.dev/v1alpha1\nkind: Fleet\nspec: {}\n",
	} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, args := range [][]string{{"init", "-q", "-b", "main"}, {"add", "-A"}, {"-c", "user.name=T", "-c", "user.email=t@example.com", "commit", "-q", "-m", "fleet"}} {
		git(t, dir, args...)
	}
	return dir
}

func git(t *testing.T, dir string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "git", args...)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("git %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return string(out)
}

func TestReconcileFinishesAtTheFirstSignal(t *testing.T) {
	t.Parallel()
	h, signals := newHung(), make(chan os.Signal, 1)
	repo := hungFleet(t, h)
	code := call(t, signals, nil, "reconcile", "--repo", repo)
	h.wantBegun(t, code)
	signals <- syscall.SIGTERM
	time.Sleep(tidyTime * 2) // longer than a command that ends at once would take
	select {
	case c := <-code:
		t.Fatalf("it ended with %d while a cluster was looked at", c)
	default:
	}
	close(h.release)
	wantCode(t, code, 143)
	if doc := git(t, repo, "show", "theseus/status:status/clusters/a.yaml"); !strings.Contains(doc, "Unreachable") {
		t.Errorf("status was not committed:\n%s", doc)
	}
}

func TestReconcileEndsAtTheSecondSignal(t *testing.T) {
	t.Parallel()
	h, signals := newHung(), make(chan os.Signal, 2)
	code := call(t, signals, nil, "reconcile", "--repo", hungFleet(t, h))
	h.wantBegun(t, code)
	signals <- os.Interrupt
	signals <- os.Interrupt
	wantCode(t, code, 130)
}

func TestSignalsAreAnswered(t *testing.T) {
	t.Parallel()
	var e ending
	var said []string
	stop := e.finishFirst(func(text string) { said = append(said, text) })
	signals := make(chan os.Signal, 2)
	signals <- os.Interrupt
	signals <- syscall.SIGTERM
	if code := e.await(nil, signals, func() { t.Error("the first signal cancelled the step under way") }); code != 143 {
		t.Errorf("exit code %d, want that of the second signal", code)
	}
	<-stop
	if len(said) != 2 || !strings.Contains(said[0], "again to stop at once") || !strings.Contains(said[1], "5 minutes") {
		t.Errorf("said %q", said)
	}
}
