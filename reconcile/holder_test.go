// SPDX-License-Identifier: Apache-2.0

package reconcile_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/theseus-gitops/theseus/reconcile"
	"github.com/theseus-gitops/theseus/reconcile/live"
	"github.com/theseus-gitops/theseus/reconcile/logbook"
	"github.com/theseus-gitops/theseus/reconcile/rollout"
	"github.com/theseus-gitops/theseus/reconcile/rollout/rollouttest"
	"github.com/theseus-gitops/theseus/reconcile/skew"
	"github.com/theseus-gitops/theseus/reconcile/status"
)

const planeConfiguration = `apiVersion: kubeadm.k8s.io/v1beta4
clusterName: seed
controlPlaneEndpoint: 10.0.0.1:6443
etcd:
  local:
    dataDir: /var/lib/etcd
    imageTag: 3.6.16-0
kind: ClusterConfiguration
kubernetesVersion: v1.36.3
`

// planeTarget is a control plane behind the ports, whose Terraform has a lock.
type planeTarget struct {
	t       *testing.T
	world   *rollouttest.Plane
	version int
	// conflict makes the next writes of the logbook come second, fail the next steps that lock the state fail.
	conflict, fail int
	conflicted     bool
	// locked counts the steps that locked the state.
	locked int
	// began is when the first of the steps began that may have left a lock.
	began time.Time
}

func (p *planeTarget) Observe(context.Context) (live.Cluster, error) {
	have := p.world.Observe()
	have.Kube.BookVersion = fmt.Sprint(p.version)
	return have, nil
}

func (p *planeTarget) Execute(_ context.Context, step rollout.Step) error {
	if !step.LocksState() {
		return p.world.Do(step.Act)
	}
	p.locked++
	if p.began.IsZero() {
		p.began = p.world.Now
	}
	limit := step.Limit
	if limit == 0 {
		limit = 10 * time.Minute
	}
	holders := p.world.Book.LockHolders
	want := logbook.LockHolder{Host: "h", Folder: "/tmp/theseus-terraform-1", Since: p.began, Until: p.world.Now.Add(limit)}
	if len(holders) != 2 || holders[0].Host != "before" || holders[1] != want {
		p.t.Errorf("%s %s: the logbook says %+v, want %+v", step.Name(), step.Subject, holders, want)
	}
	if add, ok := step.Act.(rollout.AddMachine); ok && (p.world.Book.Pending == nil || p.world.Book.Pending.Name != add.Machine.Name) {
		p.t.Errorf("the logbook does not have machine %s: %+v", add.Machine.Name, p.world.Book.Pending)
	}
	if p.fail > 0 {
		p.fail--
		return errors.New("the state is locked")
	}
	p.began = time.Time{}
	return p.world.Do(step.Act)
}

func (p *planeTarget) WriteBook(_ context.Context, version string, book logbook.Book) (string, error) {
	if p.conflict > 0 {
		p.conflict--
		p.version++
	}
	if version != fmt.Sprint(p.version) {
		return "", fmt.Errorf("logbook: %w", rollout.ErrConflict)
	}
	p.version++
	p.world.WriteBook(book)
	return fmt.Sprint(p.version), nil
}

func (p *planeTarget) Lock(context.Context, int32) (reconcile.Lock, error) { return p, nil }
func (p *planeTarget) Check(context.Context) error                         { return nil }
func (p *planeTarget) Fence() int32                                        { return 1 }
func (p *planeTarget) Release(context.Context) error                       { return nil }

// Event lets another runner's write come first once.
func (p *planeTarget) Event(e reconcile.Event) {
	if _, adds := e.Step.Act.(rollout.AddMachine); adds && e.Kind == reconcile.StepStarted && !p.conflicted {
		p.conflict, p.conflicted = 1, true
	}
}

// Whoever may leave the lock of Terraform's state behind is in the logbook before each step that takes it, with the time in
// which it takes it: also after a write that came second, and from the first of the steps on that failed.
func TestHolder(t *testing.T) {
	t.Parallel()
	start := time.Date(2026, 12, 1, 12, 0, 0, 0, time.UTC)
	p := &planeTarget{t: t, world: rollouttest.NewPlane("seed", 3, start, planeConfiguration), fail: 2}
	p.world.Book.LockHolders = []logbook.LockHolder{{Host: "before"}}
	version, err := skew.Parse("v1.36.3")
	if err != nil {
		t.Fatal(err)
	}
	r := reconcile.Roller{
		Want: rollout.Want{
			Revision: "rev-1-of-it", Owner: logbook.Owner{Repository: "https://git.example.com/fleet", Cluster: "seed"},
			Plane: &rollout.WantPlane{
				Replicas: 3, Kubernetes: version, Image: "debian-13", Surge: 1, StableFor: time.Minute, Attempts: 2,
				Timeouts: rollout.Timeouts{Create: 20 * time.Minute, Join: 15 * time.Minute, Drain: 10 * time.Minute, Detach: 10 * time.Minute, Destroy: 30 * time.Minute},
			},
		},
		Target: reconcile.Target{Observer: p, Executor: p, Locker: p, Books: p, Holder: func() logbook.LockHolder {
			return logbook.LockHolder{Host: "h", Folder: "/tmp/theseus-terraform-1"}
		}},
		Announce: func(context.Context, status.Report) error { return nil },
		Progress: p, Now: func() time.Time { return p.world.Now }, PollEvery: 5 * time.Second,
		Sleep: func(ctx context.Context, d time.Duration) error { p.world.Pass(d); return ctx.Err() },
	}
	report := r.Roll(t.Context())
	if report.Outcome != status.Converged {
		t.Fatalf("%s: %s", report.Outcome, report.Why)
	}
	// Three machines: each is added, leaves the endpoint, is rehearsed and destroyed; and the module is checked.
	if p.locked < 3*4+1 || p.fail > 0 {
		t.Errorf("%d steps locked the state, %d failures are left", p.locked, p.fail)
	}
	if p.world.Book.LockHolders != nil {
		t.Errorf("after the roll: %+v", p.world.Book.LockHolders)
	}
}
