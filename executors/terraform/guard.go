// SPDX-License-Identifier: Apache-2.0

package terraform

import (
	"fmt"
	"slices"
	"strings"

	tfjson "github.com/hashicorp/terraform-json"

	"github.com/theseus-gitops/theseus/reconcile/spec"
)

// Offence is one thing that a plan would do and may not.
type Offence struct {
	// Address is of a resource instance, or "output.theseus", or "plan" for the plan as a whole.
	Address, Action, Why string
}

// String is the offence as a line.
func (o Offence) String() string { return fmt.Sprintf("%s: %s: %s", o.Address, o.Action, o.Why) }

// Guard compares a plan with what its step may do, and lists everything else, sorted. K is the step's machine:
//
//	step        allowed
//	idle check  no-op, read
//	add         create and read on index K
//	serving     update of K's registry entry; create, update, delete on index K of shared addresses
//	destroy     delete on index K, because the key is gone
//	drop entry  delete on index K, because the key is gone
//
// Add, serving and destroy may also update shared addresses, where only K's element may come, go or change. Every plan
// may hold tolerated updates, changes of outputs and changes seen outside (resource_drift), as long as these do not
// touch the registry, machines or output theseus. Replacing, forgetting, moving, importing and deferring never pass.
func Guard(plan *tfjson.Plan, s Step, tolerate []spec.Toleration) []Offence {
	g := &guard{plan: plan, step: s, tolerate: tolerate, machines: map[string]bool{}}
	for name := range s.Have {
		g.machines[name] = true
	}
	if s.Machine != "" {
		g.machines[s.Machine] = true
	}
	if value, err := priorOutput(plan); err == nil {
		g.before = readOutput(value)
	}
	g.whole()
	for _, rc := range plan.ResourceChanges {
		g.resource(rc)
	}
	for _, rc := range plan.ResourceDrift {
		g.drift(rc)
	}
	g.output()
	g.registry()
	slices.SortFunc(g.offences, func(a, b Offence) int { return strings.Compare(a.String(), b.String()) })
	return slices.Compact(g.offences)
}

type guard struct {
	plan     *tfjson.Plan
	step     Step
	tolerate []spec.Toleration
	machines map[string]bool
	before   Output
	offences []Offence
}

func (g *guard) offend(address, action, why string) {
	g.offences = append(g.offences, Offence{Address: address, Action: action, Why: why})
}

// whole judges what is no change of a resource.
func (g *guard) whole() {
	if g.plan.Complete != nil && !*g.plan.Complete {
		g.offend("plan", "incomplete", "it does not bring the whole module to its wanted state, because of targets or deferred changes")
	}
	for _, d := range g.plan.DeferredChanges {
		if d.ResourceChange != nil {
			g.offend(d.ResourceChange.Address, "deferred", "Terraform can't say yet what it will do")
		}
	}
	for _, a := range g.plan.ActionInvocations {
		g.offend(a.Address, "invoke", "provider actions do what no plan shows")
	}
}

// resource judges one change.
func (g *guard) resource(rc *tfjson.ResourceChange) {
	action := actionOf(rc)
	switch {
	case rc.Change == nil:
		g.offend(rc.Address, action, "the plan does not say what changes")
	case rc.PreviousAddress != "" && rc.PreviousAddress != rc.Address:
		g.offend(rc.Address, "move", fmt.Sprintf("it moves from %s; apply moves yourself before a roll", rc.PreviousAddress))
	case rc.Change.Importing != nil:
		g.offend(rc.Address, "import", "it is imported; apply imports yourself before a roll")
	case rc.Change.Actions.NoOp() || g.tolerated(rc):
	default:
		if why := g.refusal(rc); why != "" {
			g.offend(rc.Address, action, why+reason(rc.ActionReason))
		}
	}
}

// refusal is why the step may not make this change, "" when it may.
func (g *guard) refusal(rc *tfjson.ResourceChange) string {
	actions := rc.Change.Actions
	switch {
	case g.step.Kind == Idle && actions.Read():
		return ""
	case g.step.Kind == Idle:
		return g.busy(rc)
	case g.own(rc):
		return g.ownChange(rc)
	case g.step.Kind != Drop && actions.Update() && g.shared(rc.Address) && len(g.machinesIn(rc.Address)) == 0:
		return g.sharedUpdate(rc)
	}
	return g.foreign(rc)
}

