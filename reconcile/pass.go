// SPDX-License-Identifier: Apache-2.0

package reconcile

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/theseus-gitops/theseus/reconcile/logbook"
	"github.com/theseus-gitops/theseus/reconcile/rollout"
	"github.com/theseus-gitops/theseus/reconcile/spec"
	"github.com/theseus-gitops/theseus/reconcile/status"
)

// Pass is one look at a fleet. All its fields but Only, Stop and Until must be set.
type Pass struct {
	Source    Source
	Status    StatusBranch
	Connector Connector
	Progress  Progress
	// Place names repository, branch and folder of the specs in logbooks. It is asked after the specs were read.
	Place func() logbook.Owner
	Now   func() time.Time
	Sleep func(ctx context.Context, d time.Duration) error
	// PollEvery is the pause between two looks while something is awaited.
	PollEvery time.Duration
	// Parallel is how many clusters are worked on at once.
	Parallel int
	// Only names the clusters to look at; empty means all.
	Only []string
	// Stop is closed when the process is asked to end.
	Stop <-chan struct{}
	// Until is when no further step is begun.
	Until time.Time
}

// Result is what a pass found and did.
type Result struct {
	// Head is the commit of the specs.
	Head     string
	Problems spec.Problems
	// OtherFiles counts YAML files below the spec path without any document of ours.
	OtherFiles int
	Clusters   []ClusterResult
	// PublishError is why status could not be committed, nil when it was or when there was nothing new.
	PublishError error
}

// ClusterResult is the part of one cluster.
type ClusterResult struct {
	Report status.Report
	// Plan is filled by Plan only.
	Plan rollout.Plan
}

// fleet is the specs of one commit, resolved.
type fleet struct {
	head     string
	repo     spec.Repository
	problems spec.Problems
	clusters []member
	stages   []string
	known    []string
}

// member is one cluster of the fleet: its effective spec, or a report of why there is none.
type member struct {
	spec   spec.EffectiveCluster
	report status.Report
	broken bool
}

// Run does one pass: specs, then every cluster on its own, then one commit of what is new.
func (p *Pass) Run(ctx context.Context) (Result, error) {
	f, err := p.read(ctx)
	if err != nil {
		return Result{}, err
	}
	all := make([]*status.Report, len(f.clusters))
	p.each(f, func(i int, m member) {
		if p.asked() {
			return // looking at a cluster may take long; the next pass does
		}
		r := p.roll(ctx, f, m)
		all[i] = &r
	})
	var reports []status.Report
	for _, r := range all {
		if r != nil {
			reports = append(reports, *r)
		}
	}
	result := Result{Head: f.head, Problems: f.problems, OtherFiles: f.repo.OtherFiles}
	for _, r := range reports {
		result.Clusters = append(result.Clusters, ClusterResult{Report: r})
	}
	result.PublishError = p.publish(ctx, f, reports)
	return result, nil
}

// Plan observes every cluster and plays the decision forward. It writes nothing anywhere.
func (p *Pass) Plan(ctx context.Context) (Result, error) {
	f, err := p.read(ctx)
	if err != nil {
		return Result{}, err
	}
	result := Result{Head: f.head, Problems: f.problems, OtherFiles: f.repo.OtherFiles, Clusters: make([]ClusterResult, len(f.clusters))}
	p.each(f, func(i int, m member) { result.Clusters[i] = p.plan(ctx, f, m) })
	return result, nil
}

// asked reports whether the process is asked to end.
func (p *Pass) asked() bool {
	select {
	case <-p.Stop:
		return true
	default:
		return false
	}
}

// each runs one function per cluster, so many at once.
func (p *Pass) each(f fleet, do func(i int, m member)) {
	slots := make(chan struct{}, max(1, p.Parallel))
	var all sync.WaitGroup
	var defect atomic.Pointer[string]
	for i, m := range f.clusters {
		slots <- struct{}{}
		all.Go(func() {
			defer func() { <-slots }()
			defer func() {
				if cause := recover(); cause != nil {
					text := fmt.Sprintf("cluster %s: %v\n%s", m.report.Cluster, cause, debug.Stack())
					defect.Store(&text)
				}
			}()
			do(i, m)
		})
	}
	all.Wait()
	if text := defect.Load(); text != nil {
		panic(*text) // in the caller's goroutine, where it can be recovered, once the other clusters are done
	}
}

// read polls, reads and resolves the specs.
func (p *Pass) read(ctx context.Context) (fleet, error) {
	head, err := p.Source.Head(ctx)
	if err != nil {
		return fleet{}, err
	}
	files, err := p.Source.Files(ctx, head)
	if err != nil {
		return fleet{}, err
	}
	f := fleet{head: head}
	f.repo, f.problems = spec.Parse(files)
	f.resolve()
	if err := f.keepOnly(p.Only); err != nil {
		return fleet{}, err
	}
	return f, nil
}

// connect is the cluster's Target, or the report of why there is none.
func (p *Pass) connect(ctx context.Context, m member) (Target, *status.Report) {
	target, err := p.Connector.Connect(ctx, m.spec)
	if err == nil {
		return target, nil
	}
	r := m.report
	r.Outcome, r.Why = outcomeOf(err), err.Error()
	var failure *rollout.Failure
	if errors.As(err, &failure) {
		r.Outcome, r.Why, r.Failure = status.Stalled, failure.Message, failure
	}
	return Target{}, &r
}

