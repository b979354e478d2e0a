// SPDX-License-Identifier: Apache-2.0

package terraform

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	tfjson "github.com/hashicorp/terraform-json"
)

// drift judges a change that Terraform found outside and would only write down. Machines must be as Terraform knows
// them, but for the one that goes.
func (g *guard) drift(rc *tfjson.ResourceChange) {
	if rc.Change == nil || rc.Change.Actions.NoOp() && rc.PreviousAddress == "" || g.tolerated(rc) {
		return
	}
	owners := g.machinesIn(rc.Address)
	switch leaves := g.step.Kind == Destroy || g.step.Kind == Drop; {
	case inRegistry(rc.Address):
		g.offend(rc.Address, actionOf(rc)+" outside", "the registry was changed outside of Terraform")
	case len(owners) == 0, leaves && g.own(rc):
	default:
		what := ""
		if changed := changedAttributes(rc.Change); rc.Change.Actions.Update() && len(changed) > 0 {
			what = " (" + quotedList(changed) + ")"
		}
		g.offend(rc.Address, actionOf(rc)+" outside", fmt.Sprintf("machine %s was changed outside of Terraform%s; look at it, then apply with -refresh-only", strings.Join(owners, " and "), what))
	}
}

// output judges the change of output theseus: only the step's machine may come or go in it.
func (g *guard) output() {
	c := g.plan.OutputChanges[outputName]
	if c == nil || c.Actions.NoOp() {
		return
	}
	if g.step.Kind == Idle {
		g.offend("output."+outputName, actionOf(&tfjson.ResourceChange{Change: c}), "it may not change before a roll; apply it yourself")
		return
	}
	before, after, unknown := object(c.Before), object(c.After), object(c.AfterUnknown)
	for _, field := range union(before, after, unknown) {
		if field == "machines" {
			continue
		}
		if !same(before[field], after[field]) || hasUnknown(unknown[field]) {
			g.offend("output."+outputName, "update", fmt.Sprintf("%q may not change in a step", field))
		}
	}
	had, has, will := object(before["machines"]), object(after["machines"]), object(unknown["machines"])
	for _, name := range union(had, has, will) {
		if name != g.step.Machine && (!same(had[name], has[name]) || hasUnknown(will[name])) {
			g.offend("output."+outputName, "update", fmt.Sprintf("what it says of %s may not change in this step", name))
		}
	}
}

// readOutput is lenient: what the output must hold is checked elsewhere.
func readOutput(value json.RawMessage) Output {
	var o Output
	if len(value) > 0 && json.Unmarshal(value, &o) != nil {
		return Output{}
	}
	return o
}

// changedAttributes are the names of top-level attributes that differ or will be known only later, sorted.
func changedAttributes(c *tfjson.Change) []string {
	before, after, unknown := object(c.Before), object(c.After), object(c.AfterUnknown)
	return slices.DeleteFunc(union(before, after, unknown), func(name string) bool {
		return same(before[name], after[name]) && !hasUnknown(unknown[name])
	})
}