// ownChange judges a change of K's own resources.
func (g *guard) ownChange(rc *tfjson.ResourceChange) string {
	actions := rc.Change.Actions
	switch g.step.Kind {
	case Add:
		if actions.Create() || actions.Read() {
			return ""
		}
	case Serve:
		return g.serving(rc)
	case Destroy, Drop:
		if actions.Delete() {
			return g.removal(rc)
		}
	case Idle: // has no machine
	}
	return g.foreign(rc)
}

// removal: a resource of K goes because K goes. That the whole resource or module was taken out of the configuration
// is another matter.
func (g *guard) removal(rc *tfjson.ResourceChange) string {
	byModule := rc.ActionReason == tfjson.ActionReasonDeleteBecauseNoModule && slices.Contains(keys(rc.ModuleAddress), g.step.Machine)
	if rc.ActionReason == tfjson.ActionReasonDeleteBecauseEachKey || byModule || rc.DeposedKey != "" {
		return ""
	}
	return "it goes for another reason than that its key is gone"
}

// foreign says whose the resource is.
func (g *guard) foreign(rc *tfjson.ResourceChange) string {
	owners := g.machinesIn(rc.Address)
	switch {
	case g.own(rc):
		return fmt.Sprintf("the step %q may not do this to %s's own resources", g.step.Kind, g.step.Machine)
	case len(owners) > 0:
		return fmt.Sprintf("it belongs to %s, and this step is about %s alone", strings.Join(owners, " and "), g.step.Machine)
	case rc.Change.Actions.Update() && g.shared(rc.Address):
		return fmt.Sprintf("the step %q may not change what machines share", g.step.Kind)
	case rc.Change.Actions.Update():
		return fmt.Sprintf("it does not belong to %s, and is not listed in shared_addresses of output theseus", g.step.Machine)
	}
	return fmt.Sprintf("it does not belong to %s", g.step.Machine)
}

// registry makes sure that the step does what it is for: a module that ignores the map would let every step pass.
func (g *guard) registry() {
	want := map[Kind]tfjson.Action{Add: tfjson.ActionCreate, Serve: tfjson.ActionUpdate, Destroy: tfjson.ActionDelete, Drop: tfjson.ActionDelete}[g.step.Kind]
	if g.step.Kind == Idle {
		return
	}
	address := registryAddress(g.step.Machine)
	for _, rc := range g.plan.ResourceChanges {
		if rc.Address == address && rc.Change != nil && slices.Equal(rc.Change.Actions, tfjson.Actions{want}) {
			return
		}
	}
	g.offend(address, "no-op", fmt.Sprintf("the step %q needs its %s; does the registry have for_each = var.machines and input = each.value?", g.step.Kind, want))
}

// own reports whether a resource is K's and nobody else's.
func (g *guard) own(rc *tfjson.ResourceChange) bool {
	owners := g.machinesIn(rc.Address)
	return len(owners) == 1 && owners[0] == g.step.Machine
}

// machinesIn are the machines among an address's keys.
func (g *guard) machinesIn(address string) []string {
	var names []string
	for _, key := range keys(address) {
		if g.machines[key] && !slices.Contains(names, key) {
			names = append(names, key)
		}
	}
	return names
}

// shared reports whether the module lists the resource, all of it or this instance.
func (g *guard) shared(address string) bool {
	return slices.Contains(g.before.SharedAddresses, address) || slices.Contains(g.before.SharedAddresses, bare(address))
}

func inRegistry(address string) bool { return bare(address) == registryType+"."+registryName }

func actionOf(rc *tfjson.ResourceChange) string {
	if rc.Change == nil {
		return "unknown"
	}
	if rc.Change.Actions.Replace() {
		return "replace"
	}
	var words []string
	for _, a := range rc.Change.Actions {
		words = append(words, string(a))
	}
	action := strings.Join(words, "+")
	if rc.DeposedKey != "" {
		action += " of a deposed object"
	}
	return action
}
