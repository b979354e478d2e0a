// SPDX-License-Identifier: Apache-2.0

package module

import (
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
)

// output checks output theseus, as far as it is written out.
func (c *checker) output(root *instance) {
	b := root.outputs["theseus"]
	if b == nil {
		c.report(OutputMissing, root.start(), "there is no output theseus")
		return
	}
	value, ok := root.follow(expression(b.Body, "value")).(*hclsyntax.ObjectConsExpr)
	if !ok {
		c.report(OutputUnreadable, b.DefRange(), "output theseus is not an object written out")
		return
	}
	fields := items(value)
	for _, name := range []string{"contract", "cluster", "endpoint", "acts_on_serving", "machines", "shared_addresses"} {
		if fields[name] == nil {
			c.report(OutputField, value.Range(), "output theseus lacks %s", name)
		}
	}
	checks := map[string]func(*instance, hclsyntax.Expression){
		"contract": c.outputContract, "endpoint": c.outputEndpoint, "machines": c.outputMachines,
		"acts_on_serving": c.outputServing, "shared_addresses": c.sharedAddresses,
	}
	for name, e := range fields {
		if checkField := checks[name]; checkField != nil {
			checkField(root, e)
		}
	}
}

func (c *checker) outputContract(_ *instance, e hclsyntax.Expression) {
	if v, ok := constant(e); !ok || v.IsNull() || !v.Type().Equals(cty.Number) || !v.RawEquals(cty.NumberIntVal(1)) {
		c.report(OutputContract, e.Range(), "output theseus has another contract than 1")
	}
}

func (c *checker) outputEndpoint(root *instance, e hclsyntax.Expression) {
	if (scope{in: root}).eval(e).kind != plain {
		c.report(OutputEndpoint, e.Range(), "the endpoint is taken from machines")
	}
}

func (c *checker) outputServing(_ *instance, e hclsyntax.Expression) {
	if isBool(e, true) && !c.reads("serving") {
		c.report(ServingUnused, e.Range(), "acts_on_serving is true, but nothing in the module takes serving")
	}
}

// follow goes from a local's name to what it stands for.
func (in *instance) follow(e hclsyntax.Expression) hclsyntax.Expression {
	for range len(in.locals) + 1 {
		t, ok := e.(*hclsyntax.ScopeTraversalExpr)
		if !ok || len(t.Traversal) != 2 || t.Traversal.RootName() != "local" {
			return e
		}
		e = in.locals[stepNames(t.Traversal)[1]]
	}
	return e
}

// items are the attributes of an object that are named in the code.
func items(o *hclsyntax.ObjectConsExpr) map[string]hclsyntax.Expression {
	out := map[string]hclsyntax.Expression{}
	for _, item := range o.Items {
		if name, ok := itemName(item); ok {
			out[name] = item.ValueExpr
		}
	}
	return out
}

func (c *checker) outputMachines(root *instance, e hclsyntax.Expression) {
	loop, ok := root.follow(e).(*hclsyntax.ForExpr)
	v := scope{in: root}.eval(e)
	switch {
	case v.kind != keyed:
		c.report(OutputMachines, e.Range(), "machines of output theseus is not keyed by the machines' names")
	case ok && loop.CondExpr != nil:
		c.report(OutputMachines, loop.CondExpr.Range(), "machines of output theseus leaves some out")
	case ok:
		object, written := loop.ValExpr.(*hclsyntax.ObjectConsExpr)
		if !written {
			return
		}
		fields := items(object)
		for _, name := range []string{"hostname", "addresses", "provider_id"} {
			if fields[name] == nil {
				c.report(OutputField, object.Range(), "machines of output theseus lack %s", name)
			}
		}
	}
}

// sharedAddresses remembers what the module lists, and looks for it.
func (c *checker) sharedAddresses(root *instance, e hclsyntax.Expression) {
	list, ok := root.follow(e).(*hclsyntax.TupleConsExpr)
	if !ok {
		c.report(OutputUnreadable, e.Range(), "shared_addresses is not a list written out")
		return
	}
	c.sharedRead = true
	for _, item := range list.Exprs {
		address, ok := constantText(item)
		if !ok {
			c.report(OutputUnreadable, item.Range(), "an address in shared_addresses is not written out")
			c.sharedRead = false
			continue
		}
		c.shared[withoutIndexes(address)] = true
		c.sharedAddress(address, item.Range())
	}
}

func (c *checker) sharedAddress(address string, at hcl.Range) {
	bare := withoutIndexes(address)
	in, r := c.find(bare)
	switch {
	case in == nil && c.insideUnread(bare):
	case in == nil:
		c.report(SharedUnknown, at, "shared_addresses names %q, which is no resource of this module", address)
	case in.place(r.block).perMachine:
		p := in.place(r.block)
		how, _ := in.follows(r, p, p.scope.uses(r.block.Body, resourceMeta()))
		if how == "" || bare == registryAddress {
			c.report(SharedPerMachine, at, "shared_addresses names %q, of which each machine has its own, and not for the endpoint", address)
		}
	case !in.takes(r):
		c.report(SharedUnused, at, "shared_addresses names %q, which takes nothing from the machines", address)
	}
}

// withoutIndexes is an address of a resource rather than of one of its instances.
func withoutIndexes(address string) string {
	for {
		before, rest, found := strings.Cut(address, "[")
		_, after, ended := strings.Cut(rest, "]")
		if !found || !ended {
			return address
		}
		address = before + after
	}
}

// find returns the managed resource of an address without indexes.
func (c *checker) find(address string) (*instance, *resource) {
	for _, in := range c.instances {
		rest, inside := strings.CutPrefix(address, in.path)
		if !inside {
			continue
		}
		if r := in.resources[rest]; r != nil && r.managed {
			return in, r
		}
	}
	return nil, nil
}

// insideUnread tells whether an address is in a module that was not read.
func (c *checker) insideUnread(address string) bool {
	for _, in := range c.instances {
		for name := range in.calls {
			if in.children[name] == nil && strings.HasPrefix(address, in.path+"module."+name+".") {
				return true
			}
		}
	}
	return false
}
