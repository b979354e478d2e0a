// SPDX-License-Identifier: Apache-2.0

package terraform_test

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/theseus-gitops/theseus/executors/terraform"
	"github.com/theseus-gitops/theseus/reconcile/logbook"
)

func alive(context.Context, logbook.LockHolder) bool { return false }

func gone(context.Context, logbook.LockHolder) bool { return true }

// stays makes sure that the lock is not broken.
func (y *yard) stays(m *terraform.Module, why string, holders ...logbook.LockHolder) {
	y.t.Helper()
	lock, err := m.Reclaim(y.t.Context(), holders, alive)
	if err != nil || lock.Broken || !y.server.locked() {
		y.t.Fatalf("%s: %+v, %v; a lock was broken that was not proved ours", why, lock, err)
	}
	if len(holders) > 0 && lock.Held == nil {
		y.t.Fatalf("%s: the lock was not seen", why)
	}
}

// breaks makes sure that the lock is broken. As long as somebody else's Terraform may have it, which other tests run, it stays.
func (y *yard) breaks(m *terraform.Module, why string, holders ...logbook.LockHolder) {
	y.t.Helper()
	for range 180 {
		lock, err := m.Reclaim(y.t.Context(), holders, gone)
		if err != nil || lock.Held == nil {
			y.t.Fatalf("%s: %+v, %v", why, lock, err)
		}
		if lock.Broken {
			if y.server.locked() {
				y.t.Fatalf("%s: the lock is still there", why)
			}
			return
		}
		time.Sleep(time.Second)
	}
	y.t.Fatalf("%s: the lock is not broken", why)
}

// during is a holder that made calls of Terraform around now.
func during(h logbook.LockHolder) logbook.LockHolder {
	h.Since, h.Until = time.Now().Add(-time.Minute), time.Now().Add(time.Minute)
	return h
}

// We are killed together with Terraform: the lock is broken when nobody is left, and no sooner (flux-iac/tofu-controller#1876). The
// next plan goes on.
func TestReclaim(t *testing.T) {
	withTerraform(t, func(y *yard) {
		t := y.t
		y.slow()
		have := y.seed("c-cp-1")
		y.holdSlow()
		child := y.child()
		m := y.open(func(o *terraform.Options) { o.LockTimeout = 0 })
		holder := during(m.Holder()) // of this very host; the child's folder is another
		holder.Folder = y.folderOf("plan-1")
		y.stays(m, "beside a Terraform that works", holder)
		_ = child.Process.Signal(syscall.SIGSTOP) // so that it does not go on when its Terraform ends
		y.killTerraform(child.Process.Pid)
		y.stays(m, "beside the process that started it", holder)
		if err := child.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		_ = child.Wait()
		y.write("go", "")
		_, err := m.Idle(t.Context(), have)
		var locked *terraform.LockedError
		if !errors.As(err, &locked) {
			t.Fatalf("Idle beside the lock: %v", err)
		}
		y.stays(m, "nobody is written down")
		y.breaks(m, "killed", holder)
		if lock, err := m.Reclaim(t.Context(), []logbook.LockHolder{holder}, gone); err != nil || lock.Held != nil {
			t.Errorf("nothing is locked: %+v, %v", lock, err)
		}
		state := y.state(m)
		if _, asked := state.Registry["c-cp-2"]; asked { // else it was killed before it wrote anything: both are right
			y.do(m, terraform.Step{Kind: terraform.Drop, Machine: "c-cp-2", Have: state.Registry})
		}
		y.do(m, addStep(have, "c-cp-3"))
	})
}

// Terraform alone is killed, by a lack of memory for example: its lock is broken by the process that started it.
func TestReclaimOwn(t *testing.T) {
	withTerraform(t, func(y *yard) {
		t := y.t
		y.slow()
		have := y.seed("c-cp-1")
		y.holdSlow()
		m := y.open(func(o *terraform.Options) { o.LockTimeout = 0 })
		p := y.plan(m, addStep(have, "c-cp-2"))
		failed := make(chan error)
		go func() {
			_, err := m.Apply(t.Context(), p)
			failed <- err
		}()
		pid := 0
		eventually(t, "the apply is half-way", func() bool {
			text, _ := os.ReadFile(filepath.Join(y.dir, "begun"))
			pid, _ = strconv.Atoi(strings.TrimSpace(string(text)))
			return pid > 1
		})
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		if err := <-failed; err == nil || !strings.Contains(err.Error(), "signal") {
			t.Errorf("Apply: %v", err)
		}
		y.write("go", "")
		before := m.Holder()
		before.Since, before.Until = time.Now().Add(-2*time.Hour), time.Now().Add(-time.Hour)
		y.stays(m, "the holder's time is over", before)
		y.breaks(m, "killed", during(m.Holder()))
	})
}

