// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/theseus-gitops/theseus/reconcile"
	"github.com/theseus-gitops/theseus/reconcile/spec"
	"github.com/theseus-gitops/theseus/reconcile/status"
)

// planned is one cluster in the output for programs, of plan and reconcile alike.
type planned struct {
	Cluster string        `json:"cluster"`
	Outcome string        `json:"outcome"`
	Why     string        `json:"why,omitempty"`
	Until   *time.Time    `json:"until,omitempty"`
	Hash    string        `json:"hash,omitempty"`
	Notices []string      `json:"notices,omitempty"`
	Steps   []status.Step `json:"steps"`
}

// printPlan shows a plan, for people or for programs.
func (a *app) printPlan(o output, r reconcile.Result) error {
	if !o.text() {
		return o.write(a.std.out, map[string]any{"clusters": plannedClusters(r)})
	}
	a.printProblems(r)
	for i, c := range r.Clusters {
		if i > 0 {
			_, _ = fmt.Fprintln(a.std.out)
		}
		a.printHeadline(c)
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
		_, _ = fmt.Fprintf(a.std.out, "  plan %s\n", c.Plan.Hash)
	}
	return nil
}

// printPass shows how a pass ended.
func (a *app) printPass(o output, r reconcile.Result) error {
	if !o.text() {
		return o.write(a.std.out, map[string]any{"clusters": plannedClusters(r)})
	}
	a.printProblems(r)
	for _, c := range r.Clusters {
		a.printHeadline(c)
	}
	if r.PublishError != nil {
		_, _ = fmt.Fprintf(a.std.err, "theseus: %v\n", r.PublishError)
	}
	return nil
}

// printProblems names what is wrong with the specs; one broken spec must not go unseen among good clusters.
func (a *app) printProblems(r reconcile.Result) {
	for _, p := range r.Problems {
		if p.Severity == spec.Error {
			_, _ = fmt.Fprintln(a.std.err, p)
		}
	}
}

func (a *app) printHeadline(c reconcile.ClusterResult) {
	r := c.Report
	title := r.Cluster
	if r.Stage != "" {
		title += " (" + r.Stage + ")"
	}
	state := r.Outcome.Word()
	if n := len(c.Plan.Steps); n > 0 {
		state = count(n, "step") + " to do"
	}
	why := r.Why
	if r.Outcome == status.Changes && len(c.Plan.Steps) > 0 {
		why = "" // every step says its own
	}
	_, _ = fmt.Fprintf(a.std.out, "%s %s: %s\n", r.Outcome.Symbol(), title, strings.TrimSuffix(state+": "+why, ": "))
	if r.Failure != nil && r.Failure.Remedy != "" {
		_, _ = fmt.Fprintf(a.std.out, "   what to do: %s\n", r.Failure.Remedy)
	}
	for _, n := range r.Notices {
		_, _ = fmt.Fprintf(a.std.out, "   notice: %s\n", n)
	}
}

func plannedClusters(r reconcile.Result) []planned {
	out := []planned{}
	for _, c := range r.Clusters {
		p := planned{
			Cluster: c.Report.Cluster, Outcome: c.Report.Outcome.String(), Why: c.Report.Why, Hash: c.Plan.Hash,
			Notices: c.Report.Notices, Steps: []status.Step{},
		}
		if !c.Report.Until.IsZero() {
			until := c.Report.Until.UTC()
			p.Until = &until
		}
		for _, s := range c.Plan.Steps {
			p.Steps = append(p.Steps, status.StepOf(s))
		}
		out = append(out, p)
	}
	return out
}
