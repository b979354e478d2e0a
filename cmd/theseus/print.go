// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"fmt"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/theseus-gitops/theseus/reconcile"
	"github.com/theseus-gitops/theseus/reconcile/spec"
	"github.com/theseus-gitops/theseus/reconcile/status"
)

// origin is where specs were read.
type origin struct{ repo, path, branch, commit string }

// String names the commit as people do.
func (o origin) String() string { return o.branch + "@" + short(o.commit) }

// short is enough of a hash to tell it from others.
func short(hash string) string { return hash[:min(12, len(hash))] }

// passOutput is the output for programs, of plan and reconcile alike.
type passOutput struct {
	Branch   string        `json:"branch"`
	Commit   string        `json:"commit"`
	Clusters []planned     `json:"clusters"`
	Problems spec.Problems `json:"problems,omitempty"`
}

// planned is one cluster in the output for programs.
type planned struct {
	Cluster string        `json:"cluster"`
	Outcome string        `json:"outcome"`
	Why     string        `json:"why,omitempty"`
	Until   *time.Time    `json:"until,omitempty"`
	Hash    string        `json:"hash,omitempty"`
	Notices []string      `json:"notices,omitempty"`
	Steps   []status.Step `json:"steps"`
	// Taken is what this pass did: only reconcile does something.
	Taken []status.TakenStep `json:"taken,omitempty"`
}

// printPlan shows a plan, for people or for programs.
func (a *app) printPlan(o output, from origin, r reconcile.Result) error {
	if !o.text() {
		return o.write(a.std.out, passOutputOf(from, r))
	}
	a.printRead(from, r)
	for i, c := range r.Clusters {
		if i > 0 {
			_, _ = fmt.Fprintln(a.std.out)
		}
		a.printHeadline(c, r.Problems)
		if len(c.Plan.Steps) == 0 {
			continue
		}
		table := tabwriter.NewWriter(a.std.out, 0, 0, 2, ' ', 0)
		for n, s := range c.Plan.Steps {
			_, _ = fmt.Fprintf(table, "  %2d\t%s\t%s\t%s\n", n+1, s.Name(), s.Subject, s.Why)
		}
		if err := table.Flush(); err != nil {
			return err
		}
		_, _ = fmt.Fprintf(a.std.out, "  plan %s (the same spec and the same steps have the same hash)\n", short(c.Plan.Hash))
	}
	return nil
}

// printPass shows how a pass ended.
func (a *app) printPass(o output, from origin, r reconcile.Result) error {
	if r.PublishError != nil {
		_, _ = fmt.Fprintf(a.std.err, "theseus: %v\n", r.PublishError)
	}
	if !o.text() {
		return o.write(a.std.out, passOutputOf(from, r))
	}
	a.printRead(from, r)
	for _, c := range r.Clusters {
		a.printHeadline(c, r.Problems)
	}
	return nil
}

// printRead says what was read, what is wrong with it, and that there is no cluster in it when that is so: one broken or
// misspelt spec must not go unseen among good clusters.
func (a *app) printRead(from origin, r reconcile.Result) {
	for _, p := range toTell(r.Problems) {
		_, _ = fmt.Fprintln(a.std.err, p)
	}
	_, _ = fmt.Fprintf(a.std.out, "specs: branch %s, commit %s of %s\n", from.branch, short(from.commit), from.repo)
	if len(r.Clusters) > 0 {
		return
	}
	others := ""
	if r.OtherFiles > 0 {
		others = fmt.Sprintf("; %s there: ignored", count(r.OtherFiles, "other YAML file"))
	}
	_, _ = fmt.Fprintf(a.std.out, "0 clusters: no Cluster document below %s on %s%s\n", cmp.Or(from.path, "the repository's root"), from, others)
}

// toTell are the problems that keep a document from being acted on.
func toTell(problems spec.Problems) spec.Problems {
	var out spec.Problems
	for _, p := range problems {
		if p.Severity == spec.Error || p.Ignored {
			out = append(out, p)
		}
	}
	return out
}

func (a *app) printHeadline(c reconcile.ClusterResult, problems spec.Problems) {
	r := c.Report
	title := r.Cluster
	if r.Stage != "" {
		title += " (" + r.Stage + ")"
	}
	state := r.Outcome.Word()
	if n := len(c.Plan.Steps); n > 0 {
		state = count(n, "step") + " to do"
	}
	_, _ = fmt.Fprintf(a.std.out, "%s %s: %s\n", r.Outcome.Symbol(), title, strings.TrimSuffix(state+": "+why(c, problems), ": "))
	if r.Failure != nil && r.Failure.Remedy != "" {
		_, _ = fmt.Fprintf(a.std.out, "   what to do: %s\n", r.Failure.Remedy)
	}
	for _, n := range r.Notices {
		_, _ = fmt.Fprintf(a.std.out, "   notice: %s\n", n)
	}
}

// why is the sentence of a headline, as far as nothing else on the screen says it: each step has its own why, and each
// problem of a spec its own line.
func why(c reconcile.ClusterResult, problems spec.Problems) string {
	r := c.Report
	switch {
	case r.Outcome == status.Changes && len(c.Plan.Steps) > 0:
		return ""
	case r.Outcome != status.Invalid:
		return r.Why
	}
	if own := len(problems.ForCluster(r.Cluster).Errors()); own > 0 {
		return count(own, "error") + ", named above"
	}
	if fleet := len(problems.ForFleet().Errors()); fleet > 0 {
		return count(fleet, "error") + " of the fleet, named above"
	}
	return r.Why
}

func passOutputOf(from origin, r reconcile.Result) passOutput {
	out := passOutput{Branch: from.branch, Commit: from.commit, Clusters: []planned{}, Problems: toTell(r.Problems)}
	for _, c := range r.Clusters {
		p := planned{
			Cluster: c.Report.Cluster, Outcome: c.Report.Outcome.String(), Why: c.Report.Why, Hash: c.Plan.Hash,
			Notices: c.Report.Notices, Steps: []status.Step{}, Taken: c.Report.Taken,
		}
		if !c.Report.Until.IsZero() {
			until := c.Report.Until.UTC()
			p.Until = &until
		}
		for _, s := range c.Plan.Steps {
			p.Steps = append(p.Steps, status.StepOf(s))
		}
		out.Clusters = append(out.Clusters, p)
	}
	return out
}

// warn tells what works, but not as the user may think.
func (a *app) warn(format string, args ...any) {
	_, _ = fmt.Fprintf(a.std.err, "theseus: warning: "+format+"\n", args...)
}