// Each part of the proof is needed.
func TestReclaimProof(t *testing.T) {
	withTerraform(t, func(y *yard) {
		t := y.t
		y.seed("c-cp-1")
		m := y.open(func(o *terraform.Options) { o.LockTimeout = 0 })
		holder := during(m.Holder())
		holder.Folder = filepath.Join(y.temp, "theseus-terraform-1") // which is no more
		mine := info{ID: "1f0a77ad-aa64-1e0b-b2f0-3d3a3bbbd4ba", Operation: "OperationTypeApply", Who: holder.User + "@" + holder.Host, Created: time.Now()}
		pod := holder
		pod.Pod, pod.Boot = "theseus/theseus-1/0000", "another"
		for _, c := range []struct {
			why    string
			lock   func(*info)
			holder func(*logbook.LockHolder)
		}{
			{"somebody else on the host", func(i *info) { i.Who = "anna@" + holder.Host }, nil},
			{"another host", func(i *info) { i.Who = holder.User + "@laptop" }, nil},
			{"nobody is named", func(i *info) { i.Who = "" }, nil},
			{"what no roll does", func(i *info) { i.Operation = "OperationTypeRefresh" }, nil},
			{"before the holder's time", func(i *info) { i.Created = holder.Since.Add(-time.Minute) }, nil},
			{"after the holder's time", func(i *info) { i.Created = holder.Until.Add(time.Hour) }, nil},
			{"when is not known", func(i *info) { i.Created = time.Time{} }, nil},
			{"the holder's time was not written down", nil, func(h *logbook.LockHolder) { h.Until = time.Time{} }},
			{"another container", nil, func(h *logbook.LockHolder) { h.Namespaces = "pid:[1] mnt:[2]" }},
			{"another machine of that name", nil, func(h *logbook.LockHolder) { h.Boot, h.Machine = "another", "another" }},
			{"its folder is in use", nil, func(h *logbook.LockHolder) { h.Folder = y.open().Holder().Folder }},
			{"its pod is there", nil, func(h *logbook.LockHolder) { *h = pod }},
		} {
			lock, h := mine, holder
			if c.lock != nil {
				c.lock(&lock)
			}
			if c.holder != nil {
				c.holder(&h)
			}
			y.server.put(t, lock)
			y.stays(m, c.why, h)
		}
		y.server.put(t, mine)
		y.stays(m, "one of two that it may be of is alive", holder, pod)
		person := y.person()
		y.stays(m, "a person's Terraform runs", holder)
		person()
		y.breaks(m, "proved by its folder", holder)
		y.server.put(t, mine)
		y.breaks(m, "proved by its pod", pod)
	})
}

// A host that was started anew has none of its processes left. In a container neither its name nor its number tells the host.
func TestGoneWithItsHost(t *testing.T) {
	t.Parallel()
	const host, container = "pid:[4026531836] mnt:[4026531841]", "pid:[4026532511] mnt:[4026532509]"
	own := logbook.LockHolder{Host: "h", Machine: "m", Boot: "2", Namespaces: host}
	for name, c := range map[string]struct {
		holder logbook.LockHolder
		want   bool
	}{
		"another start":    {logbook.LockHolder{Host: "h", Machine: "m", Boot: "1", Namespaces: host}, true},
		"another machine":  {logbook.LockHolder{Host: "h", Machine: "n", Boot: "1", Namespaces: host}, false},
		"another name":     {logbook.LockHolder{Host: "i", Machine: "m", Boot: "1", Namespaces: host}, false},
		"no machine":       {logbook.LockHolder{Host: "h", Boot: "1", Namespaces: host}, false},
		"a container":      {logbook.LockHolder{Host: "h", Machine: "m", Boot: "1", Namespaces: container}, false},
		"no start":         {logbook.LockHolder{Host: "h", Machine: "m", Namespaces: host}, false},
		"the same start":   {logbook.LockHolder{Host: "h", Machine: "m", Boot: "2", Namespaces: host, Folder: filepath.Join(t.TempDir(), "gone")}, true},
		"no folder":        {logbook.LockHolder{Host: "h", Machine: "m", Boot: "2", Namespaces: host}, false},
		"nothing is known": {logbook.LockHolder{Host: "h"}, false},
	} {
		if got := terraform.GoneFrom(c.holder, own); got != c.want {
			t.Errorf("%s: gone %t", name, got)
		}
	}
	if terraform.GoneFrom(logbook.LockHolder{Host: "h", Machine: "m", Boot: "1", Namespaces: host}, logbook.LockHolder{Host: "h", Machine: "m", Boot: "2", Namespaces: container}) {
		t.Error("gone, as seen from a container")
	}
}

// info is what a lock says of its holder.
type info struct {
	ID, Operation, Who string
	Created            time.Time
}

// put makes a lock of somebody's.
func (s *stateServer) put(t *testing.T, lock info) {
	t.Helper()
	text, err := json.Marshal(lock)
	if err != nil {
		t.Fatal(err)
	}
	s.set(func(s *stateServer) { s.lock = text })
}

// person runs a Terraform that is none of ours, until the function that it gives is called.
func (y *yard) person() (stop func()) {
	y.t.Helper()
	name := filepath.Join(y.t.TempDir(), "terraform")
	if err := os.Link(os.Args[0], name); err != nil {
		program, err := os.ReadFile(os.Args[0])
		if err != nil {
			y.t.Fatal(err)
		}
		if err := os.WriteFile(name, program, 0o700); err != nil {
			y.t.Fatal(err)
		}
	}
	// By a shell: what this process starts is waited for, and is none of a person's.
	shell := exec.CommandContext(y.t.Context(), "sh", "-c", `"$0" & echo $!; read end; kill -9 $!; wait`, name)
	shell.Env = append(os.Environ(), "THESEUS_TEST_IDLE=1")
	input, err := shell.StdinPipe()
	if err != nil {
		y.t.Fatal(err)
	}
	output, err := shell.StdoutPipe()
	if err != nil {
		y.t.Fatal(err)
	}
	if err := shell.Start(); err != nil {
		y.t.Fatal(err)
	}
	if _, err := output.Read(make([]byte, 16)); err != nil {
		y.t.Fatal(err)
	}
	return func() {
		_ = input.Close()
		_ = shell.Wait()
	}
}

// folderOf is the private folder that holds a file of that name.
func (y *yard) folderOf(name string) string {
	y.t.Helper()
	found, err := filepath.Glob(filepath.Join(y.temp, "theseus-terraform-*", name+"*"))
	if err != nil || len(found) != 1 {
		y.t.Fatalf("files %s: %v, %v", name, found, err)
	}
	return filepath.Dir(found[0])
}
