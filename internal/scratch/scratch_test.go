// SPDX-License-Identifier: Apache-2.0

package scratch_test

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/theseus-gitops/theseus/internal/scratch"
)

const prefix = "theseus-test-"

// TestMain lets this test's program be the processes that are killed.
func TestMain(m *testing.M) {
	if what := os.Getenv("THESEUS_TEST_SCRATCH"); what != "" {
		if err := beChild(what, os.Getenv("THESEUS_TEST_PARENT")); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// beChild makes a folder with a secret in it and works until it is killed; or it makes and removes many.
func beChild(what, parent string) error {
	if what == "many" {
		return many(parent)
	}
	f, err := scratch.New(parent, prefix)
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(f.Path(), "secret"), []byte("token"), 0o600); err != nil {
		return err
	}
	pid := 0
	if what != "alone" {
		cmd := exec.Command("sleep", "600")
		if what == "with heir" {
			cmd.ExtraFiles = []*os.File{f.Handle()}
		}
		if err := cmd.Start(); err != nil {
			return err
		}
		pid = cmd.Process.Pid
	}
	fmt.Println(f.Path(), pid)
	_, err = io.Copy(io.Discard, os.Stdin) // until the parent ends
	return err
}

// many makes sure that nobody takes a folder from under its owner, while others come and go.
func many(parent string) error {
	for range 150 {
		f, err := scratch.New(parent, prefix)
		if err != nil {
			return err
		}
		secret := filepath.Join(f.Path(), "secret")
		if err := os.WriteFile(secret, nil, 0o600); err != nil {
			return err
		}
		other, err := scratch.New(parent, prefix)
		if err != nil {
			return err
		}
		if _, err := os.Stat(secret); err != nil {
			return err
		}
		for _, f := range []*scratch.Folder{f, other} {
			if err := f.Remove(); err != nil {
				return err
			}
		}
	}
	return nil
}

// child is a process of its own; kill ends it as nothing else does.
type child struct {
	cmd    *exec.Cmd
	folder string
	// heir is the process that it started, 0 for none.
	heir int
}

func command(t *testing.T, what, parent string) *exec.Cmd {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), "THESEUS_TEST_SCRATCH="+what, "THESEUS_TEST_PARENT="+parent)
	cmd.Stderr = t.Output()
	return cmd
}

func start(t *testing.T, what, parent string) *child {
	t.Helper()
	c := &child{cmd: command(t, what, parent)}
	if _, err := c.cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	out, err := c.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	folder, pid, _ := strings.Cut(strings.TrimSpace(line), " ")
	c.folder = folder
	if c.heir, err = strconv.Atoi(pid); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if c.heir != 0 {
			_ = syscall.Kill(c.heir, syscall.SIGKILL)
		}
	})
	return c
}

func (c *child) kill(t *testing.T) {
	t.Helper()
	if err := c.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = c.cmd.Wait()
}

// visit is what the next run does: it makes a folder and removes it.
func visit(t *testing.T, parent string) {
	t.Helper()
	f, err := scratch.New(parent, prefix)
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Remove(); err != nil {
		t.Fatal(err)
	}
}

