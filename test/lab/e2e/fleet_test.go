// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// fleet is a real fleet repository with one cluster, and the secrets beside it.
type fleet struct {
	t       *testing.T
	work    string // a working copy
	bare    string // what theseus is pointed at
	secrets string
	env     []string // of every run, besides this process's
}

const statusBranch = "theseus/status"

func newFleet(t *testing.T, kubeconfig string) *fleet {
	t.Helper()
	dir := t.TempDir()
	f := &fleet{t: t, work: filepath.Join(dir, "work"), bare: filepath.Join(dir, "fleet.git"), secrets: filepath.Join(dir, "secrets")}
	f.git("", "init", "-q", "--bare", "-b", "main", f.bare)
	f.git("", "clone", "-q", f.bare, f.work)
	data, err := os.ReadFile(kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	f.secret(data)
	f.write("fleet.yaml", "apiVersion: theseus.dev/v1alpha1\nkind: Fleet\nspec:\n  stages:\n  - name: dev\n    selector: {matchLabels: {stage: dev}}\n")
	return f
}

// secret writes the kubeconfig that specs refer to.
func (f *fleet) secret(kubeconfig []byte) {
	f.t.Helper()
	dir := filepath.Join(f.secrets, "e2e")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		f.t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "kubeconfig"), kubeconfig, 0o600); err != nil {
		f.t.Fatal(err)
	}
}

// want commits the spec that asks for a CoreDNS tag; more are further lines of the coreDNS section.
func (f *fleet) want(tag string, more ...string) {
	f.t.Helper()
	text := `apiVersion: theseus.dev/v1alpha1
kind: Cluster
metadata:
  name: e2e
  labels: {stage: dev}
spec:
  kubernetesVersion: v1.36.3
  baseImage: debian-12
  access:
    kubeconfig:
      secretRef: {name: e2e, key: kubeconfig}
  coreDNS:
    imageTag: ` + tag + "\n"
	for _, line := range more {
		text += "    " + line + "\n"
	}
	f.write("clusters/e2e.yaml", text)
	f.push("CoreDNS " + tag)
}

// push commits the working copy and pushes it.
func (f *fleet) push(message string) {
	f.t.Helper()
	f.git(f.work, "add", "-A")
	f.git(f.work, "-c", "user.name=Test", "-c", "user.email=test@example.com", "commit", "-q", "--allow-empty", "-m", message)
	f.git(f.work, "push", "-q", "origin", "HEAD:main")
}

func (f *fleet) write(name, text string) {
	f.t.Helper()
	path := filepath.Join(f.work, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		f.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		f.t.Fatal(err)
	}
}

func (f *fleet) git(dir string, args ...string) string {
	f.t.Helper()
	cmd := exec.CommandContext(f.t.Context(), "git", args...)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	if err != nil {
		f.t.Fatalf("git %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return strings.TrimSpace(string(out))
}

// head is the newest commit of the status branch, "" when there is none.
func (f *fleet) head() string {
	return f.git(f.bare, "for-each-ref", "--format=%(objectname)", "refs/heads/"+statusBranch)
}

// file is a file on the status branch.
func (f *fleet) file(name string) string { return f.git(f.bare, "show", statusBranch+":"+name) }

// result is how one run of the binary ended.
type result struct {
	code     int
	out, err string
}

// command is a run of theseus that has not begun.
func (f *fleet) command(args ...string) *exec.Cmd {
	args = append(args, "--repo", f.bare, "--secrets", f.secrets)
	cmd := exec.CommandContext(f.t.Context(), os.Getenv("THESEUS_BIN"), args...)
	cmd.Env = append(os.Environ(), f.env...)
	return cmd
}

// theseus runs the binary to its end.
func (f *fleet) theseus(args ...string) result {
	f.t.Helper()
	began := time.Now()
	cmd := f.command(args...)
	var out, errs strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &errs
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		f.t.Fatalf("theseus %s: %v", args[0], err)
	}
	r := result{code: cmd.ProcessState.ExitCode(), out: out.String(), err: errs.String()}
	f.t.Logf("theseus %s → exit %d in %.1f s\n%s%s", strings.Join(args, " "), r.code, time.Since(began).Seconds(), r.out, r.err)
	return r
}

// run runs the binary and requires an exit code.
func (f *fleet) run(code int, args ...string) result {
	f.t.Helper()
	r := f.theseus(args...)
	if r.code != code {
		f.t.Fatalf("theseus %s: exit %d, want %d", strings.Join(args, " "), r.code, code)
	}
	return r
}

func mustContain(t *testing.T, what, text string, wants ...string) {
	t.Helper()
	for _, want := range wants {
		if !strings.Contains(text, want) {
			t.Errorf("%s lacks %q:\n%s", what, want, text)
		}
	}
}

func describe(v any) string { return fmt.Sprintf("%+v", v) }
