// SPDX-License-Identifier: Apache-2.0

package status

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
)

// stageTable has one line for each cluster of a stage, at most so many; those that are as wanted are left out first.
func stageTable(stage string, rows []row, most int) string {
	title := "Stage " + inline(stage)
	if stage == "" {
		title = "Clusters"
	}
	var b strings.Builder
	b.WriteString("## " + title + "\n\n")
	b.WriteString(tableLine("Cluster", "State", "Kubernetes", "CoreDNS", "Since"))
	b.WriteString(tableLine("---", "---", "---", "---", "---"))
	shown, leftOut := ofStage(stage, rows, most)
	for _, r := range shown {
		var l Live
		if r.status.Live != nil {
			l = *r.status.Live
		}
		b.WriteString(tableLine(r.link, r.outcome.Symbol()+" "+state(r),
			versionCell(nowAndWanted(l.KubernetesVersion, r.status.Want.KubernetesVersion)),
			versionCell(r.status.CoreDNS()), since(r)))
	}
	if leftOut > 0 {
		fmt.Fprintf(&b, "\nAnd %d more, in the folder `clusters`.\n", leftOut)
	}
	return b.String()
}

// ofStage are the rows of a stage that are shown, in their order, and how many are not.
func ofStage(stage string, rows []row, most int) (shown []row, leftOut int) {
	var all []row
	good := 0
	for _, r := range rows {
		if r.status.Stage == stage {
			all = append(all, r)
			if r.outcome == Converged {
				good++
			}
		}
	}
	leftOut = max(0, len(all)-most)
	drop := min(good, leftOut)
	for _, r := range all {
		if r.outcome == Converged && drop > 0 {
			drop--
			continue
		}
		shown = append(shown, r)
	}
	return shown[:min(len(shown), most)], leftOut
}

// state is a plain word and, where it helps, how far or what for.
func state(r row) string {
	word := r.outcome.Word()
	switch r.outcome {
	case Changes:
		if r.status.Plan != nil {
			return word + ", " + stepOf(*r.status.Plan)
		}
	case Waiting, Transient:
		return word + ": " + inline(cut(line(r.status.condition(Ready).Message), cellLimit))
	case Unknown, Converged, Stalled, Invalid, Unreachable, Locked:
	}
	return word
}

// since is when the cluster came into its state.
func since(r row) string {
	kind := Reconciling
	switch r.outcome {
	case Converged, Unknown:
		kind = Ready
	case Stalled, Invalid:
		kind = StalledType
	case Changes, Waiting, Unreachable, Locked, Transient:
	}
	c := r.status.condition(kind)
	if c.Type == "" {
		c = r.status.condition(Ready)
	}
	if c.LastTransitionTime.IsZero() {
		return "–"
	}
	return minute(c.LastTransitionTime)
}

func versionCell(text string) string { return cmp.Or(inline(text), "–") }

// CoreDNS is which CoreDNS runs and which is wanted, for people: "v1.14.2 → v1.14.6", or one of them when they are the
// same. Of a version that is not verified yet it says so.
func (s Status) CoreDNS() string {
	var l Live
	if s.Live != nil {
		l = *s.Live
	}
	if l.CoreDNSBefore == "" {
		return nowAndWanted(l.CoreDNS, s.Want.CoreDNS)
	}
	text := nowAndWanted(l.CoreDNSBefore, l.CoreDNS) + " (not verified yet)"
	if s.Want.CoreDNS != "" && s.Want.CoreDNS != l.CoreDNS {
		text += ", wanted " + s.Want.CoreDNS
	}
	return text
}

func nowAndWanted(now, want string) string {
	switch {
	case want == "" || now == want:
		return now
	case now == "":
		return "→ " + want
	}
	return now + " → " + want
}

// recent are the newest rolls of the fleet.
func recent(rows []row) string {
	type ended struct {
		row
		Entry
	}
	var all []ended
	for _, r := range rows {
		for _, e := range r.status.History {
			all = append(all, ended{r, e})
		}
	}
	if len(all) == 0 {
		return ""
	}
	slices.SortStableFunc(all, func(a, b ended) int {
		return cmp.Or(b.Ended.Compare(a.Ended), strings.Compare(a.name, b.name))
	})
	var b strings.Builder
	b.WriteString("## Recent changes\n\n")
	b.WriteString(tableLine("Ended", "Cluster", "Outcome", "Change", "Took"))
	b.WriteString(tableLine("---", "---", "---", "---", "---"))
	for _, e := range all[:min(len(all), pageHistory)] {
		took := "–"
		if d := e.Ended.Sub(e.Started); !e.Started.IsZero() && d >= 0 {
			took = d.Round(time.Second).String()
		}
		outcome := outcomeOfReason(e.Outcome)
		b.WriteString(tableLine(minute(e.Ended), e.link, outcome.Symbol()+" "+inline(e.Outcome), inline(whatChanged(e.Entry)), took))
	}
	return b.String()
}

func tableLine(cells ...string) string { return "| " + strings.Join(cells, " | ") + " |\n" }
