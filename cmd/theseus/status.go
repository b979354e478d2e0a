// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"maps"
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
		Args: arguments(cobra.NoArgs),
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
	status.Status
}

func (a *app) status(ctx context.Context, f statusFlags) error {
	if err := f.output.check(); err != nil {
		return err
	}
	documents, branch, err := f.documents(ctx)
	if err != nil {
		return err
	}
	if !f.output.text() {
		list := []clusterStatus{}
		for _, d := range documents {
			list = append(list, clusterStatus{Cluster: d.Metadata.Name, Status: d.Status})
		}
		return f.output.write(a.std.out, map[string]any{"clusters": list})
	}
	if len(documents) == 0 {
		_, err := fmt.Fprintf(a.std.out, "no cluster has a status on branch %s; `theseus reconcile` commits it\n", branch)
		return err
	}
	for _, d := range documents {
		a.printStatus(d)
	}
	return nil
}

// documents reads the status documents of the wanted clusters, sorted by name, and names the branch.
func (f statusFlags) documents(ctx context.Context) ([]status.Document, string, error) {
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
	specs, _ := spec.Parse(files)
	target := specs.Status
	present, err := repo.Read(ctx, target.Branch, target.Path)
	if err != nil {
		return nil, target.Branch, err
	}
	var all []status.Document
	for _, file := range slices.Sorted(maps.Keys(present)) {
		if path.Dir(file) != path.Join(target.Path, "clusters") || path.Ext(file) != ".yaml" {
			continue
		}
		d, err := status.Parse(present[file])
		if err != nil {
			return nil, target.Branch, fmt.Errorf("%s on branch %s: %w (the next reconcile writes it anew)", file, target.Branch, err)
		}
		all = append(all, *d)
	}
	documents, err := only(f.fleet.clusters, all)
	return documents, target.Branch, err
}

// only leaves the documents of the named clusters, all when none is named.
func only(names []string, all []status.Document) ([]status.Document, error) {
	var there []string
	for _, d := range all {
		there = append(there, d.Metadata.Name)
	}
	for _, name := range names {
		if !slices.Contains(there, name) {
			return nil, usage("cluster %s: there is no status of it; there are: %s", name, some(there))
		}
	}
	return slices.DeleteFunc(all, func(d status.Document) bool {
		return len(names) > 0 && !slices.Contains(names, d.Metadata.Name)
	}), nil
}

func (a *app) printStatus(d status.Document) {
	s := d.Status
	title := d.Metadata.Name
	if s.Stage != "" {
		title += " (" + s.Stage + ")"
	}
	_, _ = fmt.Fprintf(a.std.out, "%s %s: %s\n", d.Outcome().Symbol(), title, d.Outcome().Word())
	line := func(name, value string) {
		if value != "" {
			_, _ = fmt.Fprintf(a.std.out, "   %-10s %s\n", name, value)
		}
	}
	if len(s.Conditions) > 0 {
		line("why", s.Conditions[0].Message)
		line("since", s.Conditions[0].LastTransitionTime.UTC().Format(time.RFC3339))
	}
	if s.Live != nil {
		line("CoreDNS", arrow(s.Live.CoreDNS, s.Want.CoreDNS))
		line("Kubernetes", strings.Join(s.Live.KubeletVersions, ", "))
	}
	if s.Failure != nil {
		line("remedy", s.Failure.Remedy)
		line("runbook", s.Failure.Runbook)
	}
	for _, n := range s.Notices {
		line("notice", n)
	}
}

// arrow shows what is and what is wanted, once when they are the same.
func arrow(is, wanted string) string {
	if wanted == "" || is == wanted {
		return is
	}
	return is + " → " + wanted
}
