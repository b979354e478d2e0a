// SPDX-License-Identifier: Apache-2.0

package module

import (
	"slices"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
)

// unused looks for what Theseus gives and nothing in the module takes.
func (c *checker) unused(root *instance) {
	if b := root.variables["bootstrap"]; b != nil && !slices.ContainsFunc(c.instances, (*instance).takesUserData) {
		c.report(BootstrapUnused, b.DefRange(), "nothing takes var.bootstrap")
	}
	if b := root.variables["machines"]; b != nil && !c.reads("image") {
		c.report(ImageUnused, b.DefRange(), "nothing takes the image of an entry of var.machines")
	}
}

// takesUserData tells whether a resource, or a call of a module that is not read, gets user data.
func (in *instance) takesUserData() bool {
	for _, r := range in.resources {
		for _, u := range in.place(r.block).scope.uses(r.block.Body, resourceMeta()) {
			if r.managed && u.value.has(userData) {
				return true
			}
		}
	}
	for name, b := range in.calls {
		if in.children[name] == nil && mixed(in.place(b).scope.arguments(b)...).has(userData) {
			return true
		}
	}
	return false
}

// reads tells whether any resource, data source, module call or local reads that attribute of anything. A call that is
// not read may.
func (c *checker) reads(attribute string) bool {
	found := false
	for _, in := range c.instances {
		see := func(b *hclsyntax.Body) { found = found || bodyReads(b, attribute) }
		for _, r := range in.resources {
			if in.parent != nil || r.address != registryAddress {
				see(r.block.Body)
			}
		}
		for name, b := range in.calls {
			see(b.Body)
			if in.children[name] == nil {
				v := mixed(in.place(b).scope.arguments(b)...)
				found = found || v.kind != plain
			}
		}
		for _, e := range in.locals {
			found = found || attributeRead(e, attribute)
		}
	}
	return found
}

func bodyReads(b *hclsyntax.Body, attribute string) bool {
	for _, a := range b.Attributes {
		if attributeRead(a.Expr, attribute) {
			return true
		}
	}
	return slices.ContainsFunc(b.Blocks, func(c *hclsyntax.Block) bool { return bodyReads(c.Body, attribute) })
}

// attributeRead tells whether an expression reads an attribute of that name of anything.
func attributeRead(e hclsyntax.Expression, name string) bool {
	found := false
	_ = hclsyntax.VisitAll(e, func(n hclsyntax.Node) hcl.Diagnostics {
		var steps hcl.Traversal
		switch n := n.(type) {
		case *hclsyntax.ScopeTraversalExpr:
			steps = n.Traversal
		case *hclsyntax.RelativeTraversalExpr:
			steps = n.Traversal
		}
		for _, s := range steps {
			step, ok := stepName(s)
			found = found || ok && step == name
		}
		return nil
	})
	return found
}
