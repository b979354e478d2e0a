// SPDX-License-Identifier: Apache-2.0

package module

import (
	"slices"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
)

// checkResource judges one resource or data source.
func (in *instance) checkResource(r *resource) {
	if in.parent == nil && r.address == registryAddress {
		return // package-level rules of its own: see registry
	}
	p := in.place(r.block)
	in.checkRepeat(r.address, r.block, p)
	if !r.managed {
		in.checkDataDependsOn(r)
	}
	uses := p.scope.uses(r.block.Body, resourceMeta())
	if !p.perMachine {
		in.checkShared(r, p, uses)
		return
	}
	carries := slices.ContainsFunc(uses, func(u use) bool { return u.value.has(userData) })
	if carries && in.filtered(p) {
		in.checker.report(ServingInMachine, r.block.DefRange(), "%s exists only while its machine serves, but takes user data", r.address)
	}
	for _, u := range uses {
		in.checkUse(r, u, carries)
	}
	if at, ok := latestReference(r.block.Body); ok {
		in.checker.report(NewestImage, at, "%s asks for the latest image", r.address)
	}
	if r.managed {
		if !carries {
			in.checkEndpoint(r, p, uses)
		}
		in.checkLifecycle(r)
		in.checkProvisioners(r)
		if !in.linked(r.block) {
			in.checker.report(RegistryDependency, r.block.DefRange(), "%s does not depend on %s", r.address, registryAddress)
		}
	}
}

func forEachAt(b *hclsyntax.Block) (hcl.Range, bool) {
	a := b.Body.Attributes["for_each"]
	if a == nil {
		return hcl.Range{}, false
	}
	return a.NameRange, true
}

// checkRepeat judges count and for_each.
func (in *instance) checkRepeat(address string, b *hclsyntax.Block, p place) {
	if a := b.Body.Attributes["count"]; a != nil && p.repeat.has(siblings) {
		in.checker.report(Count, a.NameRange, "%s is counted by machines", address)
	}
	at, ok := forEachAt(b)
	switch {
	case !ok:
	case p.repeat.has(userData):
		in.checker.report(BootstrapForEach, at, "%s exists only for machines with user data", address)
	case p.repeat.has(siblings) && p.repeat.kind != keyed:
		in.checker.report(ForEachKeys, at, "the keys of %s are not machine names", address)
	}
}

// checkUse judges one argument of something that each machine has for itself.
func (in *instance) checkUse(r *resource, u use, carries bool) {
	report := func(code Code, format string, args ...any) {
		in.checker.report(code, u.at, r.address+": "+u.argument+" "+format, args...)
	}
	if c, ok := u.value.traits[siblings]; ok {
		in.checker.report(SiblingReference, orElse(c.at, u.at), "%s: %s is made of %s, which is of all machines", r.address, u.argument, c.text)
	}
	if c, ok := u.value.traits[newestImage]; ok {
		report(NewestImage, "comes from %s, which finds the newest image", c.text)
	}
	if c, ok := u.value.traits[imageByName]; ok {
		report(ImageByName, "comes from %s, which finds an image by its name", c.text)
	}
	if u.provisioner || !r.managed {
		return // no plan compares it
	}
	if u.value.kind == plain && slices.Contains([]string{"name", "hostname", "computer_name"}, u.argument) {
		report(SameName, "is the same for every machine")
	}
	if u.value.has(unguarded) {
		report(BootstrapLookup, "reads var.bootstrap by an index")
	}
	if !r.ignores(u.argument) {
		checkChanges(u.value, carries, report)
	}
}

// checkChanges judges what makes an argument of a machine change after the machine was made.
func checkChanges(v value, carries bool, report func(code Code, format string, args ...any)) {
	if v.has(userData) {
		report(UserDataNotIgnored, "holds user data, and a change of it is acted on")
	}
	if carries && v.has(serving) {
		report(ServingInMachine, "changes with serving, in a resource that takes user data")
	}
	if c, ok := v.traits[unstable]; ok {
		report(UnstableFunction, "is made by %s", c.text)
	}
	if v.has(registryOutput) {
		report(RegistryOutput, "is made from the output of %s", registryAddress)
	}
	if c, ok := v.traits[sharedValue]; ok {
		report(SharedValue, "is made from %s, which changes with the machines", c.text)
	}
}

