// SPDX-License-Identifier: Apache-2.0

package reconcile_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/theseus-gitops/theseus/reconcile"
	"github.com/theseus-gitops/theseus/reconcile/live"
	"github.com/theseus-gitops/theseus/reconcile/logbook"
	"github.com/theseus-gitops/theseus/reconcile/rollout"
	"github.com/theseus-gitops/theseus/reconcile/rollout/rollouttest"
	"github.com/theseus-gitops/theseus/reconcile/spec"
	"github.com/theseus-gitops/theseus/reconcile/status"
)

// fleet is a whole fleet in memory: a repository, clusters, a clock. It behaves as the real ones do.
type fleet struct {
	mu      sync.Mutex
	now     time.Time
	specs   map[string]string
	pushes  int // how often specs were pushed since the beginning
	branch  map[string][]byte
	odd     map[string]status.Thing // what stands on the branch and is no file
	commits []string
	refuse  bool // the server refuses pushes
	// branchName and path are where the specs are.
	branchName, path string
	clusters         map[string]*fakeCluster
	events           []string
	// connectError is why no cluster can be connected to.
	connectError error
	stop         chan struct{}
	stopAt       string // the step at whose end the process is asked to end
}

// fakeCluster is one cluster: the world of CoreDNS, a logbook with versions, a Lease.
type fakeCluster struct {
	world       *rollouttest.World
	bookVersion int
	writes      int
	unreachable bool
	holder      string // a foreign holder of the Lease
	held        bool
	fence       int32
	// fail makes the next executions of a step fail with an error that may pass.
	fail map[string]int
	// onExecute runs after a step took effect.
	onExecute func(step string)
	// conflict makes the next executions of a step find that somebody else wrote first.
	conflict map[string]int
	// inTheWay is what every step meets instead of taking effect, tries how often it did.
	inTheWay *rollout.Failure
	tries    int
}

const (
	repo     = "registry.k8s.io/coredns/coredns:"
	fleetDoc = "apiVersion: theseus.dev/v1alpha1\nkind: Fleet\nspec:\n  stages:\n  - {name: dev, selector: {matchLabels: {stage: dev}}}\n"
)

func clusterDoc(name, tag string) string {
	return fmt.Sprintf("apiVersion: theseus.dev/v1alpha1\nkind: Cluster\nmetadata: {name: %s, labels: {stage: dev}}\nspec:\n  kubernetesVersion: v1.36.3\n  baseImage: debian-12\n  access: {inCluster: true}\n  coreDNS: {imageTag: %s}\n", name, tag)
}

func newFleet(names ...string) *fleet {
	f := &fleet{
		now: time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC), specs: map[string]string{"fleet.yaml": fleetDoc},
		branch: map[string][]byte{}, clusters: map[string]*fakeCluster{}, stop: make(chan struct{}),
	}
	for _, n := range names {
		f.specs[n+".yaml"] = clusterDoc(n, "v1.14.6")
		f.clusters[n] = &fakeCluster{world: rollouttest.New(repo+"v1.14.2", rollouttest.DefaultCorefile), fail: map[string]int{}, conflict: map[string]int{}}
	}
	return f
}

func (f *fleet) pass() *reconcile.Pass {
	return &reconcile.Pass{
		Place: func() logbook.Owner {
			return logbook.Owner{Repository: "git.example.com/fleet", Branch: f.branchName, Path: f.path}
		},
		Source: f, Status: f, Connector: f, Progress: f, Now: f.clock, Parallel: 1, PollEvery: 5 * time.Second, Stop: f.stop,
		Sleep: func(ctx context.Context, d time.Duration) error { f.sleep(d); return ctx.Err() },
	}
}

func (f *fleet) clock() time.Time { f.mu.Lock(); defer f.mu.Unlock(); return f.now }

func (f *fleet) sleep(d time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.now = f.now.Add(d)
	for _, c := range f.clusters {
		c.world.Now = f.now
		c.world.Pass(0)
	}
}

func (f *fleet) Head(context.Context) (string, error) { return fmt.Sprint("head ", f.pushes), nil }

func (f *fleet) Newest(ctx context.Context) (string, error) { return f.Head(ctx) }

func (f *fleet) Files(context.Context, string) ([]spec.File, error) {
	var out []spec.File
	for name, text := range f.specs {
		out = append(out, spec.File{Path: name, Data: []byte(text)})
	}
	return out, nil
}

func (f *fleet) Read(_ context.Context, _, prefix string) (status.Tree, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.below(prefix), nil
}

func (f *fleet) below(prefix string) status.Tree {
	out := status.Tree{Files: map[string][]byte{}, Other: f.odd}
	for name, data := range f.branch {
		if strings.HasPrefix(name, prefix+"/") {
			out.Files[name] = data
		}
	}
	return out
}

