// SPDX-License-Identifier: Apache-2.0

package corefile

import (
	"fmt"
)

// checkImports judges imported keys, which are never migrated. It returns a reason to refuse, or nothing.
func (a *assessor) checkImports() string {
	seen := map[string]bool{}
	open := a.source.files(a.blocks)
	for len(open) > 0 {
		i := open[0]
		open = open[1:]
		a.notices = append(a.notices, i.warning())
		for _, key := range i.keys {
			// One key may be imported in several places, and means something else in each.
			place := fmt.Sprint(key, i.place, i.plugin)
			if seen[place] {
				continue
			}
			seen[place] = true
			blocks, reason := a.checkKey(i, key)
			if reason != "" {
				return reason
			}
			for _, inner := range a.source.files(blocks) {
				inner.where = "ConfigMap key " + key + ", "
				open = append(open, inner)
			}
		}
	}
	return ""
}

// checkKey judges the text of one imported key, and returns its blocks or a reason to refuse.
func (a *assessor) checkKey(i importLine, key string) ([]block, string) {
	where := fmt.Sprintf("ConfigMap key %s (imported in %sline %d)", key, i.where, i.line)
	text := i.wrap(a.request.OtherKeys[key])
	blocks, err := parse(text)
	if err != nil {
		return nil, fmt.Sprintf("%s: %v: CoreDNS could not load it; correct it first", where, err)
	}
	if reason := a.goneDirective(blocks, func(d directive) string { return fmt.Sprintf("%s, line %d", where, d.line) }); reason != "" {
		return nil, reason
	}
	if a.hop.from.Compare(settled) >= 0 {
		return blocks, ""
	}
	alike, err := readsAlike(text, blocks)
	if err != nil || !alike {
		return nil, where + ": the migration library can't read it as CoreDNS does; write one plugin or option a line, or set coreDNS.skipCorefileMigration"
	}
	notices, err := a.hop.notices(text)
	if err != nil {
		return nil, fmt.Sprintf("%s: %v", where, err)
	}
	for _, n := range notices {
		if a.asksKey(i, text, n) {
			return nil, fmt.Sprintf("%s: %s Imported text is not migrated: make the change there by hand first, or set coreDNS.skipCorefileMigration", where, n.Message)
		}
	}
	return blocks, ""
}

// asksKey says whether a notice asks for a change of an imported text. A plugin that is newly a default is asked for only
// where whole server blocks are imported; everywhere else the block around the import gets it.
func (a *assessor) asksKey(i importLine, text string, n Notice) bool {
	switch {
	case n.Severity == SeverityRemoved:
		return true
	case n.Severity != SeverityNewDefault:
		return false
	case n.Option != "":
		return true
	}
	return i.place == betweenBlocks && a.wouldGain(text, n.Plugin)
}

// wouldGain says whether a migration of imported server blocks would add the plugin, or can't be done.
func (a *assessor) wouldGain(text, plugin string) bool {
	out, err := a.hop.migrate(text)
	if err != nil {
		return true
	}
	before, errBefore := directiveCount(text, plugin)
	after, errAfter := directiveCount(out, plugin)
	return errBefore != nil || errAfter != nil || after > before
}
