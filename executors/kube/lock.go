// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
)

// Lock is a cluster's lock that this runner took. It is safe for concurrent use.
//
// A Lease is not a fence: a runner that was asleep may go on after its lock ran out. So Check is to be asked
// before each step, and every write has its own resourceVersion precondition.
type Lock struct {
	client *Client
	holder string
	// turn holds one token: who has it may write the Lease.
	turn chan struct{}
	stop context.CancelFunc
	done chan struct{}

	mu       sync.Mutex
	fence    int32
	until    time.Time
	lost     *LockedError
	released bool
}

func newLock(ctx context.Context, c *Client, holder string, lease *coordinationv1.Lease) *Lock {
	// The renewals outlive ctx on purpose, see Acquire; Release ends them.
	renewals, stop := context.WithCancel(context.WithoutCancel(ctx))
	l := &Lock{client: c, holder: holder, turn: make(chan struct{}, 1), stop: stop, done: make(chan struct{})}
	l.keep(lease)
	go l.renew(renewals)
	return l
}

// Held reports whether the lock is ours as far as is known without asking: not lost, not released, not run out.
func (l *Lock) Held() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.lost == nil && !l.released && l.client.clock().Before(l.until)
}

// Fence is the Lease's transition count under which the lock is held. It grows with every runner that takes it.
func (l *Lock) Fence() int32 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.fence
}

// Check reads the Lease and renews it when it is still ours, also when it had run out and nobody took it, was cleared, or was
// deleted; the fence grows in the last two cases. When another runner took it, the lock is lost for good and the error is a
// *LockedError. Other errors, *UnreachableError among them, leave the question open.
func (l *Lock) Check(ctx context.Context) error {
	select {
	case l.turn <- struct{}{}:
		defer func() { <-l.turn }()
	case <-ctx.Done():
		return fmt.Errorf("lock: %w", ctx.Err())
	}
	l.mu.Lock()
	lost, released, fence := l.lost, l.released, l.fence
	l.mu.Unlock()
	if lost != nil {
		return lost
	}
	if released {
		return errors.New("lock: it was released")
	}
	for range leaseTries {
		lease, err := l.client.getLease(ctx)
		if err != nil {
			return err
		}
		if !l.ours(lease, fence) {
			return l.lose(lease)
		}
		// Cleared or deleted by hand: nobody else had it, or nobody can tell; a new count is right in both cases.
		transitions := transitionsOf(lease)
		if holderOf(lease) != l.holder {
			transitions = fence + 1
		}
		lease, err = l.client.takeLease(ctx, lease, l.holder, transitions)
		if errors.Is(err, errRace) {
			continue
		}
		if err != nil {
			return err
		}
		l.keep(lease)
		return nil
	}
	return fmt.Errorf("lock: %w, %d times in a row", errRace, leaseTries)
}

// Release stops the renewals and clears the holder if the lock is still ours. A second call does nothing.
// Call it with a context that is not done, after SIGTERM too; an error only means that others wait until the Lease runs out.
func (l *Lock) Release(ctx context.Context) error {
	l.stop()
	<-l.done
	l.mu.Lock()
	over := l.released || l.lost != nil
	l.released = true
	l.mu.Unlock()
	if over {
		return nil
	}
	for range leaseTries {
		lease, err := l.client.getLease(ctx)
		if err != nil {
			return err
		}
		if holderOf(lease) != l.holder {
			return nil
		}
		lease = lease.DeepCopy()
		lease.Spec.HolderIdentity = nil
		_, err = l.client.putLease(ctx, lease, false)
		if !errors.Is(err, errRace) {
			return err
		}
	}
	return fmt.Errorf("lock: %w, %d times in a row", errRace, leaseTries)
}

// renew renews the Lease three times in its life until ctx is done. Its failures have no consequence here:
// the next renewal may work, and Check decides before the next step.
func (l *Lock) renew(ctx context.Context) {
	defer close(l.done)
	ticker := time.NewTicker(l.client.lease / 3)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			_ = l.Check(ctx)
		}
	}
}

// ours reports whether nobody else has held the Lease since we took it under that fence.
func (l *Lock) ours(lease *coordinationv1.Lease, fence int32) bool {
	holder := holderOf(lease)
	return lease == nil || holder == l.holder || (holder == "" && transitionsOf(lease) == fence)
}

func (l *Lock) keep(lease *coordinationv1.Lease) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.fence, l.until = transitionsOf(lease), leaseEnd(lease)
}

func (l *Lock) lose(lease *coordinationv1.Lease) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lost = &LockedError{Holder: holderOf(lease), Until: leaseEnd(lease)}
	return l.lost
}
