// SPDX-License-Identifier: Apache-2.0

package corefile

import (
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/theseus-gitops/theseus/reconcile/skew"
)

// Assess judges a change of CoreDNS from one image tag to another. It leaves a Corefile byte for byte as it is unless
// something on the way is removed or newly a default, runs the migration library only then, and refuses its output unless
// every difference is named by a notice. A Corefile that is refused is returned as it came.
//
// Only major, minor and patch count: a change of a vendor's suffix is no change. A version that the library does not know
// is fine when both ends are 1.8.3 or later, because nothing a Corefile says has changed its meaning since.
func Assess(r Request) Assessment {
	from, to, err := versions(r)
	if err != nil {
		return Assessment{Outcome: Refused, Reason: err.Error(), Corefile: r.Corefile, Err: err}
	}
	a := assessor{request: r, hop: hop{from: from, to: to}}
	switch c := to.Compare(from); {
	case c == 0:
		return a.unchanged(fmt.Sprintf("the CoreDNS version stays %s", bare(from)))
	case c < 0:
		return a.refused(fmt.Sprintf("CoreDNS %s is lower than the running %s: the wanted tag must be greater than or equal to it; "+
			"a Corefile can't be migrated down, only restored from its backup", bare(to), bare(from)))
	case r.SkipMigration:
		a.warn("Corefile migration is skipped because the spec says so: whether CoreDNS %s loads this Corefile was not checked", bare(to))
		return a.unchanged("Corefile migration is skipped because the spec says so")
	}
	return a.judge()
}

func versions(r Request) (from, to skew.Version, err error) {
	if from, err = skew.ParseTag(r.From); err != nil {
		return from, to, &TagError{Field: "from", Tag: r.From, Err: err}
	}
	if to, err = skew.ParseTag(r.To); err != nil {
		return from, to, &TagError{Field: "to", Tag: r.To, Err: err}
	}
	return from.Core(), to.Core(), nil
}

// assessor carries one judgement from step to step.
type assessor struct {
	request Request
	hop     hop
	blocks  []block
	source  source
	notices []Notice
}

func (a *assessor) warn(format string, args ...any) {
	a.notices = append(a.notices, Notice{Severity: SeverityWarning, Message: fmt.Sprintf(format, args...)})
}

func (a *assessor) unchanged(reason string) Assessment {
	return Assessment{Outcome: Unchanged, Reason: reason, Notices: tidy(a.notices), Corefile: a.request.Corefile}
}

func (a *assessor) refused(reason string) Assessment {
	return Assessment{Outcome: Refused, Reason: reason, Notices: tidy(a.notices), Corefile: a.request.Corefile}
}

// judge decides between two different versions, upwards.
func (a *assessor) judge() Assessment {
	if !utf8.ValidString(a.request.Corefile) {
		return a.refused("the Corefile is not UTF-8 text")
	}
	var err error
	if a.blocks, err = parse(a.request.Corefile); err != nil {
		return a.refused(fmt.Sprintf("%v: CoreDNS could not load this Corefile; correct it first", err))
	}
	a.source = newSource(a.blocks, a.request.OtherKeys)
	a.warnAboutVariables()
	if unknown := a.unknownVersion(); unknown != "" {
		if a.hop.from.Compare(settled) < 0 {
			return a.refused(fmt.Sprintf("CoreDNS %s is not a compatible version: the migration library knows versions up to %s (and not every one "+
				"before), and the way starts before %s, so the Corefile may need changes that nobody can name; choose a known version, or set "+
				"coreDNS.skipCorefileMigration after checking the Corefile", unknown, highestKnown(), bare(settled)))
		}
		a.warn("CoreDNS %s is not among the versions of the migration library (%s): the Corefile is left as it is", unknown, nearest(unknown))
		return a.finish(a.unchanged(fmt.Sprintf("from %s on, no version needs a change of the Corefile", bare(settled))))
	}
	return a.judgeKnown()
}

func (a *assessor) unknownVersion() string {
	for _, v := range []skew.Version{a.hop.from, a.hop.to} {
		if !known(v) {
			return bare(v)
		}
	}
	return ""
}

// judgeKnown asks the library, whose two ends are known to it.
func (a *assessor) judgeKnown() Assessment {
	alike, err := readsAlike(a.request.Corefile, a.blocks)
	switch {
	case err == nil && alike:
		return a.walk()
	case err == nil:
		err = errors.New("it reads this Corefile differently from CoreDNS (a block on one line, nested in an option, or without braces)")
	}
	if a.hop.from.Compare(settled) < 0 {
		return a.refused(fmt.Sprintf("the migration library can't be used: %v; write the Corefile with one plugin or option a line and braces around "+
			"each server block, or set coreDNS.skipCorefileMigration after checking it", err))
	}
	a.warn("the notices of the migration library are left out: %v", err)
	return a.finish(a.unchanged(fmt.Sprintf("from %s on, no version needs a change of the Corefile", bare(settled))))
}

// finish checks what no library sees: directives that the target no longer has, and imported keys.
func (a *assessor) finish(judged Assessment) Assessment {
	if reason := a.checkImports(); reason != "" {
		return a.refused(reason)
	}
	after, err := parse(judged.Corefile)
	if err != nil {
		return a.refused(err.Error())
	}
	if reason := a.goneDirective(after, a.place); reason != "" {
		return a.refused(reason)
	}
	a.warnAboutForeign()
	judged.Notices = tidy(a.notices)
	return judged
}

// place says where in the Corefile that was given a directive stands, also when a migration has moved it since.
func (a *assessor) place(d directive) string {
	for _, b := range a.blocks {
		for _, own := range b.body {
			if own.name == d.name {
				return fmt.Sprintf("the Corefile, line %d", own.line)
			}
		}
	}
	return fmt.Sprintf("the migrated Corefile, line %d", d.line)
}

func (a *assessor) goneDirective(blocks []block, place func(directive) string) string {
	for _, b := range blocks {
		for _, d := range b.body {
			if gone, ok := removedBetween(d.name, a.hop.from, a.hop.to); ok {
				return fmt.Sprintf("%s: CoreDNS has no plugin %q since %s and would not start; %s", place(d), d.name, bare(gone.since), gone.remedy)
			}
		}
	}
	return ""
}

// warnAboutForeign names plugins that the running version does not have either: only a build of one's own can.
func (a *assessor) warnAboutForeign() {
	for _, b := range a.blocks {
		for _, d := range b.body {
			if gone, ok := removedBy(d.name, a.hop.from); ok {
				a.warn("line %d: CoreDNS has no plugin %q since %s; it is kept, because a build of your own may have it", d.line, d.name, bare(gone.since))
			}
		}
	}
}

// warnAboutVariables names plugins that only CoreDNS's environment knows.
func (a *assessor) warnAboutVariables() {
	for _, b := range a.blocks {
		for _, d := range b.body {
			if strings.Contains(d.name, "{$") || strings.Contains(d.name, "{%") {
				a.warn("line %d names a plugin by the environment variable %s: it was not checked", d.line, d.name)
			}
		}
	}
}
