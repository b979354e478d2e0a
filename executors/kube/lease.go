// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"context"
	"errors"
	"fmt"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/theseus-gitops/theseus/reconcile/logbook"
)

const (
	// leaseDuration is how long a runner that vanished keeps others away. Its clock is the one that counts,
	// so it is long against any difference between the clocks of two runners.
	leaseDuration = 5 * time.Minute
	// leaseTries bounds how often a write is tried again because somebody else's came first.
	leaseTries = 5
)

// LockedError says that another runner holds a cluster's lock.
type LockedError struct {
	// Holder is the other runner, "" when it took the lock and let go of it again meanwhile.
	Holder string
	// Until is when the lock falls to whoever asks, unless the holder renews it.
	Until time.Time
}

// Error implements error.
func (e *LockedError) Error() string {
	if e.Holder == "" {
		return "another runner held the lock of this cluster meanwhile: what was observed before may not hold any more"
	}
	return fmt.Sprintf("another runner, %s, holds the lock of this cluster until %s unless it renews it; if it is gone, the lock is free after that",
		e.Holder, e.Until.UTC().Format(time.RFC3339))
}

// errRace says that a write of the Lease came second, and that it is to be read again.
var errRace = errors.New("the Lease changed meanwhile")

// Acquire takes the cluster's lock, Lease kube-system/theseus. holder names this runner and must be unique to
// its process. The Lease is created when missing and taken over when free or run out; each time its transition
// count grows, above after too, which is the lock's fence: give it the fence of the newest write that was seen,
// so that a Lease which was deleted by hand does not begin to count anew. A foreign holder that is alive is a
// *LockedError, at once.
//
// The lock is renewed until Release, also after ctx is done: a step under way is finished under it.
func (c *Client) Acquire(ctx context.Context, holder string, after int32) (*Lock, error) {
	if holder == "" {
		return nil, errors.New("lock: the holder has no name")
	}
	for range leaseTries {
		lease, err := c.getLease(ctx)
		if err != nil {
			return nil, err
		}
		now := c.clock()
		if other, until := holderOf(lease), leaseEnd(lease); other != "" && other != holder && now.Before(until) {
			return nil, &LockedError{Holder: other, Until: until}
		}
		lease, err = c.takeLease(ctx, lease, holder, max(transitionsOf(lease), after)+1)
		if errors.Is(err, errRace) {
			continue
		}
		if err != nil {
			return nil, err
		}
		return newLock(ctx, c, holder, lease), nil
	}
	return nil, fmt.Errorf("lock: %w, %d times in a row", errRace, leaseTries)
}

// getLease is nil without an error when there is no Lease.
func (c *Client) getLease(ctx context.Context) (*coordinationv1.Lease, error) {
	var lease *coordinationv1.Lease
	get := named(c, leaseOperation("get"), &lease, c.kube.CoordinationV1().Leases(logbook.Namespace).Get)
	if err := get(ctx); err != nil {
		return nil, fmt.Errorf("lock: %w", err)
	}
	return lease, nil
}

// takeLease writes the Lease for holder with that transition count; lease is what was read, nil to create it.
// It is also how a lock is renewed: then holder and count are those that stand in it. It answers errRace when
// somebody else wrote first.
func (c *Client) takeLease(ctx context.Context, lease *coordinationv1.Lease, holder string, transitions int32) (*coordinationv1.Lease, error) {
	create := lease == nil
	if create {
		lease = &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{
			Namespace: logbook.Namespace, Name: logbook.Name, Labels: map[string]string{managedByLabel: fieldManager},
		}}
	}
	lease = lease.DeepCopy()
	now, seconds := metav1.NewMicroTime(c.clock()), int32(c.lease/time.Second)
	if holderOf(lease) != holder || transitionsOf(lease) != transitions {
		lease.Spec.AcquireTime = &now
	}
	lease.Spec.HolderIdentity = &holder
	lease.Spec.LeaseTransitions = &transitions
	lease.Spec.LeaseDurationSeconds = &seconds
	lease.Spec.RenewTime = &now
	return c.putLease(ctx, lease, create)
}

func (c *Client) putLease(ctx context.Context, lease *coordinationv1.Lease, create bool) (*coordinationv1.Lease, error) {
	leases := c.kube.CoordinationV1().Leases(logbook.Namespace)
	verb := "update"
	if create {
		verb = "create"
	}
	var out *coordinationv1.Lease
	err := c.call(ctx, leaseOperation(verb), func(ctx context.Context) (err error) {
		if create {
			out, err = leases.Create(ctx, lease, metav1.CreateOptions{FieldManager: fieldManager})
			return err
		}
		out, err = leases.Update(ctx, lease, metav1.UpdateOptions{FieldManager: fieldManager})
		return err
	})
	if apierrors.IsAlreadyExists(err) || apierrors.IsConflict(err) || absent(err) {
		return nil, errRace
	}
	if err != nil {
		return nil, fmt.Errorf("lock: %w", err)
	}
	return out, nil
}

func leaseOperation(verb string) operation {
	return operation{verb, leaseGroup, "leases", logbook.Namespace, logbook.Name}
}

func holderOf(l *coordinationv1.Lease) string {
	if l == nil || l.Spec.HolderIdentity == nil {
		return ""
	}
	return *l.Spec.HolderIdentity
}

func transitionsOf(l *coordinationv1.Lease) int32 {
	if l == nil || l.Spec.LeaseTransitions == nil {
		return 0
	}
	return *l.Spec.LeaseTransitions
}

// leaseEnd is when the Lease runs out; long ago for one that was never renewed.
func leaseEnd(l *coordinationv1.Lease) time.Time {
	if l == nil || l.Spec.RenewTime == nil {
		return time.Time{}
	}
	duration := leaseDuration
	if l.Spec.LeaseDurationSeconds != nil {
		duration = time.Duration(*l.Spec.LeaseDurationSeconds) * time.Second
	}
	return l.Spec.RenewTime.Add(duration)
}
