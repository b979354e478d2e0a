// SPDX-License-Identifier: Apache-2.0

package terraform

import (
	"fmt"

	tfjson "github.com/hashicorp/terraform-json"
)

// serving judges K's own resources in a serving step: the registry entry, and what belongs to the endpoint. That are the
// per-machine resources which the module lists among its shared addresses, like a load balancer's member.
func (g *guard) serving(rc *tfjson.ResourceChange) string {
	actions := rc.Change.Actions
	if inRegistry(rc.Address) {
		if actions.Update() {
			return ""
		}
		return g.foreign(rc)
	}
	if !g.shared(rc.Address) {
		why := fmt.Sprintf("only what belongs to the endpoint may change, and %s is not listed in shared_addresses of output theseus", bare(rc.Address))
		if actions.Update() {
			why += "; if only its user data changes, put that into ignore_changes"
		}
		return why
	}
	switch {
	case actions.Update():
		return ""
	case actions.Create() && g.step.Serving, actions.Delete() && !g.step.Serving:
		if name, has := g.hasWithoutServing(bare(rc.Address)); has {
			return fmt.Sprintf("%s has one without serving, so this is no part of the endpoint", name)
		}
		if actions.Delete() {
			return g.removal(rc)
		}
		return ""
	}
	return g.foreign(rc)
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
