// SPDX-License-Identifier: Apache-2.0

package corefile

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// walk goes from version to version and does what the notices of each ask for.
func (a *assessor) walk() Assessment {
	now := revision{text: a.request.Corefile, blocks: a.blocks}
	var needs []string
	steps := a.hop.steps()
	for _, step := range steps {
		next, notices, err := a.step(step, now)
		a.notices = append(a.notices, notices...)
		need := asked(notices)
		if err != nil {
			return a.refused(fmt.Sprintf("CoreDNS %s: the Corefile can't be migrated: %v; change it by hand for that version (%s), "+
				"or set coreDNS.skipCorefileMigration", bare(step.to), err, cmp.Or(need, "see its release notes")))
		}
		if need != "" {
			needs = append(needs, need)
		}
		now = next
	}
	unknown, err := steps[len(steps)-1].unsupported(now.text)
	if err != nil {
		a.warn("the migration library can't tell what it does not know: %v", err)
	}
	a.notices = append(a.notices, unknown...)
	if now.text == a.request.Corefile {
		return a.finish(a.unchanged(fmt.Sprintf("the Corefile has all that CoreDNS %s needs, and nothing that was removed since %s", bare(a.hop.to), bare(a.hop.from))))
	}
	if hasComments(a.request.Corefile) {
		a.warn("the migrated Corefile has no comments and no spacing of its own: the migration library does not keep them")
	}
	judged := a.unchanged(fmt.Sprintf("CoreDNS %s needs it: %s", bare(a.hop.to), strings.Join(needs, " ")))
	judged.Outcome, judged.Corefile = Migrated, now.text
	return a.finish(judged)
}

// revision is a Corefile on the way.
type revision struct {
	text   string
	blocks []block
}

// step brings a Corefile to the next version: it stays as it is unless a notice asks for a change. The notices that are
// returned are those that hold for this Corefile, or all of them with an error.
func (a *assessor) step(step hop, now revision) (revision, []Notice, error) {
	notices, err := step.notices(now.text)
	if err != nil || !slices.ContainsFunc(notices, asksForChange) {
		return now, notices, err
	}
	out, err := step.migrate(now.text)
	if err != nil {
		return now, notices, err
	}
	blocks, err := parse(out)
	if err != nil {
		return now, notices, fmt.Errorf("the result does not load: %w", err)
	}
	v := verifier{hop: step, notices: notices, before: newSource(now.blocks, a.request.OtherKeys), after: newSource(blocks, a.request.OtherKeys)}
	told, err := v.verify(now.blocks, blocks)
	if err != nil {
		return now, notices, err
	}
	if slices.EqualFunc(now.blocks, blocks, block.equal) {
		return now, told, nil
	}
	if same, err := stable(out); err != nil || !same {
		return now, notices, errors.Join(errors.New("the result changes when it is read again"), err)
	}
	return revision{text: out, blocks: blocks}, told, nil
}

func asksForChange(n Notice) bool {
	return n.Severity == SeverityRemoved || n.Severity == SeverityNewDefault
}

// asked joins the notices that ask for a change.
func asked(notices []Notice) string {
	var list []string
	for _, n := range notices {
		if asksForChange(n) {
			list = append(list, n.Message)
		}
	}
	return strings.Join(list, " ")
}
