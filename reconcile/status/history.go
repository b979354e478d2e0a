// SPDX-License-Identifier: Apache-2.0

package status

import (
	"cmp"
	"slices"
	"strings"
	"time"
)

// mergeHistory adds the roll that just ended, once, however often the commit is tried. A roll is known by its start and revision.
func mergeHistory(before []Entry, finished *Entry) []Entry {
	all := make([]Entry, 0, len(before)+1)
	add := func(e Entry) {
		same := func(o Entry) bool { return o.Started.Equal(e.Started) && o.Revision == e.Revision }
		if !slices.ContainsFunc(all, same) {
			all = append(all, e)
		}
	}
	if finished != nil {
		add(tidyEntry(*finished))
	}
	for _, e := range before {
		add(tidyEntry(e))
	}
	if len(all) == 0 {
		return nil
	}
	slices.SortStableFunc(all, func(a, b Entry) int {
		return cmp.Or(b.Started.Compare(a.Started), cmp.Compare(a.Revision, b.Revision))
	})
	return all[:min(len(all), HistoryLimit)]
}

func tidyEntry(e Entry) Entry {
	out := Entry{
		Revision:  line(e.Revision),
		From:      tidyVersions(e.From),
		To:        tidyVersions(e.To),
		Attempted: tidyVersions(e.Attempted),
		Started:   instant(e.Started),
		Ended:     instant(e.Ended),
		Outcome:   line(e.Outcome),
	}
	for _, s := range e.Steps {
		took := time.Duration(s.Duration).Round(100 * time.Millisecond)
		out.Steps = append(out.Steps, TakenStep{Step: line(s.Step), Subject: line(s.Subject), Duration: Duration(took)})
	}
	return out
}

// whatChanged is what a roll did to versions, as a text.
func whatChanged(e Entry) string {
	return cmp.Or(strings.Join(changes(e.From, e.To), ", "), putBack(e), "no version changed")
}

// putBack is what a roll that changed no version was to change, "CoreDNS v1.14.6 → v1.14.7: put back".
func putBack(e Entry) string {
	tried := changes(e.From, e.Attempted)
	if len(tried) == 0 || len(changes(e.From, e.To)) > 0 || e.Outcome == Converged.Reason() {
		return ""
	}
	// What never came so far needed no putting back.
	if !slices.ContainsFunc(e.Steps, func(s TakenStep) bool { return strings.HasPrefix(s.Step, "restore-") }) {
		return strings.Join(tried, ", ") + ": given up"
	}
	return strings.Join(tried, ", ") + ": put back"
}

// changes are the versions that differ, as texts, "CoreDNS v1.14.2 → v1.14.6". What is not known on both sides is no change.
func changes(from, to Versions) []string {
	var out []string
	for _, c := range []struct{ what, from, to string }{
		{"Kubernetes", from.KubernetesVersion, to.KubernetesVersion},
		{"base image", from.BaseImage, to.BaseImage},
		{"CoreDNS", from.CoreDNS, to.CoreDNS},
	} {
		if c.from != "" && c.to != "" && c.from != c.to {
			out = append(out, c.what+" "+c.from+" → "+c.to)
		}
	}
	return out
}
