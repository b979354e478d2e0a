// SPDX-License-Identifier: Apache-2.0

package terraform

import (
	"fmt"
	"slices"
	"strings"

	tfjson "github.com/hashicorp/terraform-json"

	"github.com/theseus-gitops/theseus/reconcile/spec"
)

// reason is what Terraform says of why, in words. It is shown only.
func reason(r tfjson.ActionReason) string {
	switch r { //nolint:exhaustive // the others say nothing that helps
	case tfjson.ActionReasonReplaceBecauseTainted:
		return " (it is tainted: its creation failed half-way; a tainted machine's entry is dropped, never completed)"
	case tfjson.ActionReasonReplaceBecauseCannotUpdate:
		return " (an attribute changed that can't be changed in place)"
	case tfjson.ActionReasonReplaceByTriggers:
		return " (replace_triggered_by)"
	case tfjson.ActionReasonDeleteBecauseNoResourceConfig:
		return " (the module has no such resource any more)"
	case tfjson.ActionReasonDeleteBecauseCountIndex:
		return " (its count shrank; machines are keyed by name, not counted)"
	case tfjson.ActionReasonDeleteBecauseEachKey:
		return " (its key is gone)"
	case tfjson.ActionReasonDeleteBecauseWrongRepetition:
		return " (count and for_each were exchanged; use moved blocks)"
	case tfjson.ActionReasonDeleteBecauseNoModule:
		return " (its module is gone)"
	}
	return ""
}

// busy says what to do about a change that is left before a roll.
func (g *guard) busy(rc *tfjson.ResourceChange) string {
	owners := g.machinesIn(rc.Address)
	switch actions := rc.Change.Actions; {
	case inRegistry(rc.Address):
		return "the state's registry is not the present map; somebody applied with another one"
	case len(owners) > 0 && actions.Create():
		return fmt.Sprintf("%s is not complete; such a machine is dropped, never completed", strings.Join(owners, " and "))
	case actions.Update():
		return "nothing may be left to change before a roll; apply it yourself, or name it in spec.terraform.tolerate if it comes back each time"
	}
	return "nothing may be left to change before a roll; apply it yourself"
}

// tolerated reports whether a change is an update of attributes that the user named. The registry is never tolerated.
func (g *guard) tolerated(rc *tfjson.ResourceChange) bool {
	if !rc.Change.Actions.Update() || inRegistry(rc.Address) {
		return false
	}
	allowed := toleratedAttributes(rc.Address, g.tolerate)
	changed := changedAttributes(rc.Change)
	return len(changed) > 0 && !slices.ContainsFunc(changed, func(a string) bool { return !slices.Contains(allowed, a) })
}

func toleratedAttributes(address string, tolerate []spec.Toleration) []string {
	var names []string
	for _, t := range tolerate {
		if t.Address == address || t.Address == bare(address) {
			names = append(names, t.Attributes...)
		}
	}
	return names
}

// notices tell of what a plan does besides, sorted.
func notices(plan *tfjson.Plan, tolerate []spec.Toleration) []string {
	var all []string
	for name, c := range plan.OutputChanges {
		if name != outputName && c != nil && !c.Actions.NoOp() {
			all = append(all, fmt.Sprintf("output.%s: %s", name, actionOf(&tfjson.ResourceChange{Change: c})))
		}
	}
	g := &guard{tolerate: tolerate}
	for _, rc := range plan.ResourceChanges {
		if rc.Change != nil && g.tolerated(rc) {
			all = append(all, fmt.Sprintf("%s: tolerated update of %s", rc.Address, quotedList(changedAttributes(rc.Change))))
		}
	}
	for _, rc := range plan.ResourceDrift {
		if rc.Change != nil && !rc.Change.Actions.NoOp() {
			all = append(all, fmt.Sprintf("%s: %s outside of Terraform", rc.Address, actionOf(rc)))
		}
	}
	slices.Sort(all)
	return all
}
