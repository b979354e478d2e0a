// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/theseus-gitops/theseus/reconcile/spec"
)

// printProblems shows what validate found: each problem on its line, the fields that do nothing yet on one.
func (a *app) printProblems(o output, repo spec.Repository, problems spec.Problems) error {
	if !o.text() {
		if problems == nil {
			problems = spec.Problems{}
		}
		return o.write(a.std.out, problems)
	}
	warnings := 0
	for _, p := range problems {
		if p.Idle != "" {
			continue
		}
		if p.Severity == spec.Warning {
			warnings++
		}
		_, _ = fmt.Fprintln(a.std.out, p)
	}
	if idle := idleFields(problems); len(idle) > 0 {
		warnings++
		_, _ = fmt.Fprintf(a.std.out, "warning: not acted on yet, only checked: %s\n", strings.Join(idle, ", "))
	}
	_, err := fmt.Fprintf(a.std.out, "%s, %s, %s; %s, %s; %s ignored\n",
		count(len(repo.Clusters), "good cluster"), count(len(repo.Releases), "good release"), fleetWord(repo),
		count(len(problems.Errors()), "error"), count(warnings, "warning"), count(repo.OtherFiles, "other YAML file"))
	return err
}

// idleFields are the fields that are not acted on yet, each with the number of files that have it.
func idleFields(problems spec.Problems) []string {
	files := map[string]map[string]bool{}
	for _, p := range problems {
		if p.Idle == "" {
			continue
		}
		field := p.Kind + " " + p.Idle
		if files[field] == nil {
			files[field] = map[string]bool{}
		}
		files[field][p.File] = true
	}
	var out []string
	for _, field := range slices.Sorted(maps.Keys(files)) {
		out = append(out, fmt.Sprintf("%s (%s)", field, count(len(files[field]), "file")))
	}
	return out
}

func fleetWord(repo spec.Repository) string {
	if repo.Fleet == nil {
		return "no good fleet"
	}
	return "1 fleet with " + count(len(repo.Fleet.Spec.Stages), "stage")
}

func count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
