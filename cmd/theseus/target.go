// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"

	"github.com/google/uuid"

	"github.com/theseus-gitops/theseus/executors/coredns"
	"github.com/theseus-gitops/theseus/executors/kube"
	"github.com/theseus-gitops/theseus/executors/kubeadm"
	"github.com/theseus-gitops/theseus/executors/terraform"
	"github.com/theseus-gitops/theseus/reconcile"
	"github.com/theseus-gitops/theseus/reconcile/live"
	"github.com/theseus-gitops/theseus/reconcile/logbook"
	"github.com/theseus-gitops/theseus/reconcile/rollout"
	"github.com/theseus-gitops/theseus/reconcile/spec"
)

// connector makes a reconcile.Target of the adapters, for a cluster as its spec says.
type connector struct {
	secrets  secretSource
	progress reconcile.Progress
	// export writes the files of the commit that the specs are of into a folder, for Terraform.
	export func(ctx context.Context, folder string) error
}

var _ reconcile.Connector = connector{}

// Connect implements reconcile.Connector.
func (c connector) Connect(ctx context.Context, cluster spec.EffectiveCluster) (reconcile.Target, error) {
	access, err := c.access(ctx, cluster.Spec.Access)
	if err != nil {
		return reconcile.Target{}, err
	}
	client, err := kube.Connect(access)
	if err != nil {
		return reconcile.Target{}, noAccess(cluster.Spec.Access, err)
	}
	tell := func(text string) {
		c.progress.Event(reconcile.Event{Cluster: cluster.Name, Kind: reconcile.WaitBegun, Text: text})
	}
	t := target{client: client, coredns: coredns.New(coredns.Options{
		Client: client.Interface(),
		Dial: func(ctx context.Context, pod string, port int) (net.Conn, error) {
			return client.PortForward(ctx, "kube-system", pod, port)
		},
		Tell: tell,
	})}
	out := reconcile.Target{Close: func() error { return nil }}
	if cluster.Spec.RollsMachines() {
		t.plane = &controlPlane{
			client: client, spec: cluster.Spec, secrets: c.secrets, tell: tell,
			machines: &machines{open: func(ctx context.Context) (*terraform.Module, error) {
				return openModule(ctx, cluster.Name, *cluster.Spec.Terraform, c.secrets, c.export)
			}},
		}
		out.Close, out.Holder = t.plane.close, t.plane.machines.holder
	}
	out.Observer, out.Executor, out.Locker, out.Books = t, t, t, t
	return out, nil
}

// target is one cluster behind the ports of package reconcile.
type target struct {
	client  *kube.Client
	coredns *coredns.Executor
	// plane is nil when the spec leaves the machines alone.
	plane *controlPlane
}

// Observe implements reconcile.Observer.
func (t target) Observe(ctx context.Context) (live.Cluster, error) {
	kube, err := t.client.Observe(ctx)
	have := live.Cluster{Kube: &kube}
	if err == nil && t.plane != nil {
		err = t.plane.observe(ctx, &have)
	}
	return have, t.translate(err)
}

// WriteBook implements reconcile.BookKeeper.
func (t target) WriteBook(ctx context.Context, resourceVersion string, book logbook.Book) (string, error) {
	written, err := t.client.WriteBook(ctx, resourceVersion, book)
	return written, t.translate(err)
}

// Execute implements reconcile.Executor: one line per step.
func (t target) Execute(ctx context.Context, step rollout.Step) error {
	return t.translate(t.execute(ctx, step))
}

