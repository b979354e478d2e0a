// SPDX-License-Identifier: Apache-2.0

package status

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

const (
	pageTextLimit = 600 // characters of a message that needs a person
	cellLimit     = 90  // characters of a message in a table
	pageNotices   = 30
	pageHistory   = 10
	// A page must stay below what is committed at most (1 MiB), however large the fleet and its trouble are.
	pageAttention = 100
	pageRows      = 2000
	pageMissing   = 200
)

// row is a cluster on the page.
type row struct {
	name    string
	link    string
	outcome Outcome
	status  Status
}

// page is the human page of all documents. It says no time that moves by itself.
func (c Commit) page(docs map[string]Found) string {
	var rows []row
	missing := map[string]string{}
	for _, name := range c.Clusters {
		missing[name] = ""
	}
	for name, f := range docs {
		delete(missing, name)
		if f.Document == nil {
			missing[name] = f.Damage
			continue
		}
		target := "clusters/" + escapeName(escapeName(name)) + ".yaml"
		rows = append(rows, row{name: name, link: link(name, target), outcome: f.Document.Outcome(), status: f.Document.Status})
	}
	slices.SortFunc(rows, func(a, b row) int { return strings.Compare(a.name, b.name) })
	sections := []string{
		"# Fleet status\n",
		headline(rows, len(missing)),
		attention(rows),
	}
	stages := c.stages(rows)
	for _, stage := range stages {
		sections = append(sections, stageTable(stage, rows, pageRows/len(stages)))
	}
	sections = append(sections,
		unreported(missing),
		noticeList(rows),
		recent(rows),
		"---\n\n*Written by Theseus. Edits are overwritten. Times are UTC.*\n",
	)
	sections = slices.DeleteFunc(sections, func(s string) bool { return s == "" })
	return strings.Join(sections, "\n")
}

// stages are the stages that have clusters: the fleet's in its order, then others by name, then "" for none.
func (c Commit) stages(rows []row) []string {
	used := map[string]bool{}
	for _, r := range rows {
		used[r.status.Stage] = true
	}
	var out []string
	for _, s := range slices.Concat(c.Stages, slices.Sorted(maps.Keys(used)), []string{""}) {
		if used[s] && (s != "" || len(used) == 1) {
			out = append(out, s)
			delete(used, s)
		}
	}
	return out
}

func headline(rows []row, missing int) string {
	counts := map[Outcome]int{Unknown: missing}
	for _, r := range rows {
		counts[r.outcome]++
	}
	total := len(rows) + missing
	var rest []string
	for _, o := range []Outcome{Stalled, Invalid, Unreachable, Transient, Changes, Waiting, Locked, Unknown} {
		switch n := counts[o]; {
		case n == 1 && total == 1:
			return "**The cluster " + o.texts().one + ".**\n"
		case n == 1:
			rest = append(rest, "1 "+o.texts().one)
		case n > 1:
			rest = append(rest, fmt.Sprint(n, " ", o.texts().many))
		}
	}
	verb := "are"
	if counts[Converged] == 1 {
		verb = "is"
	}
	good := fmt.Sprintf("%d of %d clusters %s as wanted", counts[Converged], total, verb)
	switch {
	case total == 0:
		return "**There are no clusters yet.**\n"
	case total == 1:
		return "**The cluster is as wanted.**\n"
	case len(rest) == 0:
		return fmt.Sprintf("**All %d clusters are as wanted.**\n", total)
	case counts[Converged] == 0:
		good = fmt.Sprintf("None of %d clusters is as wanted", total)
	}
	return "**" + good + "; " + strings.Join(rest, ", ") + ".**\n"
}

// attention is what needs a person, the worst first.
func attention(rows []row) string {
	var b strings.Builder
	n := 0
	for _, o := range []Outcome{Stalled, Invalid, Unreachable} {
		for _, r := range rows {
			if r.outcome != o {
				continue
			}
			if n++; n <= pageAttention {
				b.WriteString("\n" + needsPerson(r))
			}
		}
	}
	if n == 0 {
		return ""
	}
	if n > pageAttention {
		fmt.Fprintf(&b, "\nAnd %d more, in the tables below and in the clusters' files.\n", n-pageAttention)
	}
	return "## Needs a person\n" + b.String()
}

func needsPerson(r row) string {
	ready := r.status.condition(Ready)
	f := Failure{Message: ready.Message}
	if r.status.Failure != nil {
		f = *r.status.Failure
	}
	var b strings.Builder
	fmt.Fprintf(&b, "### %s %s: %s\n\n", r.outcome.Symbol(), r.link, inline(ready.Reason))
	b.WriteString(quote(cut(f.Message, pageTextLimit)))
	if f.Remedy != "" {
		b.WriteString("\n**What to do:** " + inline(cut(f.Remedy, pageTextLimit)) + "\n")
	}
	if f.Runbook != "" {
		b.WriteString("\n**Runbook:** " + inline(f.Runbook) + "\n")
	}
	if l := r.status.Live; l != nil && !l.StaleSince.IsZero() {
		b.WriteString("\nNot observed since " + minute(l.StaleSince) + "; its versions below are those last seen.\n")
	}
	return b.String()
}

func unreported(missing map[string]string) string {
	if len(missing) == 0 {
		return ""
	}
	var b strings.Builder
	b.WriteString("## No report yet\n\n")
	for i, name := range slices.Sorted(maps.Keys(missing)) {
		if i == pageMissing {
			fmt.Fprintf(&b, "- and %d more\n", len(missing)-i)
			break
		}
		if damage := missing[name]; damage != "" {
			fmt.Fprintf(&b, "- %s: its status file is damaged and will be written anew (%s)\n", inline(name), inline(cut(damage, cellLimit)))
		} else {
			b.WriteString("- " + inline(name) + "\n")
		}
	}
	return b.String()
}

func noticeList(rows []row) string {
	var all []string
	for _, r := range rows {
		for _, n := range r.status.Notices {
			all = append(all, "- "+r.link+": "+inline(cut(n, pageTextLimit))+"\n")
		}
	}
	if len(all) == 0 {
		return ""
	}
	if more := len(all) - pageNotices; more > 0 {
		all = append(all[:pageNotices], fmt.Sprintf("- and %d more, in the clusters' files\n", more))
	}
	return "## Worth knowing\n\n" + strings.Join(all, "")
}

func minute(t time.Time) string { return t.UTC().Format("2006-01-02 15:04") }
