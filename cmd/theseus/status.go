// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/theseus-gitops/theseus/reconcile/spec"
	"github.com/theseus-gitops/theseus/reconcile/status"
)

type statusFlags struct {
	fleet  fleetFlags
	output output
}

func (a *app) statusCommand() *cobra.Command {
	var f statusFlags
	c := &cobra.Command{
		Use:   "status --repo URL [flags]",
		Short: "Show what was last committed about each cluster",
		Long: `Status reads the status branch of the fleet repository. It needs no cluster and changes nothing; what it shows is
what the last run of reconcile saw.

Exit codes: 0 whatever the clusters' status is, 1 the repository or a status document can't be read, 2 usage or a
cluster without status, 130 after Ctrl-C, 143 after SIGTERM.`,
		Example: `  theseus status --repo https://git.example.com/fleet.git
  theseus status --repo ./fleet --cluster seed-eu-1 -o yaml`,
		Args: none,
		RunE: func(c *cobra.Command, _ []string) error { return a.status(c.Context(), f) },
	}
	f.fleet.bind(c)
	f.fleet.bindClusters(c)
	f.output.bind(c)
	return c
}

// clusterStatus is one cluster in the output for programs.
type clusterStatus struct {
	Cluster string `json:"cluster"`
	// Problem is why there is no status to show.
	Problem string `json:"problem,omitempty"`
	status.Status
}

func (a *app) status(ctx context.Context, f statusFlags) error {
	if err := f.output.check(); err != nil {
		return err
	}
	found, nothing, err := f.documents(ctx)
	if err != nil {
		return err
	}
	code := exitOK
	list := []clusterStatus{}
	for _, d := range found {
		one := clusterStatus{Cluster: d.Cluster, Status: status.Status{Conditions: []status.Condition{}}}
		if d.Document != nil {
			one.Status = d.Document.Status
		} else {
			one.Problem, code = "the status document can't be read: "+d.Damage+"; the next `theseus reconcile` puts that right", exitFailed
		}
		list = append(list, one)
	}
	if !f.output.text() {
		if err := f.output.write(a.std.out, map[string]any{"clusters": list}); err != nil {
			return err
		}
		return exitWith(code)
	}
	if len(list) == 0 {
		_, _ = fmt.Fprintln(a.std.out, nothing)
	}
	for _, c := range list {
		a.printStatus(c)
	}
	return exitWith(code)
}

// documents finds the status documents of the wanted clusters, sorted by name; what to say when there is none, too.
func (f statusFlags) documents(ctx context.Context) (found []status.Found, nothing string, err error) {
	repo, err := f.fleet.open(ctx, secretSource{dir: f.fleet.secrets})
	if err != nil {
		return nil, "", err
	}
	head, err := repo.Head(ctx)
	if err != nil {
		return nil, "", err
	}
	files, err := repo.Files(ctx, head)
	if err != nil {
		return nil, "", err
	}
	specs, problems := spec.Parse(files)
	branch, dir := specs.Status.Branch, specs.Status.Path
	where := fmt.Sprintf("branch %s of %s", branch, repo.URL())
	tree, err := repo.Read(ctx, branch, dir)
	if err != nil {
		return nil, "", err
	}
	folder := path.Join(dir, "clusters")
	if way := tree.NoFolders(folder); len(way) > 0 {
		return nil, "", fmt.Errorf("%s: there are no status documents, because something stands in the way of folder %s: %s; "+
			"the next `theseus reconcile` replaces it, or says why it can't", where, folder, strings.Join(way, ", "))
	}
	nothing = fmt.Sprintf("%s: no status document in folder %s yet; `theseus reconcile` commits them", where, folder)
	if tree.NoBranch {
		nothing = fmt.Sprintf("%s: there is no such branch yet; `theseus reconcile` makes it, and commits status to it", where)
	}
	known := append(problems.BrokenClusters(), f.fleet.clusters...)
	for _, c := range specs.Clusters {
		known = append(known, c.Metadata.Name)
	}
	found = status.Documents(tree, dir, func(name string) bool { return slices.Contains(known, name) })
	found, err = f.only(found, where)
	return found, nothing, err
}

// only leaves the clusters that were asked for.
func (f statusFlags) only(found []status.Found, where string) ([]status.Found, error) {
	if len(f.fleet.clusters) == 0 {
		return found, nil
	}
	for _, name := range f.fleet.clusters {
		if !slices.ContainsFunc(found, func(d status.Found) bool { return d.Cluster == name }) {
			var there []string
			for _, d := range found {
				there = append(there, d.Cluster)
			}
			return nil, usage("cluster %s: there is no status of it on %s; there are: %s", name, where, some(there))
		}
	}
	return slices.DeleteFunc(found, func(d status.Found) bool { return !slices.Contains(f.fleet.clusters, d.Cluster) }), nil
}

func (a *app) printStatus(c clusterStatus) {
	line := func(name, value string) {
		if value != "" {
			_, _ = fmt.Fprintf(a.std.out, "   %-10s %s\n", name, value)
		}
	}
	outcome := c.Outcome()
	title, word := c.Cluster, outcome.Word()
	if c.Stage != "" {
		title += " (" + c.Stage + ")"
	}
	if c.Problem != "" {
		word = "no status"
	}
	_, _ = fmt.Fprintf(a.std.out, "%s %s: %s\n", outcome.Symbol(), title, word)
	line("why", c.Problem)
	if n := len(c.Conditions); n > 0 {
		line("why", c.Conditions[0].Message)
		line("since", instant(c.Conditions[n-1].LastTransitionTime))
	}
	if outcome == status.Changes || outcome == status.Waiting {
		line("note", "committed when the change began or a run ended; by now it may be further (`theseus plan` looks at the cluster)")
	}
	if c.Live != nil && !c.Live.StaleSince.IsZero() {
		line("not seen", "since "+instant(c.Live.StaleSince)+"; the versions below are those last seen")
	}
	line("CoreDNS", c.CoreDNS())
	if c.Live != nil {
		line("Kubernetes", strings.Join(c.Live.KubeletVersions, ", "))
	}
	if c.Failure != nil {
		line("what to do", c.Failure.Remedy)
		line("runbook", c.Failure.Runbook)
	}
	for _, n := range c.Notices {
		line("notice", n)
	}
}

func instant(t time.Time) string { return t.UTC().Format(time.RFC3339) }