func left(t *testing.T, parent string) []string {
	t.Helper()
	entries, err := os.ReadDir(parent)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

func has(t *testing.T, parent string, folder ...string) {
	t.Helper()
	var want []string
	for _, path := range folder {
		want = append(want, filepath.Base(path))
	}
	slices.Sort(want)
	if got := left(t, parent); !slices.Equal(got, want) {
		t.Fatalf("there is %q, want %q", got, want)
	}
}

// What a killed process left goes with the next run; what a living one has stays.
func TestKilled(t *testing.T) {
	t.Parallel()
	parent := t.TempDir()
	dead, alive := start(t, "alone", parent), start(t, "alone", parent)
	visit(t, parent)
	has(t, parent, dead.folder, alive.folder)
	if scratch.Abandoned(dead.folder) {
		t.Error("a folder that is worked in is called abandoned")
	}
	dead.kill(t)
	if !scratch.Abandoned(dead.folder) {
		t.Error("a dead process's folder is not called abandoned")
	}
	visit(t, parent)
	has(t, parent, alive.folder)
	if !scratch.Abandoned(dead.folder) {
		t.Error("a folder that was removed is not called abandoned")
	}
	if _, err := os.Stat(filepath.Join(alive.folder, "secret")); err != nil {
		t.Error(err)
	}
	alive.kill(t)
	visit(t, parent)
	has(t, parent)
}

// A child that was given the handle goes on in the folder; any other keeps nothing.
func TestHeirs(t *testing.T) {
	t.Parallel()
	parent := t.TempDir()
	with, without := start(t, "with heir", parent), start(t, "without heir", parent)
	with.kill(t)
	without.kill(t)
	if err := syscall.Kill(without.heir, 0); err != nil {
		t.Fatal("the child without handle is gone:", err)
	}
	visit(t, parent)
	has(t, parent, with.folder)
	if err := syscall.Kill(with.heir, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	for range 1000 { // it is not our child, so its end can't be waited for
		if scratch.Abandoned(with.folder) {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	visit(t, parent)
	has(t, parent)
}

// Killed before its folder was locked, or half-way through removing it.
func TestKilledBetween(t *testing.T) {
	t.Parallel()
	parent := t.TempDir()
	for _, path := range []string{prefix + "1", filepath.Join(prefix+"2", "data", "modules")} {
		if err := os.MkdirAll(filepath.Join(parent, path), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	visit(t, parent)
	has(t, parent)
}

// Processes that start and end at once never take each other's folders.
func TestAtOnce(t *testing.T) {
	t.Parallel()
	parent := t.TempDir()
	var all []*exec.Cmd
	for range 4 {
		cmd := command(t, "many", parent)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		all = append(all, cmd)
	}
	for _, cmd := range all {
		if err := cmd.Wait(); err != nil {
			t.Error(err)
		}
	}
	visit(t, parent)
	has(t, parent)
}

// What is not proved to be ours stays.
func TestForeign(t *testing.T) {
	t.Parallel()
	parent, elsewhere := t.TempDir(), t.TempDir()
	secret := filepath.Join(elsewhere, "secret")
	if err := os.WriteFile(secret, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(elsewhere, 0o700); err != nil {
		t.Fatal(err)
	}
	stay := []string{prefix + "notes", prefix, "theseus-tests-1", prefix + "1x", prefix + "5"}
	for _, name := range stay {
		mode := os.FileMode(0o700)
		if name == prefix+"5" {
			mode = 0o755 // MkdirTemp makes none that others can read
		}
		if err := os.Mkdir(filepath.Join(parent, name), mode); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(elsewhere, filepath.Join(parent, prefix+"6")); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(parent, prefix+"7"), nil, 0o700); err != nil {
		t.Fatal(err)
	}
	stay = append(stay, prefix+"6", prefix+"7")
	if os.Geteuid() == 0 { // only root can make folders of somebody else
		name := filepath.Join(parent, prefix+"8")
		if err := os.Mkdir(name, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.Chown(name, 4711, 4711); err != nil {
			t.Fatal(err)
		}
		stay = append(stay, prefix+"8")
	}
	visit(t, parent)
	has(t, parent, stay...)
	if _, err := os.Stat(secret); err != nil {
		t.Error("behind a symlink:", err)
	}
	for _, name := range stay[len(stay)-2:] {
		if scratch.Abandoned(filepath.Join(parent, name)) {
			t.Errorf("%s is called abandoned, and it is not ours to tell", name)
		}
	}
}

// Secrets are for this user alone.
func TestPrivate(t *testing.T) {
	t.Parallel()
	f, err := scratch.New(t.TempDir(), prefix)
	if err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(f.Path())
	if err != nil || info.Mode() != os.ModeDir|0o700 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
	if err := f.Remove(); err != nil {
		t.Error(err)
	}
	if _, err := scratch.New(filepath.Join(t.TempDir(), "missing"), prefix); err == nil {
		t.Error("no error for a parent that is not there")
	}
}
