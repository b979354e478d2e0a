// SPDX-License-Identifier: Apache-2.0

package reconcile

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/theseus-gitops/theseus/reconcile/logbook"
	"github.com/theseus-gitops/theseus/reconcile/rollout"
	"github.com/theseus-gitops/theseus/reconcile/spec"
	"github.com/theseus-gitops/theseus/reconcile/status"
)

// resolve fills clusters, stages and known.
func (f *fleet) resolve() {
	if f.repo.Fleet != nil {
		for _, s := range f.repo.Fleet.Spec.Stages {
			f.stages = append(f.stages, s.Name)
		}
	}
	for _, name := range f.problems.BrokenClusters() {
		f.add(broken(name, f.problems.ForCluster(name)))
	}
	for _, c := range f.repo.Clusters {
		if f.repo.Fleet == nil {
			f.add(broken(c.Metadata.Name, f.problems.ForFleet()))
			continue
		}
		effective, err := f.repo.Effective(c)
		if err != nil {
			m := broken(c.Metadata.Name, nil)
			m.report.Why = err.Error()
			f.add(m)
			continue
		}
		f.add(member{spec: effective, report: status.Report{
			Cluster: effective.Name, Stage: effective.Stage, Labels: effective.Labels, Revision: effective.Revision,
			Want: wantedVersions(effective.Spec),
		}})
	}
	slices.SortFunc(f.clusters, func(a, b member) int { return cmpName(a, b) })
	// Without a fleet this may be the wrong folder, where a cluster that is not found is not gone.
	if f.unnamed() || f.repo.Fleet == nil && len(f.clusters) == 0 {
		return
	}
	f.known = []string{}
	for _, m := range f.clusters {
		f.known = append(f.known, m.report.Cluster)
	}
}

func (f *fleet) add(m member) {
	same := func(o member) bool { return o.report.Cluster == m.report.Cluster }
	if !slices.ContainsFunc(f.clusters, same) {
		f.clusters = append(f.clusters, m)
	}
}

// wantedVersions are those that this version acts on, so that a cluster which is as wanted never shows a difference.
func wantedVersions(s spec.ClusterSpec) logbook.Versions {
	out := logbook.Versions{CoreDNS: s.CoreDNS.ImageTag}
	if s.RollsMachines() {
		out.KubernetesVersion, out.BaseImage = string(s.KubernetesVersion), s.BaseImage
	}
	return out
}

func cmpName(a, b member) int { return cmp.Compare(a.report.Cluster, b.report.Cluster) }

// broken is a cluster whose spec can't be used.
func broken(name string, problems spec.Problems) member {
	var lines []string
	for _, p := range problems {
		if p.Severity == spec.Error {
			lines = append(lines, p.String())
		}
	}
	if len(lines) == 0 {
		lines = []string{"fleet.yaml is missing or has errors, so no cluster can be worked on"}
	}
	return member{broken: true, report: status.Report{
		Cluster: name, Outcome: status.Invalid, Why: strings.Join(lines, "; "),
		Failure: &rollout.Failure{
			Reason: status.Invalid.Reason(), Message: strings.Join(lines, "; "),
			Remedy: "correct the spec; `theseus validate` shows every problem before you commit",
		},
	}}
}

// unnamed reports whether some document could not be read far enough to know whose it is: then no status
// document may be removed as that of a cluster which is gone.
func (f *fleet) unnamed() bool {
	return slices.ContainsFunc(f.problems, func(p spec.Problem) bool {
		return p.Severity == spec.Error && p.Cluster == "" && p.Kind != spec.KindFleet && p.Kind != spec.KindRelease
	})
}

// keepOnly leaves the named clusters, and the problems that concern them.
func (f *fleet) keepOnly(names []string) error {
	if len(names) == 0 {
		return nil
	}
	for _, name := range names {
		if !slices.ContainsFunc(f.clusters, func(m member) bool { return m.report.Cluster == name }) {
			return fmt.Errorf("cluster %s: %w; there are: %s", name, ErrUnknownCluster, cmp.Or(strings.Join(f.names(), ", "), "none"))
		}
	}
	f.clusters = slices.DeleteFunc(f.clusters, func(m member) bool { return !slices.Contains(names, m.report.Cluster) })
	f.problems = slices.DeleteFunc(f.problems, func(p spec.Problem) bool { return p.Cluster != "" && !slices.Contains(names, p.Cluster) })
	return nil
}

func (f *fleet) names() []string {
	var names []string
	for _, m := range f.clusters {
		names = append(names, m.report.Cluster)
	}
	return names
}
