// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// mostWrites is more writes than a run makes; a run that never ends within it is a livelock.
const mostWrites = 60

// Killed after its first write, run again and killed after its second, and so on, until a run gets through: every kill
// hits the same roll at another place, DNS answers throughout, and the end is as if nothing had happened.
func TestKilledAgainAndAgain(t *testing.T) {
	reset(t, ancientTag, ancient)
	p := newProxy(t)
	f := newFleet(t, lab.Kubeconfig)
	f.secret(p.kubeconfig)
	f.want(newTag)
	dns := probe(t)
	for n := 1; ; n++ {
		if n > mostWrites {
			t.Fatalf("no end after %d kills", n-1)
		}
		if killedAfter(t, f, p, n) {
			expireLease(t)
			continue
		}
		t.Logf("the run that was to be killed after write %d got through", n)
		break
	}
	dns.stop(t)
	checkMigrated(t)
	if left := leftovers(t); left != nil {
		t.Errorf("the canary left %v", left)
	}
	mustContain(t, "status document", f.file("status/clusters/e2e.yaml"), "status: \"True\"", "outcome: Converged")
}

// Every single place to be killed at, each on a fresh roll, forward and on the way back.
func TestKilledAtEveryWrite(t *testing.T) {
	if os.Getenv("THESEUS_E2E_FULL") == "" {
		t.Skip("a long matrix: make test-full runs it; TestKilledAgainAndAgain is its short form")
	}
	for name, c := range map[string]struct {
		tag   string
		check func(t *testing.T)
		first int // the writes before it are those of the other case
	}{
		"forward":  {newTag, checkMigrated, 1},
		"restored": {canaryOnlyTag, checkRestored, 12},
	} {
		t.Run(name, func(t *testing.T) {
			p := newProxy(t)
			for n := c.first; n <= mostWrites; n++ {
				reset(t, ancientTag, ancient)
				f := newFleet(t, lab.Kubeconfig)
				f.secret(p.kubeconfig)
				f.want(c.tag)
				dns := probe(t)
				killed := killedAfter(t, f, p, n)
				at := p.last()
				if killed {
					expireLease(t)
					p.after(0, nil)
					f.theseus("reconcile")
				}
				dns.stop(t)
				c.check(t)
				if left := leftovers(t); left != nil {
					t.Errorf("killed after write %d (%s): the canary left %v", n, at, left)
				}
				if !killed {
					t.Logf("%s: %d places to be killed at, all survived", name, n-c.first)
					return
				}
			}
			t.Fatalf("no end within %d writes", mostWrites)
		})
	}
}

func checkRestored(t *testing.T) {
	t.Helper()
	s := observe(t)
	if !strings.HasSuffix(s.image, ":"+ancientTag) || s.data["Corefile"] != ancient || s.mounted == "Corefile-backup" {
		t.Fatalf("not as before: %s", describe(s))
	}
}

// killedAfter runs reconcile, kills it with SIGKILL right after its nth write took effect, and reports whether it got
// so far. A run that ends by itself must end well.
func killedAfter(t *testing.T, f *fleet, p *proxy, n int) bool {
	t.Helper()
	cmd := f.command("reconcile")
	var out strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &out
	p.after(n, func() { _ = cmd.Process.Kill() })
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	err := cmd.Wait()
	if err == nil || cmd.ProcessState.Exited() {
		t.Logf("ended by itself: %v\n%s", err, out.String())
		return false
	}
	t.Logf("killed after write %d: %s", n, p.last())
	return true
}

// expireLease makes the dead run's Lease as old as it will be in a few minutes.
func expireLease(t *testing.T) {
	t.Helper()
	leases := client(t).CoordinationV1().Leases(system)
	lease, err := leases.Get(t.Context(), "theseus", metav1.GetOptions{})
	if err != nil {
		return // killed before it took the Lease
	}
	past := metav1.NewMicroTime(time.Now().Add(-time.Hour))
	lease.Spec.RenewTime = &past
	if _, err := leases.Update(t.Context(), lease, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
}

// Killed while its canary runs, and then the spec is reverted: the next run finds everything as wanted but the canary,
// and removes it.
func TestKilledThenReverted(t *testing.T) {
	reset(t, oldTag, commented)
	p := newProxy(t)
	f := newFleet(t, lab.Kubeconfig)
	f.secret(p.kubeconfig)
	f.want(newTag)
	const canaryPod = 3 // after the logbook and the canary's ConfigMap
	if !killedAfter(t, f, p, canaryPod) || len(leftovers(t)) != 2 {
		t.Fatalf("the kill after %s left %v, want pod and ConfigMap of the canary", p.last(), leftovers(t))
	}
	expireLease(t)
	p.after(0, nil)
	f.want(oldTag)
	mustContain(t, "plan", f.run(10, "plan").out, "remove-canary")
	f.run(0, "reconcile")
	if left := leftovers(t); left != nil {
		t.Errorf("the canary left %v", left)
	}
	after := observe(t)
	if after.image != imagePrefix+oldTag || after.data["Corefile"] != commented {
		t.Errorf("not as before: %s", describe(after))
	}
	f.run(0, "plan")
}

// The API server goes away in the middle for longer than a request waits: the run says so, and the next one goes on.
func TestAPIServerGoneInTheMiddle(t *testing.T) {
	reset(t, oldTag, commented)
	p := newProxy(t)
	f := newFleet(t, lab.Kubeconfig)
	f.secret(p.kubeconfig)
	f.want(newTag)
	gone := make(chan struct{})
	p.after(3, func() { p.cut(); close(gone) })
	f.run(1, "reconcile")
	<-gone
	mustContain(t, "status document", f.file("status/clusters/e2e.yaml"), "reason: Unreachable")
	p.restore()
	expireLease(t)
	f.run(0, "reconcile")
	if got := observe(t).image; got != imagePrefix+newTag {
		t.Errorf("after the API server came back: %s", got)
	}
}

// Asked to end, a run finishes its step, begins no other, commits status and exits with 143; the next one goes on.
func TestTerminated(t *testing.T) {
	reset(t, oldTag, commented)
	p := newProxy(t)
	f := newFleet(t, lab.Kubeconfig)
	f.secret(p.kubeconfig)
	f.want(newTag)
	cmd := f.command("reconcile")
	var out strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &out
	p.after(3, func() { _ = cmd.Process.Signal(syscall.SIGTERM) })
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	if code := cmd.ProcessState.ExitCode(); code != 143 {
		t.Fatalf("exit %d, want 143\n%s", code, out.String())
	}
	if left := leftovers(t); left != nil {
		t.Errorf("the step was not finished: the canary left %v", left)
	}
	mustContain(t, "status document", f.file("status/clusters/e2e.yaml"), "reason: Rolling")
	f.run(0, "reconcile")
	if got := observe(t).image; got != imagePrefix+newTag {
		t.Errorf("after the next run: %s", got)
	}
}