func orElse(at, otherwise hcl.Range) hcl.Range {
	if at.Filename == "" {
		return otherwise
	}
	return at
}

// checkShared judges what is not there for each machine.
func (in *instance) checkShared(r *resource, p place, uses []use) {
	for _, u := range uses {
		if c, takes := u.value.traits[siblings]; takes {
			u.at = orElse(c.at, u.at)
			in.checkTaking(r, p, u, c.text)
			break // the first says it for all
		}
	}
	if !r.managed {
		return
	}
	in.checkIdle(r, uses)
	if p.counted && !in.takes(r) && slices.ContainsFunc(variables(r.block.Body), isCountIndex) {
		in.checker.report(CountIndex, r.block.DefRange(), "%s is made by number", r.address)
	}
	if e := lifecycle(r, "create_before_destroy"); e != nil && !isBool(e, false) && in.takes(r) {
		in.checker.report(CreateBeforeDestroy, e.Range(), "%s has create_before_destroy, and with it all machines that it refers to", r.address)
	}
}

// checkIdle looks for what changes a shared resource in every plan.
func (in *instance) checkIdle(r *resource, uses []use) {
	for _, u := range uses {
		if c, ok := u.value.traits[unstable]; ok && !u.provisioner && !r.ignores(u.argument) {
			in.checker.report(NeverIdle, u.at, "%s: %s is made by %s", r.address, u.argument, c.text)
		}
	}
}

func isCountIndex(t hcl.Traversal) bool {
	return slices.Equal(stepNames(t), []string{"count", "index"})
}

// checkTaking judges an argument of what is not there for each machine, but is made of them.
func (in *instance) checkTaking(r *resource, p place, u use, from string) {
	switch {
	case p.counted:
		in.checker.report(Count, u.at, "%s is counted, and takes %s from the machines", r.address, from)
	case !r.managed:
		in.checker.report(DataOfMachines, u.at, "%s takes %s from all machines", r.address, from)
	case r.kind == "terraform_data" && u.argument == "triggers_replace" || r.kind == "null_resource" && u.argument == "triggers":
		in.checker.report(SharedReplaced, u.at, "%s is replaced when %s changes", r.address, from)
	case !in.checker.shared[in.path+r.address]:
		in.checker.report(SharedNotNamed, u.at, "%s takes %s from all machines, and is not in shared_addresses", in.path+r.address, from)
	}
}

// checkCall judges a call of a module; what is inside is judged as the child's own.
func (in *instance) checkCall(b *hclsyntax.Block) {
	p := in.place(b)
	address := "module." + label(b)
	in.checkRepeat(address, b, p)
	takes := p.perMachine
	for _, a := range attributes(b.Body) {
		if slices.Contains(callMeta(), a.Name) {
			continue
		}
		v := p.scope.eval(a.Expr)
		takes = takes || v.kind != plain
		if v.has(unguarded) {
			in.checker.report(BootstrapLookup, a.NameRange, "%s: %s reads var.bootstrap by an index", address, a.Name)
		}
	}
	child := in.children[label(b)]
	if child == nil {
		if source, _ := constantText(expression(b.Body, "source")); takes {
			in.checker.report(ModuleNotRead, b.DefRange(), "%s takes machines, and its source %q is not read", address, source)
		}
		return
	}
	if child.hasData() && in.waitsForMachines(b) {
		in.checker.report(DataDependsOn, b.Body.Attributes["depends_on"].NameRange, "%s has data sources inside, and depends_on machines", address)
	}
}

func (in *instance) hasData() bool {
	for _, r := range in.resources {
		if !r.managed {
			return true
		}
	}
	return slices.ContainsFunc(sorted(in.children), (*instance).hasData)
}
