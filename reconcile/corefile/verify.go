// SPDX-License-Identifier: Apache-2.0

package corefile

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// verifier compares the Corefile after one step with that before: what differs must be named by a notice.
type verifier struct {
	hop     hop
	notices []Notice
	before  source
	after   source
	applied map[int]bool // indexes of notices whose change was seen
}

// verify returns the notices that describe what the migration did, or why its output can't be used.
func (v *verifier) verify(in, out []block) ([]Notice, error) {
	v.applied = map[int]bool{}
	if len(out) < len(in) {
		return nil, fmt.Errorf("%d of %d server blocks are lost", len(in)-len(out), len(in))
	}
	var moved []directive
	for i, before := range in {
		stubs, err := v.block(before, out[i])
		if err != nil {
			return nil, fmt.Errorf("server block %q: %w", strings.Join(before.addresses, " "), err)
		}
		moved = append(moved, stubs...)
		if err := v.onceOnly(before, out[i]); err != nil {
			return nil, fmt.Errorf("server block %q: %w", strings.Join(before.addresses, " "), err)
		}
	}
	if err := v.stubBlocks(moved, out[len(in):]); err != nil {
		return nil, err
	}
	if err := newCollision(in, out); err != nil {
		return nil, err
	}
	return v.told(out)
}

// told leaves out additions that did not happen: the library announces a default for every block, and adds it only where
// it makes sense. A removal that did not happen is an error, because CoreDNS would not start.
func (v *verifier) told(out []block) ([]Notice, error) {
	var list []Notice
	for i, n := range v.notices {
		if n.Severity == SeverityRemoved && uses(out, n.Plugin, n.Option) {
			return nil, fmt.Errorf("%s is removed, and still there", strings.TrimSpace(n.Plugin+" "+n.Option))
		}
		if n.Severity != SeverityNewDefault || v.applied[i] {
			list = append(list, n)
		}
	}
	return list, nil
}

func uses(blocks []block, plugin, option string) bool {
	for _, b := range blocks {
		for _, d := range b.body {
			if d.name == plugin && (option == "" || slices.ContainsFunc(d.body, func(o directive) bool { return o.name == option })) {
				return true
			}
		}
	}
	return false
}

// find returns the index of a notice with one of the severities, -1 for none.
func (v *verifier) find(plugin, option string, severities ...Severity) int {
	return slices.IndexFunc(v.notices, func(n Notice) bool {
		return n.Plugin == plugin && n.Option == option && slices.Contains(severities, n.Severity)
	})
}

// added says whether a notice announces the plugin or option as a new default, and remembers that it came.
func (v *verifier) added(plugin, option string) bool {
	i := v.find(plugin, option, SeverityNewDefault)
	if i >= 0 {
		v.applied[i] = true
	}
	return i >= 0
}

// block compares one server block and returns the stub domains that were moved out of it.
func (v *verifier) block(before, after block) ([]directive, error) {
	if !slices.Equal(before.addresses, after.addresses) {
		return nil, fmt.Errorf("its address became %q", strings.Join(after.addresses, " "))
	}
	if before.braces != after.braces {
		return nil, errors.New("its braces are lost, so that it would take in what follows")
	}
	var moved []directive
	next := 0
	for _, d := range before.body {
		switch {
		case next < len(after.body) && v.same(d, after.body[next]):
			next++
		case v.movable(before, d):
			moved = append(moved, d)
		case next < len(after.body):
			return nil, fmt.Errorf("line %d, %q, became %q, which no notice explains", d.line, d, after.body[next])
		default:
			return nil, fmt.Errorf("line %d, %q, is lost", d.line, d)
		}
	}
	for _, d := range after.body[next:] {
		if !v.addition(d) {
			return nil, fmt.Errorf("%q was added, which no notice explains", d)
		}
	}
	return moved, v.transfers(before, after)
}

