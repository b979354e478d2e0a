// SPDX-License-Identifier: Apache-2.0

package gitsource_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/theseus-gitops/theseus/gitsource"
)

// origin is a real bare repository with a working clone beside it.
type origin struct {
	t    *testing.T
	root string // directory that holds the bare repository
	bare string
	work string
}

func newOrigin(t *testing.T, initArgs ...string) *origin {
	t.Helper()
	root := t.TempDir()
	o := &origin{t: t, root: root, bare: filepath.Join(root, "fleet.git"), work: t.TempDir()}
	runGit(t, root, append([]string{"init", "-q", "--bare", "-b", "main", o.bare}, initArgs...)...)
	runGit(t, o.bare, "config", "http.receivepack", "true")
	runGit(t, o.bare, "config", "receive.fsckObjects", "true")
	runGit(t, o.work, append([]string{"init", "-q", "-b", "main"}, initArgs...)...)
	runGit(t, o.work, "remote", "add", "origin", o.bare)
	return o
}

// seeded is an origin with one commit of the files on main.
func seeded(t *testing.T, files map[string]string) *origin {
	t.Helper()
	o := newOrigin(t)
	o.commit(files)
	return o
}

func runGit(t *testing.T, dir string, args ...string) string {
	t.Helper()
	return runGitInput(t, dir, "", args...)
}

func runGitInput(t *testing.T, dir, input string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "git", args...)
	cmd.Dir = dir
	cmd.Stdin = strings.NewReader(input)
	cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_NOSYSTEM=1",
		"GIT_AUTHOR_NAME=Ann", "GIT_AUTHOR_EMAIL=ann@example.com", "GIT_COMMITTER_NAME=Ann", "GIT_COMMITTER_EMAIL=ann@example.com")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("git %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return strings.TrimSpace(string(out))
}

func (o *origin) write(name, content string) {
	o.t.Helper()
	full := filepath.Join(o.work, name)
	if err := os.MkdirAll(filepath.Dir(full), 0o755); err != nil {
		o.t.Fatal(err)
	}
	if err := os.WriteFile(full, []byte(content), 0o600); err != nil {
		o.t.Fatal(err)
	}
}

// commit adds files to main and pushes; it gives the commit id.
func (o *origin) commit(files map[string]string) string {
	o.t.Helper()
	for name, content := range files {
		o.write(name, content)
	}
	runGit(o.t, o.work, "add", "-A")
	return o.commitIndex()
}

func (o *origin) commitIndex() string {
	o.t.Helper()
	runGit(o.t, o.work, "commit", "-q", "--allow-empty", "-m", "change")
	runGit(o.t, o.work, "push", "-q", "origin", "HEAD:main")
	return runGit(o.t, o.work, "rev-parse", "HEAD")
}

// git runs a command in the bare repository.
func (o *origin) git(args ...string) string {
	o.t.Helper()
	return runGit(o.t, o.bare, args...)
}

func (o *origin) hook(name, script string) {
	o.t.Helper()
	path := filepath.Join(o.bare, "hooks", name)
	if err := os.WriteFile(path, []byte("#!/bin/sh\n"+script), 0o755); err != nil { // a hook must be executable
		o.t.Fatal(err)
	}
}

func (o *origin) options() gitsource.Options {
	return gitsource.Options{
		URL: "file://" + o.bare, Branch: "main",
		Retry:  gitsource.Retry{Attempts: 5, Min: time.Millisecond, Max: 5 * time.Millisecond},
		Now:    func() time.Time { return time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC) },
		Author: gitsource.Identity{Name: "Theseus", Email: "theseus@example.com"},
	}
}

func (o *origin) open(change ...func(*gitsource.Options)) *gitsource.Repo {
	o.t.Helper()
	options := o.options()
	for _, f := range change {
		f(&options)
	}
	return mustOpen(o.t, options)
}

func mustOpen(t *testing.T, options gitsource.Options) *gitsource.Repo {
	t.Helper()
	repo, err := gitsource.Open(options)
	if err != nil {
		t.Fatal(err)
	}
	return repo
}

const statusBranch = "theseus/status"

// set is a Change that writes one file.
func set(path, content string) func(gitsource.Tree) (map[string][]byte, error) {
	return func(gitsource.Tree) (map[string][]byte, error) {
		return map[string][]byte{path: []byte(content)}, nil
	}
}

func request(change func(gitsource.Tree) (map[string][]byte, error)) gitsource.CommitRequest {
	return gitsource.CommitRequest{Branch: statusBranch, Message: "status", Change: change}
}

func mustCommit(t *testing.T, repo *gitsource.Repo, req gitsource.CommitRequest) gitsource.CommitResult {
	t.Helper()
	result, err := repo.Commit(t.Context(), req)
	if err != nil {
		t.Fatalf("commit: %v", err)
	}
	return result
}

// headFiles polls and reads the specs.
func headFiles(t *testing.T, repo *gitsource.Repo) []gitsource.File {
	t.Helper()
	head, err := repo.Head(t.Context())
	if err != nil {
		t.Fatalf("head: %v", err)
	}
	files, err := repo.Files(t.Context(), head)
	if err != nil {
		t.Fatalf("files: %v", err)
	}
	return files
}

func paths(files []gitsource.File) []string {
	var out []string
	for _, f := range files {
		out = append(out, f.Path)
	}
	return out
}

func wantEqual[T comparable](t *testing.T, what string, got, want T) {
	t.Helper()
	if got != want {
		t.Errorf("%s: got %v, want %v", what, got, want)
	}
}

func wantSlice(t *testing.T, what string, got, want []string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("%s:\n got %q\nwant %q", what, got, want)
	}
}

// wantSays checks that a message has the parts a person needs.
func wantSays(t *testing.T, err error, parts ...string) {
	t.Helper()
	if err == nil {
		t.Fatalf("no error; want one that says %q", parts)
	}
	for _, part := range parts {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("message does not say %q:\n%v", part, err)
		}
	}
}
