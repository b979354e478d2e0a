// SPDX-License-Identifier: Apache-2.0

package terraform

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	tfjson "github.com/hashicorp/terraform-json"
)

// sharedUpdate judges an update in place of a resource that all machines share, a load balancer's pool for example:
// K's element may come, go or change, and nothing else.
func (g *guard) sharedUpdate(rc *tfjson.ResourceChange) string {
	before, after, unknown := object(rc.Change.Before), object(rc.Change.After), object(rc.Change.AfterUnknown)
	tolerated := toleratedAttributes(rc.Address, g.tolerate)
	c := comparison{identities: g.identities(), machine: g.step.Machine, mayAppear: g.step.Kind == Add || g.step.Kind == Serve && g.step.Serving}
	for _, name := range changedAttributes(rc.Change) {
		if slices.Contains(tolerated, name) || c.computed(rc, g.plan.Config, name) {
			continue
		}
		if why := c.compare(before[name], after[name], unknown[name]); why != "" {
			return fmt.Sprintf("attribute %s: %s", name, why)
		}
	}
	return ""
}

// computed reports whether an attribute is only made anew by the provider: it becomes unknown, the module does not set
// it, and it told of no other machine. A dynamic block looks as if the module did not set it, so what stays known is
// always compared. terraform_data's output repeats its input, which is compared itself.
func (c comparison) computed(rc *tfjson.ResourceChange, config *tfjson.Config, attribute string) bool {
	whole, ok := object(rc.Change.AfterUnknown)[attribute].(bool)
	if !ok || !whole || configured(config, rc, attribute) {
		return false
	}
	told := c.named(object(rc.Change.Before)[attribute])
	return rc.Type == registryType || len(told) == 0 || len(told) == 1 && told[0] == c.machine
}

// comparison finds out whether a value changed by one machine's element only.
type comparison struct {
	identities map[string][]string
	machine    string
	// mayAppear: elements may come whose content is known only after the apply.
	mayAppear bool
}

// compare is why the change from before to after is not K's alone, "" when it is.
func (c comparison) compare(before, after, unknown any) string {
	if whole, ok := unknown.(bool); ok && whole {
		return "it will be known only after the apply, so nobody can see now that other machines stay in it; use what is known before (names), or one resource per machine"
	}
	if !hasUnknown(unknown) && same(before, after) {
		return ""
	}
	if text, other := structured(before), structured(after); text != nil && other != nil {
		return c.compare(text, other, nil)
	}
	switch {
	case isList(before) && isList(after):
		return c.lists(list(before), list(after), list(unknown))
	case isObject(before) && isObject(after):
		return c.objects(object(before), object(after), object(unknown))
	}
	return "it changes, and not by an element of " + c.machine
}

func (c comparison) objects(before, after, unknown map[string]any) string {
	for _, key := range union(before, after, unknown) {
		if key == c.machine {
			continue
		}
		was, had := before[key]
		is, has := after[key]
		has = has || hasUnknown(unknown[key])
		var why string
		switch {
		case had && has:
			why = c.compare(was, is, unknown[key])
		case had && !c.mine(key, was):
			why = "it loses " + c.whose(key, was)
		case !had && !c.mine(key, is) && !c.fresh(key, is, unknown[key]):
			why = "it gains " + c.whose(key, is)
		}
		if why != "" {
			return why
		}
	}
	return ""
}

// lists compares without regard to order: sets are lists in JSON. Elements that changed are first taken for pairs
// (a block that holds the members), then for members.
func (c comparison) lists(before, after, unknown []any) string {
	gone, come := difference(before, after, unknown)
	if c.pairs(gone, come) {
		return ""
	}
	for _, e := range gone {
		if !c.mine("", e.value) {
			return "it loses or changes " + c.whose("", e.value)
		}
	}
	for _, e := range come {
		if !c.mine("", e.value) && !c.fresh("", e.value, e.unknown) {
			return "it gains " + c.whose("", e.value)
		}
	}
	return ""
}

// pairs reports whether each element that went came back with a change that is K's alone.
func (c comparison) pairs(gone, come []element) bool {
	if len(gone) != len(come) {
		return false
	}
	for i, e := range gone {
		if c.compare(e.value, come[i].value, come[i].unknown) != "" {
			return false
		}
	}
	return true
}

type element struct{ value, unknown any }

// difference gives what is only before and what is only after. An element with something unknown in it is new.
func difference(before, after, unknown []any) (gone, come []element) {
	count := map[string]int{}
	for _, v := range before {
		count[canonical(v)]++
	}
	for i, v := range after {
		if mask := at(unknown, i); hasUnknown(mask) || count[canonical(v)] == 0 {
			come = append(come, element{v, mask})
		} else {
			count[canonical(v)]--
		}
	}
	for _, v := range before {
		if key := canonical(v); count[key] > 0 {
			count[key]--
			gone = append(gone, element{value: v})
		}
	}
	return gone, come
}

// mine reports that an element names K and no other machine.
func (c comparison) mine(key string, v any) bool {
	named := c.named([]any{key, v})
	return len(named) == 1 && named[0] == c.machine
}

// fresh reports that an element is not known yet and names no other machine: it is K's, which is being made.
func (c comparison) fresh(key string, v, unknown any) bool {
	return c.mayAppear && hasUnknown(unknown) && (len(c.named([]any{key, v})) == 0 || c.mine(key, v))
}

// whose describes an element without quoting it: it may be secret.
func (c comparison) whose(key string, v any) string {
	if named := c.named([]any{key, v}); len(named) > 0 {
		return "the element of " + strings.Join(named, " and ")
	}
	return "an element that names no machine of output theseus"
}

// structured is a text that holds JSON, as jsonencode makes it; nil for everything else.
func structured(v any) any {
	text, ok := v.(string)
	if !ok || !strings.HasPrefix(text, "{") && !strings.HasPrefix(text, "[") {
		return nil
	}
	var inner any
	if json.Unmarshal([]byte(text), &inner) != nil {
		return nil
	}
	return inner
}

// isList and isObject take null for an empty one.
func isList(v any) bool   { _, ok := v.([]any); return ok || v == nil }
func isObject(v any) bool { _, ok := v.(map[string]any); return ok || v == nil }

// configured reports whether the module itself sets a resource's attribute. When the configuration can't be found,
// it does.
func configured(config *tfjson.Config, rc *tfjson.ResourceChange, attribute string) bool {
	if config == nil || config.RootModule == nil {
		return true
	}
	module := config.RootModule
	path := strings.Split(bare(rc.ModuleAddress), ".")
	for i := 1; i < len(path); i += 2 { // module.NAME.module.NAME
		call := module.ModuleCalls[path[i]]
		if call == nil || call.Module == nil {
			return true
		}
		module = call.Module
	}
	for _, r := range module.Resources {
		if r.Mode == rc.Mode && r.Type == rc.Type && r.Name == rc.Name {
			_, set := r.Expressions[attribute]
			return set
		}
	}
	return true
}
