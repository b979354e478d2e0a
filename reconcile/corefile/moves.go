// SPDX-License-Identifier: Apache-2.0

package corefile

import (
	"fmt"
	"slices"
	"strings"
)

// movable says whether the library may move a plugin out: a stub domain, forwarded inside the root block.
func (v *verifier) movable(b block, d directive) bool {
	root := len(b.addresses) == 1 && (b.addresses[0] == "." || b.addresses[0] == ".:53")
	return root && v.hop.to.Compare(stubSplit) <= 0 && (d.name == "forward" || d.name == "proxy") && len(d.args) > 0 && d.args[0] != "."
}

// stubBlocks checks that each stub domain that was moved out has exactly one server block of its own.
func (v *verifier) stubBlocks(moved []directive, blocks []block) error {
	for _, b := range blocks {
		i := slices.IndexFunc(moved, func(d directive) bool { return v.isStub(d, b) })
		if i < 0 {
			return fmt.Errorf("server block %q appeared, which nothing explains", strings.Join(b.addresses, " "))
		}
		moved = slices.Delete(moved, i, i+1)
	}
	if len(moved) > 0 {
		return fmt.Errorf("line %d, %q, is lost", moved[0].line, moved[0])
	}
	return nil
}

func (v *verifier) isStub(d directive, b block) bool {
	if !b.braces || len(b.body) < 4 || !slices.Equal(b.addresses, d.args[:1]) {
		return false
	}
	root := directive{line: d.line, name: d.name, args: append([]string{"."}, d.args[1:]...), body: d.body}
	rest := []directive{{name: "loop"}, {name: "errors"}, {name: "cache", args: []string{"30"}}}
	return v.same(root, b.body[0]) && slices.EqualFunc(b.body[1:4], rest, directive.equal) &&
		!slices.ContainsFunc(b.body[4:], func(d directive) bool { return !v.addition(d) })
}

// transfers checks that every address of kubernetes's transfer options, removed in 1.8.0, is in a transfer plugin
// afterwards: of several options the library carries over only the last.
func (v *verifier) transfers(before, after block) error {
	if v.find("kubernetes", "transfer", SeverityRemoved) < 0 {
		return nil
	}
	kept := addressesTo(after.body, "transfer", "to", 0)
	for _, address := range addressesTo(before.body, "kubernetes", "transfer", 1) {
		if !slices.Contains(kept, address) {
			return fmt.Errorf("zone transfers to %s are lost", address)
		}
	}
	return nil
}

// addressesTo collects the arguments, after the first skip ones, of an option in all plugins of one name.
func addressesTo(plugins []directive, plugin, option string, skip int) []string {
	var list []string
	for _, d := range plugins {
		for _, o := range d.body {
			if d.name == plugin && o.name == option {
				list = append(list, o.args[min(skip, len(o.args)):]...)
			}
		}
	}
	return list
}
