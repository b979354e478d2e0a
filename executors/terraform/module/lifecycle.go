// SPDX-License-Identifier: Apache-2.0

package module

import (
	"slices"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
)

// lifecycle returns an argument of a resource's lifecycle block; nil when it is not set.
func lifecycle(r *resource, name string) hclsyntax.Expression { return expression(r.lifecycle, name) }

// ignores tells whether changes of an argument are ignored.
func (r *resource) ignores(argument string) bool {
	e := lifecycle(r, "ignore_changes")
	if e == nil {
		return false
	}
	if hcl.ExprAsKeyword(e) == "all" {
		return true
	}
	list, ok := e.(*hclsyntax.TupleConsExpr)
	if !ok {
		return false
	}
	return slices.ContainsFunc(list.Exprs, func(item hclsyntax.Expression) bool {
		if t, diagnostics := hcl.AbsTraversalForExpr(item); !diagnostics.HasErrors() {
			return t.RootName() == argument
		}
		old, _ := constantText(item) // "user_data", as before Terraform 0.12
		return old == argument
	})
}

func (in *instance) checkLifecycle(r *resource) {
	for _, rule := range []struct {
		argument string
		code     Code
	}{{"create_before_destroy", CreateBeforeDestroy}, {"prevent_destroy", PreventDestroy}, {"replace_triggered_by", ReplaceTriggeredBy}} {
		if e := lifecycle(r, rule.argument); e != nil && !isBool(e, false) {
			in.checker.report(rule.code, e.Range(), "%s has %s", r.address, rule.argument)
		}
	}
}

func (in *instance) checkProvisioners(r *resource) {
	for _, b := range r.block.Body.Blocks {
		if b.Type != "provisioner" {
			continue
		}
		if name := label(b); name == "remote-exec" || name == "file" {
			in.checker.report(RemoteProvisioner, b.DefRange(), "%s is set up by a %s provisioner", r.address, name)
		}
		if when := expression(b.Body, "when"); when == nil || hcl.ExprAsKeyword(when) != "destroy" {
			continue
		}
		for _, t := range variables(b.Body) {
			if !isAtDestroy(t) {
				in.checker.report(DestroyProvisioner, t.SourceRange(), "%s uses %s when it is destroyed", r.address, written(t))
			}
		}
	}
}

// isAtDestroy tells whether something is there when its machine's key is gone. Keywords look like references.
func isAtDestroy(t hcl.Traversal) bool {
	return slices.Contains([]string{"self", "destroy", "continue", "fail"}, t.RootName()) || isEachKey(t)
}

func isEachKey(t hcl.Traversal) bool { return slices.Equal(stepNames(t), []string{"each", "key"}) }

// variables are all references in a body, in the order in which they are written.
func variables(body *hclsyntax.Body) []hcl.Traversal {
	var out []hcl.Traversal
	for _, a := range attributes(body) {
		out = append(out, a.Expr.Variables()...)
	}
	for _, b := range body.Blocks {
		out = append(out, variables(b.Body)...)
	}
	return out
}

// linked tells whether a block depends on the registry, directly or through what it refers to.
func (in *instance) linked(b *hclsyntax.Block) bool {
	if in.parent != nil && in.parent.callLinked(in.call) {
		return true
	}
	v := in.once("linked "+b.Type+" "+key(b), func() value {
		if slices.ContainsFunc(variables(b.Body), in.isLinked) {
			return value{kind: own}
		}
		return value{}
	})
	return v.kind == own
}

// callLinked tells whether all inside a called module depends on the registry, through depends_on or for_each.
func (in *instance) callLinked(call *hclsyntax.Block) bool {
	if in.waits(call, in.isLinked) {
		return true
	}
	e := expression(call.Body, "for_each")
	return e != nil && slices.ContainsFunc(e.Variables(), in.isLinked)
}

func key(b *hclsyntax.Block) string {
	out := ""
	for _, l := range b.Labels {
		out += "." + l
	}
	return out
}

// isLinked tells whether what is referred to depends on the registry.
func (in *instance) isLinked(t hcl.Traversal) bool {
	n := stepNames(t)
	if len(n) < 2 {
		return false
	}
	if in.parent == nil && n[0]+"."+n[1] == registryAddress {
		return true
	}
	switch n[0] {
	case "local":
		return in.expressionLinked("local."+n[1], in.locals[n[1]])
	case "var":
		return in.parent != nil && in.parent.expressionLinked(in.path+n[1], expression(in.call.Body, n[1]))
	case "module":
		return in.moduleLinked(n)
	case "data":
		return false
	}
	r := in.resources[n[0]+"."+n[1]]
	return r != nil && in.place(r.block).perMachine && in.linked(r.block)
}

func (in *instance) moduleLinked(n []string) bool {
	call := in.calls[n[1]]
	if call == nil {
		return false
	}
	if in.linked(call) {
		return true
	}
	child := in.children[n[1]]
	if child == nil || len(n) < 3 {
		return false
	}
	if b := child.outputs[n[2]]; b != nil {
		return child.linked(b)
	}
	// module.NAME[…].OUTPUT: any of its outputs may be meant.
	return slices.ContainsFunc(sorted(child.outputs), child.linked)
}

func (in *instance) expressionLinked(name string, e hclsyntax.Expression) bool {
	if e == nil {
		return false
	}
	v := in.once("linked expression "+name, func() value {
		if slices.ContainsFunc(e.Variables(), in.isLinked) {
			return value{kind: own}
		}
		return value{}
	})
	return v.kind == own
}

// waits tells whether depends_on names something that is so.
func (in *instance) waits(b *hclsyntax.Block, so func(hcl.Traversal) bool) bool {
	list, ok := expression(b.Body, "depends_on").(*hclsyntax.TupleConsExpr)
	return ok && slices.ContainsFunc(list.Exprs, func(e hclsyntax.Expression) bool {
		return slices.ContainsFunc(e.Variables(), so)
	})
}

// waitsForMachines tells whether depends_on names something that changes with the machines.
func (in *instance) waitsForMachines(b *hclsyntax.Block) bool {
	return in.waits(b, func(t hcl.Traversal) bool {
		if n := stepNames(t); n[0] == "module" && len(n) > 1 && in.children[n[1]] != nil {
			return in.children[n[1]].changes()
		}
		v := scope{in: in}.reference(t)
		return v.kind != plain || v.has(sharedValue) || v.has(siblings)
	})
}

func (in *instance) checkDataDependsOn(r *resource) {
	if in.waitsForMachines(r.block) {
		in.checker.report(DataDependsOn, r.block.Body.Attributes["depends_on"].NameRange, "%s depends_on machines", r.address)
	}
}
