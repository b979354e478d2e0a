// SPDX-License-Identifier: Apache-2.0

package terraform

import (
	"fmt"
	"slices"

	tfjson "github.com/hashicorp/terraform-json"
)

// serving judges K's own resources in a serving step: the registry entry, and what belongs to the endpoint, like a load
// balancer's member. Those per-machine resources are listed among the shared addresses; the module check asks for it.
func (g *guard) serving(rc *tfjson.ResourceChange) string {
	actions := rc.Change.Actions
	if inRegistry(rc.Address) {
		if actions.Update() {
			return ""
		}
		return g.foreign(rc)
	}
	if !g.shared(rc.Address) {
		return unlisted(rc)
	}
	switch {
	case actions.Update():
		return ""
	case actions.Create() && g.step.Serving, actions.Delete() && !g.step.Serving:
		if name, has := g.hasWithoutServing(bare(rc.Address)); has {
			return fmt.Sprintf("%s has one without serving, so this is no part of the endpoint", name)
		}
		if actions.Delete() {
			return g.leaving(rc)
		}
		return ""
	}
	return g.foreign(rc)
}

// unlisted says what to do about a change of what is not said to be the endpoint's.
func unlisted(rc *tfjson.ResourceChange) string {
	why := fmt.Sprintf("only what belongs to the endpoint may change, and %s is not listed in shared_addresses of output theseus", bare(rc.Address))
	switch actions := rc.Change.Actions; {
	case actions.Update():
		why += "; if only its user data changes, put that into ignore_changes"
	case actions.Create(), actions.Delete():
		why += "; if it belongs to the endpoint, list it there and apply that before the roll"
	}
	return why
}

// leaving is removal, but in a module of K's own a count of 0 or 1 is as good as a key.
func (g *guard) leaving(rc *tfjson.ResourceChange) string {
	if rc.ActionReason == tfjson.ActionReasonDeleteBecauseCountIndex && slices.Contains(keys(rc.ModuleAddress), g.step.Machine) {
		return ""
	}
	return g.removal(rc)
}

// hasWithoutServing finds a machine that has the resource although it does not serve: a listed VM must not go because
// its machine leaves the endpoint.
func (g *guard) hasWithoutServing(resource string) (string, bool) {
	for _, rc := range g.plan.ResourceChanges {
		if bare(rc.Address) != resource || rc.Change == nil || rc.Change.Before == nil {
			continue
		}
		for _, name := range g.machinesIn(rc.Address) {
			if m, known := g.step.Have[name]; known && !m.Serving {
				return name, true
			}
		}
	}
	return "", false
}
