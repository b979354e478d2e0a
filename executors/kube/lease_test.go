// SPDX-License-Identifier: Apache-2.0

package kube_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/theseus-gitops/theseus/executors/kube"
)

// clock is a time that tests move.
type clock struct {
	mu  sync.Mutex
	now time.Time
}

func newClock() *clock { return &clock{now: time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)} }

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) pass(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

// runner is a client of its own on a server without a Lease.
func runner(t *testing.T, now *clock) *kube.Client {
	t.Helper()
	return connect(t, kube.Access{Kubeconfig: server.Kubeconfig(t), Clock: now.Now})
}

func acquire(t *testing.T, c *kube.Client, holder string) *kube.Lock {
	t.Helper()
	lock, err := c.Acquire(t.Context(), holder, 0)
	if err != nil {
		t.Fatalf("Acquire %s: %v", holder, err)
	}
	t.Cleanup(func() { _ = lock.Release(context.Background()) }) // t.Context is done by then
	return lock
}

func leaseOf(t *testing.T) coordinationv1.LeaseSpec {
	t.Helper()
	lease, err := server.Client(t).CoordinationV1().Leases("kube-system").Get(t.Context(), "theseus", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return lease.Spec
}

func changeLease(t *testing.T, patch string) {
	t.Helper()
	leases := server.Client(t).CoordinationV1().Leases("kube-system")
	if _, err := leases.Patch(t.Context(), "theseus", "application/merge-patch+json", []byte(patch), metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
}

func TestLockIsTakenOnceAndGivenBack(t *testing.T) {
	server.Reset(t)
	now := newClock()
	one, two := runner(t, now), runner(t, now)

	lock := acquire(t, one, "one")
	if !lock.Held() || lock.Fence() != 1 {
		t.Errorf("held %t, fence %d; want held with fence 1", lock.Held(), lock.Fence())
	}
	_, err := two.Acquire(t.Context(), "two", 0)
	var locked *kube.LockedError
	if !errors.As(err, &locked) {
		t.Fatalf("got %v, want a LockedError", err)
	}
	if want := now.Now().Add(5 * time.Minute); locked.Holder != "one" || !locked.Until.Equal(want) {
		t.Errorf("locked by %q until %s, want one until %s", locked.Holder, locked.Until, want)
	}
	for range 2 { // a second release does nothing
		if err := lock.Release(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if lock.Held() || lock.Check(t.Context()) == nil {
		t.Error("a released lock is still held")
	}
	if spec := leaseOf(t); spec.HolderIdentity != nil {
		t.Errorf("holder %q after Release, want none", *spec.HolderIdentity)
	}
	if next := acquire(t, two, "two"); next.Fence() != 2 {
		t.Errorf("fence %d after a release, want 2", next.Fence())
	}
}

func TestExactlyOneRunnerWins(t *testing.T) {
	for round := range 3 {
		server.Reset(t)
		now := newClock()
		const runners = 6
		if round > 0 { // the first round races to create the Lease, the others to take it over
			if err := acquire(t, runner(t, now), "before").Release(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		locks, errs := make([]*kube.Lock, runners), make([]error, runners)
		var group sync.WaitGroup
		for i := range runners {
			client := runner(t, now)
			group.Go(func() { locks[i], errs[i] = client.Acquire(t.Context(), fmt.Sprint("runner-", i), 0) })
		}
		group.Wait()
		winner := ""
		for i, lock := range locks {
			if lock == nil {
				continue
			}
			if winner != "" {
				t.Errorf("round %d: both %s and runner-%d have the lock", round, winner, i)
			}
			winner = fmt.Sprint("runner-", i)
		}
		for _, err := range errs {
			var locked *kube.LockedError
			if err != nil && (!errors.As(err, &locked) || locked.Holder != winner) {
				t.Errorf("round %d: got %v, want a LockedError that names %q", round, err, winner)
			}
		}
		for _, lock := range locks {
			if lock != nil && lock.Release(t.Context()) != nil {
				t.Error("Release failed")
			}
		}
		if winner == "" {
			t.Errorf("round %d: nobody won", round)
		}
	}
}

func TestLeaseThatRanOut(t *testing.T) {
	server.Reset(t)
	now := newClock()
	lock := acquire(t, runner(t, now), "one")
	now.pass(4 * time.Minute)
	if err := lock.Check(t.Context()); err != nil || !lock.Held() {
		t.Fatalf("Check in time: %v, held %t", err, lock.Held())
	}
	now.pass(6 * time.Minute)
	if lock.Held() {
		t.Error("held after it ran out")
	}
	if err := lock.Check(t.Context()); err != nil || !lock.Held() || lock.Fence() != 1 {
		t.Errorf("nobody took it: Check says %v, held %t, fence %d; want held with fence 1", err, lock.Held(), lock.Fence())
	}

	now.pass(6 * time.Minute)
	other := acquire(t, runner(t, now), "two")
	if other.Fence() != 2 {
		t.Errorf("fence %d after a takeover, want 2", other.Fence())
	}
	var locked *kube.LockedError
	if err := lock.Check(t.Context()); !errors.As(err, &locked) || locked.Holder != "two" || lock.Held() {
		t.Errorf("after a takeover: Check says %v, held %t; want a LockedError that names two", err, lock.Held())
	}
	if err := lock.Release(t.Context()); err != nil {
		t.Error(err)
	}
	if err := other.Check(t.Context()); err != nil {
		t.Errorf("releasing a lost lock disturbed its new holder: %v", err)
	}
}

func TestLockThatWasTakenAndLetGoIsLost(t *testing.T) {
	server.Reset(t)
	now := newClock()
	lock := acquire(t, runner(t, now), "one")
	now.pass(6 * time.Minute)
	if err := acquire(t, runner(t, now), "two").Release(t.Context()); err != nil {
		t.Fatal(err)
	}
	var locked *kube.LockedError
	for range 2 { // lost for good
		if err := lock.Check(t.Context()); !errors.As(err, &locked) || locked.Holder != "" {
			t.Errorf("got %v, want a LockedError without holder", err)
		}
	}
}

func TestLockSurvivesHandsOnTheLease(t *testing.T) {
	server.Reset(t)
	lock := acquire(t, runner(t, newClock()), "one")
	changeLease(t, `{"spec":{"holderIdentity":null}}`)
	if err := lock.Check(t.Context()); err != nil || lock.Fence() != 2 {
		t.Errorf("cleared: Check says %v, fence %d; want fence 2", err, lock.Fence())
	}
	if err := server.Client(t).CoordinationV1().Leases("kube-system").Delete(t.Context(), "theseus", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := lock.Check(t.Context()); err != nil || lock.Fence() != 3 {
		t.Errorf("deleted: Check says %v, fence %d; want fence 3", err, lock.Fence())
	}
	if spec := leaseOf(t); *spec.HolderIdentity != "one" || *spec.LeaseTransitions != 3 || *spec.LeaseDurationSeconds != 300 {
		t.Errorf("the Lease says %+v", spec)
	}
	changeLease(t, `{"spec":{"renewTime":null,"leaseDurationSeconds":null,"holderIdentity":"by-hand"}}`)
	if next := acquire(t, runner(t, newClock()), "two"); next.Fence() != 4 {
		t.Errorf("fence %d over a Lease that was never renewed, want 4", next.Fence())
	}
}

func TestUnreachableServerLeavesTheLockOpen(t *testing.T) {
	server.Reset(t)
	g := newGate(t)
	lock := acquire(t, g.client(t), "one")
	g.setFail(func(w http.ResponseWriter, _ *http.Request) bool {
		http.Error(w, "no backend", http.StatusBadGateway)
		return true
	})
	var unreachable *kube.UnreachableError
	if err := lock.Check(t.Context()); !errors.As(err, &unreachable) || !lock.Held() {
		t.Errorf("got %v, held %t; want an UnreachableError and a lock still held", err, lock.Held())
	}
	g.setFail(nil)
	if err := lock.Check(t.Context()); err != nil {
		t.Error("the server is back:", err)
	}
}

func TestLockIsRenewedUntilReleased(t *testing.T) {
	server.Reset(t)
	client := connect(t, kube.Access{Kubeconfig: server.Kubeconfig(t)})
	client.SetLeaseDuration(3 * time.Second)
	ctx, cancel := context.WithCancel(t.Context())
	lock, err := client.Acquire(ctx, "one", 0)
	if err != nil {
		t.Fatal(err)
	}
	taken := leaseOf(t).RenewTime.Time
	cancel() // SIGTERM in the middle of a step: the lock must hold until the step is over
	for deadline := time.Now().Add(time.Minute); !leaseOf(t).RenewTime.After(taken); {
		if time.Now().After(deadline) {
			t.Fatal("the Lease was not renewed within a minute")
		}
		time.Sleep(100 * time.Millisecond)
	}
	if err := lock.Release(t.Context()); err != nil {
		t.Fatal(err)
	}
	if spec := leaseOf(t); spec.HolderIdentity != nil || *spec.LeaseTransitions != 1 {
		t.Errorf("after Release the Lease says %+v", spec)
	}
}

func TestAcquireNeedsAName(t *testing.T) {
	client := connect(t, kube.Access{Kubeconfig: kubeconfig(anywhere, "", "")})
	if _, err := client.Acquire(t.Context(), "", 0); err == nil {
		t.Error("a lock without a holder's name was taken")
	}
}

// A Lease that somebody deleted must not make the fence begin anew: writes of the past would look newer.
func TestFenceOutlivesADeletedLease(t *testing.T) {
	client := admin(t)
	lock, err := client.Acquire(t.Context(), "one", 41)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = lock.Release(context.WithoutCancel(t.Context())) }()
	if got := lock.Fence(); got != 42 {
		t.Errorf("fence %d, want 42: above the newest write's", got)
	}
}