func (f *fleet) Commit(_ context.Context, c reconcile.Commit) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.refuse {
		return fmt.Errorf("%w: protected branch", reconcile.ErrPushRefused)
	}
	files, err := c.Change(f.below(c.Prefix))
	if err != nil {
		return err
	}
	for name, data := range files {
		if data == nil {
			delete(f.branch, name)
			continue
		}
		f.branch[name] = data
		delete(f.odd, name)
	}
	f.commits = append(f.commits, c.Message)
	return nil
}

func (f *fleet) Connect(_ context.Context, c spec.EffectiveCluster) (reconcile.Target, error) {
	if f.connectError != nil {
		return reconcile.Target{}, f.connectError
	}
	one, ok := f.clusters[c.Name]
	if !ok {
		return reconcile.Target{}, errors.New("no such secret")
	}
	t := target{fleet: f, cluster: one}
	return reconcile.Target{Observer: t, Executor: t, Locker: t, Books: t}, nil
}

func (f *fleet) Event(e reconcile.Event) {
	f.mu.Lock()
	defer f.mu.Unlock()
	name := ""
	if e.Step.Act != nil {
		name = e.Step.Name()
	}
	f.events = append(f.events, fmt.Sprintf("%s %d %s %s", e.Cluster, e.Kind, name, e.Text))
	if e.Kind == reconcile.StepDone && name == f.stopAt {
		close(f.stop)
	}
}

// target is one cluster behind the ports.
type target struct {
	fleet   *fleet
	cluster *fakeCluster
}

func (t target) Observe(context.Context) (live.Cluster, error) {
	t.fleet.mu.Lock()
	defer t.fleet.mu.Unlock()
	if t.cluster.unreachable {
		return live.Cluster{}, &reconcile.UnreachableError{Err: errors.New("connection refused")}
	}
	kube := *t.cluster.world.Observe().Kube
	if t.cluster.bookVersion > 0 {
		kube.BookVersion = fmt.Sprint(t.cluster.bookVersion)
	}
	return live.Cluster{Kube: &kube}, nil
}

func (t target) Execute(_ context.Context, step rollout.Step) error {
	t.fleet.mu.Lock()
	defer t.fleet.mu.Unlock()
	if !t.cluster.held {
		return errors.New("a step without the lock")
	}
	if t.cluster.world.Book.Roll == nil {
		return errors.New("a step of a roll that the logbook does not know")
	}
	if t.cluster.fail[step.Name()] > 0 {
		t.cluster.fail[step.Name()]--
		return errors.New("etcdserver: request timed out")
	}
	if t.cluster.conflict[step.Name()] > 0 {
		t.cluster.conflict[step.Name()]--
		return fmt.Errorf("configmap: %w", rollout.ErrConflict)
	}
	if t.cluster.inTheWay != nil {
		t.cluster.tries++
		return fmt.Errorf("pod: %w", t.cluster.inTheWay)
	}
	t.cluster.writes++
	err := t.cluster.world.Do(step)
	if t.cluster.onExecute != nil {
		t.cluster.onExecute(step.Name())
	}
	return err
}

func (t target) WriteBook(_ context.Context, version string, book logbook.Book) (string, error) {
	t.fleet.mu.Lock()
	defer t.fleet.mu.Unlock()
	have := ""
	if t.cluster.bookVersion > 0 {
		have = fmt.Sprint(t.cluster.bookVersion)
	}
	if version != have {
		return "", fmt.Errorf("logbook: %w", rollout.ErrConflict)
	}
	t.cluster.bookVersion++
	t.cluster.writes++
	t.cluster.world.Book = book
	return fmt.Sprint(t.cluster.bookVersion), nil
}

func (t target) Lock(_ context.Context, after int32) (reconcile.Lock, error) {
	if t.cluster.holder != "" {
		return nil, &reconcile.LockedError{Holder: t.cluster.holder, Until: t.fleet.clock().Add(time.Minute)}
	}
	t.cluster.held = true
	t.cluster.writes++
	t.cluster.fence = after + 1
	return t, nil
}

func (t target) Check(context.Context) error {
	if t.cluster.holder != "" {
		return &reconcile.LockedError{Holder: t.cluster.holder}
	}
	return nil
}
func (t target) Fence() int32                  { return t.cluster.fence }
func (t target) Release(context.Context) error { t.cluster.held = false; return nil }

func run(t *testing.T, f *fleet) reconcile.Result {
	t.Helper()
	r, err := f.pass().Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func outcomes(r reconcile.Result) map[string]string {
	out := map[string]string{}
	for _, c := range r.Clusters {
		out[c.Report.Cluster] = c.Report.Outcome.String()
	}
	return out
}

func wantOutcomes(t *testing.T, r reconcile.Result, want map[string]string) {
	t.Helper()
	if got := outcomes(r); !maps.Equal(got, want) {
		for _, c := range r.Clusters {
			t.Logf("%s: %s", c.Report.Cluster, c.Report.Why)
		}
		t.Fatalf("outcomes %v, want %v", got, want)
	}
}
