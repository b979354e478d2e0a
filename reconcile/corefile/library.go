// SPDX-License-Identifier: Apache-2.0

package corefile

import (
	"fmt"
	"strings"

	"github.com/coredns/corefile-migration/migration"
	libcorefile "github.com/coredns/corefile-migration/migration/corefile"

	"github.com/theseus-gitops/theseus/reconcile/skew"
)

// settled is the version from which on no step of the library changes what a Corefile means: the last action belongs to
// 1.8.0 (transfer), and 1.8.1 and 1.8.2 are unknown to it.
//
//nolint:gochecknoglobals // read-only value
var settled = skew.Version{Major: 1, Minor: 8, Patch: 3}

// bare writes a version as the library does: no v, no suffix.
func bare(v skew.Version) string { return strings.TrimPrefix(v.Core().String(), "v") }

func known(v skew.Version) bool {
	_, ok := migration.Versions[bare(v)]
	return ok
}

// nearest names the library's versions around one that it lacks, "1.14.6 and 1.15.0 are the nearest".
func nearest(unknown string) string {
	wanted, err := skew.ParseTag(unknown)
	if err != nil {
		return "up to " + highestKnown()
	}
	var below, above string
	for _, text := range migration.ValidVersions() {
		v, err := skew.ParseTag(text)
		switch {
		case err != nil:
		case v.Compare(wanted) < 0:
			below = text
		case above == "":
			above = text
		}
	}
	switch {
	case above == "":
		return below + " is the newest"
	case below == "":
		return above + " is the oldest"
	}
	return below + " and " + above + " are the nearest"
}

func highestKnown() string {
	versions := migration.ValidVersions()
	return versions[len(versions)-1]
}

// guard turns a panic of the library into an error: it dereferences nil on a block without an address and cuts beyond the
// end when it moves stub domains.
func guard(what string, err *error) {
	if r := recover(); r != nil {
		*err = fmt.Errorf("%s: the migration library panicked: %v", what, r)
	}
}

// hop is a version change whose two ends the library knows.
type hop struct{ from, to skew.Version }

// steps splits a hop into those between neighbouring versions. The library looks for notices in the text it starts from,
// and so misses what concerns text that an earlier version made (a forward that was a proxy); step by step it does not.
func (h hop) steps() []hop {
	var list []hop
	at := h.from
	for _, text := range migration.ValidVersions() {
		v, err := skew.ParseTag(text)
		if err == nil && v.Compare(at) > 0 && v.Compare(h.to) <= 0 {
			list = append(list, hop{from: at, to: v})
			at = v
		}
	}
	return list
}

// notices asks the library what is deprecated, ignored, removed or newly a default.
func (h hop) notices(corefile string) (list []Notice, err error) {
	defer guard("notices", &err)
	found, err := migration.Deprecated(bare(h.from), bare(h.to), corefile)
	if err != nil {
		return nil, fmt.Errorf("notices: %w", err)
	}
	for _, n := range found {
		list = append(list, Notice{Plugin: n.Plugin, Option: n.Option, Severity: severities[n.Severity], Message: n.ToString()})
	}
	return tidy(list), nil
}

// unsupported asks the library what it has no record of; to be asked of the last step only, because what a version in
// between did not know says nothing.
func (h hop) unsupported(corefile string) (list []Notice, err error) {
	defer guard("notices", &err)
	unknown, err := migration.Unsupported(bare(h.from), bare(h.to), corefile)
	if err != nil {
		return nil, fmt.Errorf("notices: %w", err)
	}
	for _, n := range unknown {
		if n.Plugin != importName && n.Option != importName {
			list = append(list, unsupported(n.Plugin, n.Option))
		}
	}
	return tidy(list), nil
}

//nolint:gochecknoglobals // read-only table
var severities = map[string]Severity{
	migration.SevDeprecated: SeverityDeprecated,
	migration.SevIgnored:    SeverityIgnored,
	migration.SevRemoved:    SeverityRemoved,
	migration.SevNewDefault: SeverityNewDefault,
}

func unsupported(plugin, option string) Notice {
	what := fmt.Sprintf("plugin %q", plugin)
	if option != "" {
		what = fmt.Sprintf("option %q of plugin %q", option, plugin)
	}
	return Notice{
		Plugin: plugin, Option: option, Severity: SeverityUnsupported,
		Message: what + " is unknown to the migration library and is left as it is; that says nothing about CoreDNS",
	}
}

// migrate runs the library. Deprecated things stay until they are ignored or removed. Where stub domains are moved out,
// one run may leave some behind, because the library deletes from the list it walks over; it is run until nothing moves.
func (h hop) migrate(corefile string) (out string, err error) {
	defer guard("migration", &err)
	for range maxRuns {
		out, err = migration.Migrate(bare(h.from), bare(h.to), corefile, false)
		if err != nil {
			return "", fmt.Errorf("migration: %w", err)
		}
		if h.to.Compare(stubSplit) != 0 || out == corefile {
			return out, nil
		}
		corefile = out
	}
	return "", fmt.Errorf("migration: its output still changes after %d runs", maxRuns)
}

// maxRuns is more than any Corefile with a sane number of stub domains needs: each run moves at least half of them.
const maxRuns = 16

// stubSplit is the last version at which the library moves stub domains out into server blocks of their own.
//
//nolint:gochecknoglobals // read-only value
var stubSplit = skew.Version{Major: 1, Minor: 5}

// readsAlike says whether the library sees the same blocks, plugins and options in a text as CoreDNS does. It does not
// for braces on one line, blocks nested in options and single server blocks without braces, and then its notices are
// about another Corefile.
func readsAlike(corefile string, blocks []block) (alike bool, err error) {
	defer guard("reading", &err)
	read, err := libcorefile.New(corefile)
	if err != nil {
		return false, fmt.Errorf("reading: %w", err)
	}
	var seen []block
	var addresses []string
	for _, s := range read.Servers {
		addresses = append(addresses, s.DomPorts...)
		if len(s.Plugins) == 0 && strings.HasSuffix(addresses[len(addresses)-1], ",") {
			continue // the addresses go on in the next line
		}
		seen = append(seen, block{addresses: addresses, body: fromLibrary(s.Plugins)})
		addresses = nil
	}
	if len(seen) != len(blocks) {
		return false, nil
	}
	for i, b := range blocks {
		if !b.equal(block{addresses: seen[i].addresses, braces: b.braces, body: seen[i].body}) {
			return false, nil
		}
	}
	return true, nil
}

func fromLibrary(plugins []*libcorefile.Plugin) []directive {
	var list []directive
	for _, p := range plugins {
		d := directive{name: p.Name, args: p.Args}
		for _, o := range p.Options {
			d.body = append(d.body, directive{name: o.Name, args: o.Args})
		}
		list = append(list, d)
	}
	return list
}

// stable says whether the library reads its own output back to the same text.
func stable(corefile string) (same bool, err error) {
	defer guard("reading back", &err)
	read, err := libcorefile.New(corefile)
	if err != nil {
		return false, fmt.Errorf("reading back: %w", err)
	}
	return read.ToString() == corefile, nil
}
