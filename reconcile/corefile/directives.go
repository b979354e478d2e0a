// SPDX-License-Identifier: Apache-2.0

package corefile

import (
	"slices"

	"github.com/theseus-gitops/theseus/reconcile/skew"
)

// removal is a directive that CoreDNS once had and no longer has.
type removal struct {
	name   string
	since  skew.Version // the first version without it
	remedy string
}

// removals lists every directive that disappeared between CoreDNS 1.2.0 and 1.15.0, found by comparing
// core/dnsserver/zdirectives.go of one release of each minor. CoreDNS refuses to start on a directive it does not have.
//
//nolint:gochecknoglobals // read-only table
var removals = []removal{
	{name: "proxy", since: skew.Version{Major: 1, Minor: 5}, remedy: "use forward instead"},
	{name: "federation", since: skew.Version{Major: 1, Minor: 7}, remedy: "remove it; Kubernetes federation v1 is gone"},
}

// removedBetween returns the removal that hits a directive on the way between two versions.
func removedBetween(name string, from, to skew.Version) (removal, bool) {
	for _, r := range removals {
		if r.name == name && from.Compare(r.since) < 0 && to.Compare(r.since) >= 0 {
			return r, true
		}
	}
	return removal{}, false
}

// removedBy returns the removal that a version has behind it.
func removedBy(name string, version skew.Version) (removal, bool) {
	return removedBetween(name, skew.Version{}, version)
}

// DirectiveNames returns the names of all plugins that a Corefile uses, snippets included, sorted and each once. What an
// import brings from another file is not seen. The error is a *SyntaxError.
func DirectiveNames(corefile string) ([]string, error) {
	blocks, err := parse(corefile)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, b := range blocks {
		for _, d := range b.body {
			if d.name != importName {
				names = append(names, d.name)
			}
		}
	}
	slices.Sort(names)
	return slices.Compact(names), nil
}

// directiveCount returns how often a plugin stands in a Corefile.
func directiveCount(corefile, plugin string) (int, error) {
	blocks, err := parse(corefile)
	if err != nil {
		return 0, err
	}
	n := 0
	for _, b := range blocks {
		n += count(b.body)[plugin]
	}
	return n, nil
}
