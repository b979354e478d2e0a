// SPDX-License-Identifier: Apache-2.0

package gitsource

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestExportIsACheckoutThatStaysInItsFolder(t *testing.T) {
	t.Parallel()
	dir, target := filepath.Join(t.TempDir(), "repo"), t.TempDir()
	git := func(args ...string) string {
		out, err := exec.CommandContext(t.Context(), "git", append([]string{"-C", dir, "-c", "user.name=t", "-c", "user.email=t@example.com"}, args...)...).CombinedOutput()
		if err != nil {
			t.Fatalf("git %v: %v\n%s", args, err, out)
		}
		return strings.TrimSpace(string(out))
	}
	write := func(name, text string, mode os.FileMode) {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), mode); err != nil {
			t.Fatal(err)
		}
	}
	write("terraform/main.tf", "module \"m\" {}\n", 0o644)
	write("terraform/run.sh", "#!/bin/sh\n", 0o755)
	write("modules/m/main.tf", "# m\n", 0o644)
	write("big.bin", strings.Repeat("x", 2000), 0o644)
	for name, to := range map[string]string{
		"terraform/m": "../modules/m", "terraform/passwd": "/etc/passwd", "terraform/up": "../../outside", "self": ".",
	} {
		if err := os.Symlink(to, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	git("init", "-q", "-b", "main")
	git("add", "-A")
	git("commit", "-q", "-m", "first")
	repo, err := Open(Options{URL: dir, Limits: Limits{FileBytes: 1000}})
	if err != nil {
		t.Fatal(err)
	}
	left, err := repo.Export(t.Context(), Revision(git("rev-parse", "HEAD")), target)
	if err != nil {
		t.Fatal(err)
	}
	if want := []string{"big.bin", "terraform/passwd", "terraform/up"}; !slices.Equal(slices.Sorted(slices.Values(left)), want) {
		t.Errorf("left out %q, want %q", left, want)
	}
	if data, err := os.ReadFile(filepath.Join(target, "terraform/m/main.tf")); err != nil || string(data) != "# m\n" {
		t.Errorf("through the symlink: %q, %v", data, err)
	}
	for name, want := range map[string]os.FileMode{"terraform/main.tf": 0o600, "terraform/run.sh": 0o700, "modules": 0o700 | os.ModeDir} {
		info, err := os.Stat(filepath.Join(target, name))
		if err != nil || info.Mode() != want {
			t.Errorf("%s: mode %v, %v; want %v", name, info, err, want)
		}
	}
}

// A tree that git itself refuses to make: a symlink, and something below a path that goes through it.
func TestExportDoesNotWriteThroughALink(t *testing.T) {
	t.Parallel()
	folder, outside := t.TempDir(), t.TempDir()
	root, err := os.OpenRoot(folder)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(outside, filepath.Join(folder, "out")); err != nil {
		t.Fatal(err)
	}
	x := &export{root: root, entry: entry{mode: modeRegular}}
	if err := x.write(File{Path: "out/file", Data: []byte("x")}); err == nil {
		t.Error("it wrote through a symlink")
	}
	if left, _ := os.ReadDir(outside); len(left) > 0 {
		t.Errorf("written outside: %v", left)
	}
}