// addition says whether a plugin that was not there before is explained. The transfer plugin takes the place of the
// option of the same name in kubernetes (CoreDNS 1.8.0).
func (v *verifier) addition(d directive) bool {
	return v.added(d.name, "") || d.name == "transfer" && v.find("kubernetes", "transfer", SeverityRemoved) >= 0
}

// same says whether a plugin is still the same, or differs by what notices announce for its name and options.
func (v *verifier) same(before, after directive) bool {
	renamed := v.renamed(before, after)
	if before.name != after.name && !renamed || !slices.Equal(before.args, after.args) {
		return false
	}
	left := after.body
	for _, o := range before.body {
		if len(left) > 0 && v.sameOption(before.name, o, left[0], renamed) {
			left = left[1:]
			continue
		}
		dropped := renamed && slices.Contains(droppedWithProxy, o.name)
		if !dropped && !v.changes(before.name, o.name) {
			return false
		}
	}
	return !slices.ContainsFunc(left, func(o directive) bool { return !v.added(after.name, o.name) })
}

// renamed says whether a plugin is the forward that a proxy became.
func (v *verifier) renamed(before, after directive) bool {
	return before.name == "proxy" && after.name == "forward" && v.find("proxy", "", SeverityRemoved) >= 0
}

// changes says whether a notice announces that an option loses arguments or goes.
func (v *verifier) changes(plugin, option string) bool {
	return v.find(plugin, option, SeverityRemoved, SeverityIgnored, SeverityDeprecated) >= 0
}

func (v *verifier) sameOption(plugin string, before, after directive, renamed bool) bool {
	return before.equal(after) || renamed && forcedTCP(before, after) || v.changes(plugin, before.name) && shortened(before, after)
}

// droppedWithProxy are the options of proxy without a counterpart in forward.
//
//nolint:gochecknoglobals // read-only table
var droppedWithProxy = []string{"fail_timeout", "max_fails", "health_check", "spray", "protocol"}

// forcedTCP says whether a proxy option became forward's force_tcp, as the library does for these two.
func forcedTCP(before, after directive) bool {
	if after.name != "force_tcp" || len(after.args) > 0 || len(before.args) == 0 {
		return false
	}
	return before.name == "protocol" && before.args[0] == "force_tcp" || before.name == "policy" && before.args[0] == "least_conn"
}

// shortened says whether an option kept its name and the first of its arguments (kubernetes endpoint).
func shortened(before, after directive) bool {
	return before.name == after.name && len(after.args) > 0 && len(after.args) < len(before.args) &&
		slices.Equal(after.args, before.args[:len(after.args)]) && len(after.body) == 0
}

// onceOnly refuses a plugin that a block, with its imports, had at most once and now has several times: two forward
// plugins after two proxy plugins (coredns/corefile-migration#71), or a default that an import already brings.
func (v *verifier) onceOnly(before, after block) error {
	had := count(v.before.effective(before))
	for name, n := range count(v.after.effective(after)) {
		if n > max(1, had[name]) {
			return fmt.Errorf("it would have %d %s plugins, imports included: merge or remove all but one first", n, name)
		}
	}
	return nil
}

func count(plugins []directive) map[string]int {
	counts := map[string]int{}
	for _, d := range plugins {
		counts[d.name]++
	}
	return counts
}

// newCollision refuses two server blocks for one address, which CoreDNS does not start with.
func newCollision(in, out []block) error {
	had := countZones(in)
	for z, n := range countZones(out) {
		if n > max(1, had[z]) {
			return fmt.Errorf("zone %s on port %d would be served by %d server blocks", z.Name, z.Port, n)
		}
	}
	return nil
}

func countZones(blocks []block) map[Zone]int {
	counts := map[Zone]int{}
	for _, b := range blocks {
		for _, a := range b.addresses {
			if z, ok := addressZone(strings.TrimSuffix(a, ",")); ok {
				counts[z]++
			}
		}
	}
	return counts
}