// roll is the part of one cluster in Run.
func (p *Pass) roll(ctx context.Context, f fleet, m member) (report status.Report) {
	if m.broken {
		return m.report
	}
	target, failed := p.connect(ctx, m)
	if failed != nil {
		return *failed
	}
	defer func() { report = closed(target, report) }()
	want, err := p.want(f, m.spec)
	if err != nil {
		m.report.Outcome, m.report.Why = status.Transient, err.Error()
		return m.report
	}
	roller := &Roller{
		Want: want, Target: target, Report: m.report, Progress: p.Progress, Now: p.Now, Sleep: p.Sleep,
		PollEvery: p.PollEvery, Stop: p.Stop, Until: p.Until,
		Announce:   func(ctx context.Context, r status.Report) error { return p.publish(ctx, f, []status.Report{r}) },
		Superseded: p.superseded(f.head, m.spec),
	}
	return roller.Roll(ctx)
}

// superseded asks whether the branch wants something else of a cluster than when its specs were read. A branch that can't be
// asked, and a spec that can't be read, are no reason to leave a roll: the next pass will say what is wrong.
func (p *Pass) superseded(head string, of spec.EffectiveCluster) func(ctx context.Context) bool {
	return func(ctx context.Context) bool {
		newest, err := p.Source.Newest(ctx)
		if err != nil || newest == head {
			return false
		}
		files, err := p.Source.Files(ctx, newest)
		if err != nil {
			return false
		}
		now := fleet{head: newest}
		now.repo, now.problems = spec.Parse(files)
		now.resolve()
		head = newest
		i := slices.IndexFunc(now.clusters, func(m member) bool { return m.report.Cluster == of.Name })
		return i >= 0 && !now.clusters[i].broken && now.clusters[i].spec.Revision != of.Revision
	}
}

// closed ends a target. What it left behind is worth a notice: files of Terraform hold secrets.
func closed(target Target, report status.Report) status.Report {
	if target.Close == nil {
		return report
	}
	if err := target.Close(); err != nil {
		report.Notices = append(report.Notices, "cleaning up: "+err.Error())
	}
	return report
}

// plan is the part of one cluster in Plan.
func (p *Pass) plan(ctx context.Context, f fleet, m member) (result ClusterResult) {
	if m.broken {
		return ClusterResult{Report: m.report}
	}
	target, failed := p.connect(ctx, m)
	if failed != nil {
		return ClusterResult{Report: *failed}
	}
	defer func() { result.Report = closed(target, result.Report) }()
	want, err := p.want(f, m.spec)
	if err != nil {
		m.report.Outcome, m.report.Why = status.Transient, err.Error()
		return ClusterResult{Report: m.report}
	}
	s := newRoll(&Roller{Want: want, Target: target, Report: m.report, Now: p.Now})
	decision, err := s.look(ctx)
	if err != nil {
		return ClusterResult{Report: s.failed(err)}
	}
	if branch := s.have.Kube.Book.Owner.Branch; branch != "" && branch != want.Owner.Branch {
		// A proposal's branch may be planned for, as if it were merged. Only reconcile must come from the owner's.
		m.report.Notices = append(m.report.Notices, fmt.Sprintf("this cluster is upgraded from branch %s; reconcile would refuse it from %s", branch, want.Owner.Branch))
		want.Owner.Branch = branch
		s.Want, s.Report = want, m.report
		decision = rollout.Next(want, s.have, p.Now())
	}
	plan := rollout.Play(want, s.have, p.Now())
	report := s.report(decision)
	if begun := s.have.Kube.Book.Roll; begun != nil {
		report.Notices = append(report.Notices, fmt.Sprintf("a roll that began at %s is not over: a run is at work on it, or the next one goes on with it", begun.Started.UTC().Format(time.RFC3339)))
	}
	if stalled, ok := plan.End.(rollout.Stalled); ok && report.Outcome == status.Changes {
		report.Notices = append(report.Notices, fmt.Sprintf("after these steps: %s", stalled.Failure.Message))
	}
	return ClusterResult{Report: report, Plan: plan}
}

// publishDeadline leaves room for a push that gets no answer within its own limit, and for finding out what became of it.
const publishDeadline = 5 * time.Minute

// publish commits what is new in the reports, and nothing when nothing is.
func (p *Pass) publish(ctx context.Context, f fleet, reports []status.Report) error {
	target := f.repo.Status
	body := status.Commit{Path: target.Path, Stages: f.stages, Clusters: f.known, Reports: reports, Now: p.Now()}
	// What was done is told even when the process is asked to end.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), publishDeadline)
	defer cancel()
	present, err := p.Status.Read(ctx, target.Branch, target.Path)
	if err != nil {
		return fmt.Errorf("status: %w", err)
	}
	files, err := body.Files(present)
	if err != nil {
		return fmt.Errorf("status: %w", err)
	}
	if len(files) == 0 {
		return nil
	}
	err = p.Status.Commit(ctx, Commit{Branch: target.Branch, Prefix: target.Path, Message: body.Message(present, files), Change: body.Files})
	if err != nil {
		return fmt.Errorf("status: %w", err)
	}
	return nil
}
