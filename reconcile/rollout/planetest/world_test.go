// SPDX-License-Identifier: Apache-2.0

package planetest_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/theseus-gitops/theseus/reconcile"
	"github.com/theseus-gitops/theseus/reconcile/live"
	"github.com/theseus-gitops/theseus/reconcile/logbook"
	"github.com/theseus-gitops/theseus/reconcile/rollout"
	"github.com/theseus-gitops/theseus/reconcile/rollout/planetest"
	"github.com/theseus-gitops/theseus/reconcile/status"
)

// port is the world behind the ports of package reconcile, for the driver that the job has.
type port struct{ *planetest.Plane }

func (p port) Observe(context.Context) (live.Cluster, error) {
	have, err := p.Plane.Observe()
	if err != nil {
		return live.Cluster{Kube: &live.Kube{}}, &reconcile.UnreachableError{Err: err}
	}
	return have, nil
}

func (p port) Execute(_ context.Context, step rollout.Step) error { return p.Plane.Execute(step) }

func (p port) WriteBook(_ context.Context, version string, book logbook.Book) (string, error) {
	return p.Plane.WriteBook(version, book)
}

func (p port) Lock(context.Context, int32) (reconcile.Lock, error) { return p, nil }
func (p port) Check(context.Context) error                         { return nil }
func (p port) Fence() int32                                        { return 1 }
func (p port) Release(context.Context) error                       { return nil }

// Event tells the story.
func (p port) Event(e reconcile.Event) {
	switch e.Kind {
	case reconcile.StepStarted:
		p.Tell("%-26s %s: %s", e.Step.Name(), e.Step.Subject, e.Step.Why)
	case reconcile.StepFailed:
		p.Tell("  failed: %s", e.Text)
	case reconcile.WaitBegun:
		p.Tell("  wait: %s", e.Text)
	case reconcile.StepDone:
	}
}

// pass is one run of the job, by a process of its own, which begins no step after a time. It reports how that ended, and
// whether the process was killed.
func pass(w *planetest.Plane, want rollout.Want, until time.Time) (report status.Report, killed bool) {
	w.Restart()
	defer func() {
		if r := recover(); r != nil {
			if _, ok := r.(planetest.Killed); !ok {
				panic(r)
			}
			killed = true
		}
	}()
	roller := reconcile.Roller{
		Want: want, Target: reconcile.Target{Observer: port{w}, Executor: port{w}, Locker: port{w}, Books: port{w}}, Progress: port{w},
		Announce: func(context.Context, status.Report) error { return nil },
		Now:      func() time.Time { return w.Now },
		Sleep: func(_ context.Context, d time.Duration) error {
			w.Pass(d)
			return nil
		},
		PollEvery: 5 * time.Second, Until: until,
	}
	return roller.Roll(context.Background()), false
}

// mostPasses bounds a roll: each fault costs a pass or two.
const mostPasses = 12

// roll runs the job until the cluster is as wanted, or stalled, or as often as it may. It gives the last report.
func roll(t failer, w *planetest.Plane, want rollout.Want) status.Report {
	t.Helper()
	var report status.Report
	for range mostPasses {
		var killed bool
		report, killed = pass(w, want, time.Time{})
		switch {
		case len(w.Violations) > 0:
			t.Fatalf("%s\n%s", strings.Join(w.Violations, "\n"), strings.Join(w.Story, "\n"))
		case killed:
		case report.Outcome == status.Converged:
			w.Tell("done: %s", report.Why)
			return report
		case report.Outcome == status.Stalled:
			w.Tell("stalled: %s: %s", report.Failure.Reason, report.Failure.Message)
			return report
		default:
			w.Tell("# the pass ends: %s", report.Why)
		}
		w.Pass(time.Minute)
	}
	return report
}

type failer interface {
	Helper()
	Fatalf(format string, args ...any)
}

// newPlane is a plane that wantPlane wants.
func newPlane(machines int) *planetest.Plane {
	return planetest.New(planetest.Config{
		Machines: machines, Now: noon, ClusterConfiguration: clusterConfiguration, Kubernetes: "v1.36.3", Image: "debian-12", Serving: true,
	})
}

// worldFor is a plane that is as it is before the spec wants something else of it.
func worldFor(want rollout.Want) *planetest.Plane {
	w := newPlane(want.Plane.Replicas)
	w.Least, w.Most = want.Plane.Replicas-want.Plane.Unavailable, want.Plane.Replicas+want.Plane.Surge
	return w
}

// newImage and newVersion want something else of it.
func newImage(machines int) rollout.Want {
	want := wantPlane(machines)
	want.Revision, want.Plane.Image = "rev-image", "debian-13"
	return want
}

// noSurge is newImage in a plane that shrinks before it grows.
func noSurge(machines int) rollout.Want { return withoutSurge(newImage(machines)) }

func withoutSurge(want rollout.Want) rollout.Want {
	want.Plane.Surge, want.Plane.Unavailable = 0, 1
	return want
}

func newVersion(machines int) rollout.Want {
	want := newImage(machines)
	want.Revision, want.Plane.Kubernetes, want.Plane.EtcdTag = "rev-version", version("v1.37.2"), "3.7.3-0"
	return want
}

func restOf(want rollout.Want) planetest.Rest {
	return planetest.Rest{Machines: want.Plane.Replicas, Kubernetes: want.Plane.Kubernetes.String(), Image: want.Plane.Image}
}

// wantRest insists on a roll that ended as wanted, with nothing left over.
func wantRest(t failer, w *planetest.Plane, want rollout.Want, report status.Report) {
	t.Helper()
	w.DeleteLost()
	left := append(w.Violations, w.Left(restOf(want))...)
	if report.Outcome != status.Converged {
		left = append(left, fmt.Sprintf("ended with %s: %s", report.Outcome.Reason(), report.Why))
	}
	if len(left) > 0 {
		t.Fatalf("%s\n%s", strings.Join(left, "\n"), strings.Join(w.Story, "\n"))
	}
}

// wants are the rolls that are tried with every fault.
func wants(machines int) map[string]rollout.Want {
	out := map[string]rollout.Want{"image": newImage(machines), "version": newVersion(machines)}
	if machines > 1 {
		out["no-surge"] = noSurge(machines)
	}
	return out
}

func TestAWorldRolls(t *testing.T) {
	t.Parallel()
	for _, machines := range []int{1, 3, 5} {
		for name, want := range wants(machines) {
			t.Run(fmt.Sprintf("%d-%s", machines, name), func(t *testing.T) {
				t.Parallel()
				w := worldFor(want)
				wantRest(t, w, want, roll(t, w, want))
			})
		}
	}
}