func (t target) execute(ctx context.Context, step rollout.Step) error {
	switch act := step.Act.(type) { //nolint:gochecksumtype // those of the control plane are in plane_target.go
	case rollout.EnsureDNSRole:
		return t.coredns.EnsureRole(ctx, act)
	case rollout.CanaryDNS:
		return t.coredns.Canary(ctx, act)
	case rollout.RemoveCanary:
		return t.coredns.RemoveCanary(ctx)
	case rollout.SyncDNSConfig:
		return kubeadm.SyncDNS(ctx, t.client.Interface(), act)
	case rollout.WriteCorefile:
		return t.coredns.WriteCorefile(ctx, act)
	case rollout.PatchDNS:
		return t.coredns.Patch(ctx, act)
	case rollout.VerifyDNS:
		return t.coredns.Verify(ctx, act)
	case rollout.RecordDNSRun:
		return t.coredns.RecordRun(ctx, act)
	case rollout.RecordFailure, rollout.Note:
		return errors.New("the logbook is written by the pass, not by an executor")
	}
	if t.plane != nil {
		if known, err := t.plane.execute(ctx, step); known {
			return err
		}
	}
	return fmt.Errorf("step %s: no executor knows it; this is a defect of Theseus", step.Name())
}

// Lock implements reconcile.Locker. The holder's name says where it runs, so that a person can find it.
// The Lease is the first write of all, so this is where missing rights are found before anything is changed.
func (t target) Lock(ctx context.Context, after int32) (reconcile.Lock, error) {
	if err := t.allowed(ctx); err != nil {
		return nil, err
	}
	if t.plane != nil {
		t.plane.machines.refresh() // what was read before the lock may be another runner's past
	}
	host, err := os.Hostname()
	if err != nil {
		host = "theseus"
	}
	held, err := t.client.Acquire(ctx, host+"_"+uuid.NewString(), after)
	if err != nil {
		return nil, t.translate(err)
	}
	return lease{held, t}, nil
}

const grantThem = "grant them, for example with the roles in Theseus's docs/rights.md; the next pass then goes on"

// allowed makes sure that every later step is allowed: a right that is found missing half way leaves a cluster between two states.
func (t target) allowed(ctx context.Context) error {
	missing, err := t.client.MissingRights(ctx)
	if err != nil {
		return t.translate(err)
	}
	work := "an upgrade of CoreDNS needs"
	if t.plane != nil {
		more, err := t.client.MissingPlaneRights(ctx, t.plane.spec.ControlPlane.ApproveServingCSR)
		if err != nil {
			return t.translate(err)
		}
		missing, work = append(missing, more...), "replacing machines needs"
	}
	if len(missing) == 0 {
		return nil
	}
	var texts []string
	for _, right := range missing {
		texts = append(texts, right.String())
	}
	return &rollout.Failure{
		Reason:    "RightsMissing",
		Message:   "nothing is changed, because the account lacks rights that " + work + ": " + strings.Join(texts, "; "),
		Remedy:    grantThem,
		Elsewhere: true,
	}
}

// lease translates the errors of a kube.Lock.
type lease struct {
	*kube.Lock
	target target
}

// Check implements reconcile.Lock.
func (l lease) Check(ctx context.Context) error { return l.target.translate(l.Lock.Check(ctx)) }

// translate gives the adapter's errors the types that package reconcile asks for.
func (t target) translate(err error) error {
	err = t.client.Explain(err)
	var unreachable *kube.UnreachableError
	var locked *kube.LockedError
	var damaged *kube.DamagedError
	var forbidden *kube.ForbiddenError
	switch {
	case errors.As(err, &locked):
		return &reconcile.LockedError{Holder: locked.Holder, Until: locked.Until}
	case errors.As(err, &unreachable):
		return &reconcile.UnreachableError{Err: err}
	case errors.As(err, &forbidden):
		return fmt.Errorf("%w: %w", err, &rollout.Failure{Reason: "RightsMissing", Message: err.Error(), Remedy: grantThem, Elsewhere: true})
	case errors.As(err, &damaged):
		return fmt.Errorf("%w: %w", err, &rollout.Failure{
			Reason: "ObjectDamaged", Message: fmt.Sprintf("%s: %v", damaged.Object, damaged.Unwrap()), Remedy: damaged.Remedy,
		})
	}
	return err
}
