// SPDX-License-Identifier: Apache-2.0

package status

import (
	"cmp"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
)

// subjectLimit is what forges and `git log --oneline` show of a commit message.
const subjectLimit = 72

// Message is the whole message of the commit of these files, which Files made of what is on the branch.
func (c Commit) Message(present Tree, files map[string][]byte) string {
	about := c.Changed(files)
	parts := []string{Subject(about)}
	switch gone := c.removed(files); {
	case len(gone) > 0 && len(about) == 0:
		parts[0] = cut(defuse("Remove the status of "+strings.Join(gone, ", ")+": no spec any more"), subjectLimit)
	case len(gone) > 0:
		parts = append(parts, "Removed, because no spec is there any more:\n- "+strings.Join(gone, "\n- "))
	}
	if gone := replaced(present, files); len(gone) > 0 {
		parts = append(parts, "Replaced what was in the way:\n- "+strings.Join(gone, "\n- "))
	}
	if trailers := Trailers(about); trailers != "" {
		parts = append(parts, trailers)
	}
	return strings.Join(parts, "\n\n")
}

// removed are the clusters whose documents go, as they are named in file names.
func (c Commit) removed(files map[string][]byte) []string {
	var out []string
	for _, file := range slices.Sorted(maps.Keys(files)) {
		if name, ok := strings.CutSuffix(path.Base(file), ".yaml"); ok && files[file] == nil {
			out = append(out, name)
		}
	}
	return out
}

// replaced is what the files take the place of.
func replaced(present Tree, files map[string][]byte) []string {
	var out []string
	for _, file := range slices.Sorted(maps.Keys(files)) {
		if files[file] != nil {
			out = append(out, present.inTheWay(file)...)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// Subject is the first line of a commit message, or a line for a terminal, about the given reports: at most 72 characters.
// Give it Commit.Changed, so that it speaks of what changed.
func Subject(reports []Report) string {
	switch len(reports) {
	case 0:
		return "Update the fleet's status page"
	case 1:
		return cut(defuse(line(reports[0].Cluster)+": "+happened(reports[0])), subjectLimit)
	}
	counts := map[Outcome]int{}
	for _, r := range reports {
		counts[r.Outcome]++
	}
	var parts []string
	for _, o := range []Outcome{Stalled, Invalid, Unreachable, Transient, Converged, Changes, Waiting, Locked, Unknown} {
		if counts[o] > 0 {
			parts = append(parts, fmt.Sprint(counts[o], " ", o.Word()))
		}
	}
	for n := len(parts); ; n-- {
		subject := fmt.Sprintf("%d clusters: %s", len(reports), strings.Join(parts[:n], ", "))
		if n < len(parts) {
			subject += ", …"
		}
		if n == 1 || len([]rune(subject)) <= subjectLimit {
			return subject
		}
	}
}

// Trailers are the last lines of a commit message, three for each report, by cluster.
func Trailers(reports []Report) string {
	sorted := slices.SortedStableFunc(slices.Values(reports), func(a, b Report) int { return cmp.Compare(a.Cluster, b.Cluster) })
	var b strings.Builder
	for _, r := range sorted {
		fmt.Fprintf(&b, "Theseus-Cluster: %s\nTheseus-Outcome: %s\n", line(r.Cluster), r.Outcome)
		if rev := line(r.Revision); rev != "" {
			b.WriteString("Theseus-Revision: " + rev + "\n")
		}
	}
	return b.String()
}

// happened is what a report says, in a few words, the most telling first.
func happened(r Report) string {
	what := strings.Join(versionsChanged(r), ", ")
	switch r.Outcome {
	case Converged:
		if what == "" {
			return r.Outcome.Word()
		}
		return what + " converged"
	case Changes:
		if p := r.Plan; p != nil && what == "" && p.Current != nil {
			what = line(stepOf(*p) + ": " + p.Current.Step + " " + p.Current.Subject)
		} else if p != nil {
			what = strings.TrimPrefix(what+", "+stepOf(*p), ", ")
		}
		return cmp.Or(what, line(r.Why), r.Outcome.Word())
	case Stalled:
		return stalledBy(r)
	case Waiting, Invalid, Unreachable, Transient:
		return strings.TrimSuffix(r.Outcome.Word()+": "+line(r.Why), ": ")
	case Locked, Unknown:
	}
	return r.Outcome.Word()
}

// stalledBy is what a cluster stalled by: the versions that were put back, when there are such, else the failure.
func stalledBy(r Report) string {
	what := line(r.Why)
	if r.Failure != nil {
		what = line(r.Failure.Reason + ": " + r.Failure.Message)
		if r.Finished != nil {
			if tried := putBack(tidyEntry(*r.Finished)); tried != "" {
				return tried + " (" + line(r.Failure.Reason) + ")"
			}
		}
	}
	return r.Outcome.Word() + ": " + cmp.Or(what, "needs a person")
}

func versionsChanged(r Report) []string {
	if r.Finished != nil {
		e := tidyEntry(*r.Finished)
		return changes(e.From, e.To)
	}
	if r.Live == nil {
		return nil
	}
	l := liveOf(*r.Live, nil)
	return changes(Versions{KubernetesVersion: l.KubernetesVersion, CoreDNS: cmp.Or(l.CoreDNSBefore, l.CoreDNS)}, tidyVersions(Versions(r.Want)))
}
