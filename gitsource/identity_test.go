// SPDX-License-Identifier: Apache-2.0

package gitsource

import (
	"os/exec"
	"path/filepath"
	"testing"
)

func TestIdentityIsTheSameForEverySpelling(t *testing.T) {
	t.Parallel()
	for raw, want := range map[string]string{
		"https://git.example.com/org/fleet.git":      "git.example.com/org/fleet",
		"https://GIT.example.com:443/org/fleet/":     "git.example.com/org/fleet",
		"http://git.example.com:80/org/fleet":        "git.example.com/org/fleet",
		"ssh://git@git.example.com:22/org/fleet.git": "git.example.com/org/fleet",
		"git@git.example.com:org/fleet.git":          "git.example.com/org/fleet",
		"https://git.example.com:8443/org/fleet":     "git.example.com:8443/org/fleet",
		"https://git.example.com/org/Fleet":          "git.example.com/org/Fleet", // paths may be case-sensitive
		"file:///srv/git/fleet.git":                  "/srv/git/fleet.git",
	} {
		l, err := parseLocation(raw)
		if err != nil {
			t.Errorf("%s: %v", raw, err)
			continue
		}
		if got := l.identity(); got != want {
			t.Errorf("%s: %s, want %s", raw, got, want)
		}
	}
}

func TestIdentityOfALocalCloneIsItsOrigin(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "fleet")
	identity := func(url string) string {
		r, err := Open(Options{URL: url})
		if err != nil {
			t.Fatal(err)
		}
		return r.Identity()
	}
	git := func(args ...string) {
		if out, err := exec.CommandContext(t.Context(), "git", args...).CombinedOutput(); err != nil {
			t.Fatalf("git %v: %v\n%s", args, err, out)
		}
	}
	git("init", "-q", dir)
	git("-C", dir, "-c", "user.name=t", "-c", "user.email=t@example.com", "commit", "-q", "--allow-empty", "-m", "first")
	if got := identity(dir); got != dir {
		t.Errorf("without an origin: %s, want %s", got, dir)
	}
	git("-C", dir, "remote", "add", "origin", "git@git.example.com:org/fleet.git")
	worktree, bare := filepath.Join(filepath.Dir(dir), "tree"), filepath.Join(filepath.Dir(dir), "bare")
	git("-C", dir, "worktree", "add", "-q", worktree)
	git("init", "-q", "--bare", bare)
	git("-C", bare, "remote", "add", "origin", "https://git.example.com/org/fleet")
	for _, path := range []string{dir, worktree, bare} {
		if got := identity(path); got != "git.example.com/org/fleet" {
			t.Errorf("%s: %s", path, got)
		}
	}
	git("-C", dir, "remote", "set-url", "origin", "https://name:secret@git.example.com/org/fleet")
	if got := identity(dir); got != dir {
		t.Errorf("with credentials in the origin's URL: %s, want %s", got, dir)
	}
}
