// SPDX-License-Identifier: Apache-2.0

package module

import (
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
)

// resourceMeta are Terraform's own arguments in resources and data sources, callMeta those in module calls.
func resourceMeta() []string { return []string{"for_each", "count", "depends_on", "provider"} }
func callMeta() []string {
	return []string{"for_each", "count", "depends_on", "providers", "source", "version"}
}

// place is how often a resource, data source or module call exists, and what its expressions can see.
type place struct {
	perMachine bool  // once for each machine, as far as its author means it
	repeat     value // what for_each or count is made of
	counted    bool  // it has count
	scope      scope
}

// place looks at for_each and count.
func (in *instance) place(b *hclsyntax.Block) place {
	out := place{perMachine: in.perMachine(), scope: scope{in: in}}
	if e := expression(b.Body, "count"); e != nil {
		out.counted, out.repeat = true, in.repeat(b, e)
		out.perMachine = out.perMachine || out.repeat.has(siblings)
		return out
	}
	e := expression(b.Body, "for_each")
	if e == nil {
		return out
	}
	v := in.repeat(b, e)
	out.repeat = v
	key, elem := value{kind: flat(v.kind)}, mixed(v)
	switch {
	case v.kind == keyed:
		out.perMachine = true
		key, elem = value{kind: own, isName: true}, value{kind: own}
		if v.elem != nil {
			elem = *v.elem
		}
	case v.has(siblings):
		// Reported where for_each stands; inside it is taken for what its author means.
		out.perMachine = true
		key, elem = value{kind: own, isName: true}, value{kind: own}
	}
	out.scope.each = map[string]value{"key": key, "value": elem}
	return out
}

func (in *instance) repeat(b *hclsyntax.Block, e hclsyntax.Expression) value {
	return in.once("repeat "+b.Type+" "+strings.Join(b.Labels, "."), func() value { return scope{in: in}.eval(e) })
}

// resourceValue is what TYPE.NAME or data.TYPE.NAME gives to an expression that goes on with those steps.
func (in *instance) resourceValue(address string, rest []string) value {
	r := in.resources[address]
	if r == nil {
		return value{}
	}
	p := in.place(r.block)
	elem := in.once(address, func() value { return in.element(r, p) })
	switch {
	case p.perMachine && (p.counted && p.repeat.has(siblings) || p.scope.each["key"].isName):
		return in.byName(p, elem)
	case p.perMachine:
		elem.kind = own // the only one in a module that is called for each machine
		return elem
	case in.takes(r) && !isStable(rest):
		return elem.with(sharedValue, cause{text: address})
	}
	return elem
}

// isStable tells whether an attribute stays the same while its resource is updated.
func isStable(rest []string) bool {
	return len(rest) > 0 && slices.Contains([]string{"id", "arn", "name", "self_link"}, rest[len(rest)-1])
}

// element is one instance of a resource.
func (in *instance) element(r *resource, p place) value {
	out := value{}
	if p.perMachine {
		out.kind = own
	}
	if in.parent == nil && r.address == registryAddress {
		output := value{kind: own}.with(registryOutput, cause{})
		out.fields = map[string]value{"id": out, "input": p.scope.each["value"], "output": output}
		return out.with(registryOutput, cause{})
	}
	if r.managed {
		return out
	}
	if t, ok := imageLookup(r); ok {
		out = out.with(t, cause{text: r.address})
	}
	for _, u := range p.scope.uses(r.block.Body, resourceMeta()) {
		if u.value.has(userData) {
			out = out.with(userData, cause{})
		}
	}
	return out
}

// takes tells whether a shared resource changes when a machine comes or goes.
func (in *instance) takes(r *resource) bool {
	v := in.once("takes "+r.address, func() value {
		p := in.place(r.block)
		if p.perMachine {
			return value{}
		}
		for _, u := range p.scope.uses(r.block.Body, resourceMeta()) {
			if u.value.has(siblings) {
				return value{kind: whole}
			}
		}
		return value{}
	})
	return v.kind == whole
}

// use is an argument of a resource and what it is made of.
type use struct {
	argument    string // the resource's own argument or block that holds it
	at          hcl.Range
	value       value
	provisioner bool // of a provisioner or its connection: nothing that a plan compares
}

// uses are all arguments of a body but those named.
func (s scope) uses(body *hclsyntax.Body, but []string) []use {
	var out []use
	for _, a := range attributes(body) {
		if !slices.Contains(but, a.Name) {
			out = append(out, use{argument: a.Name, at: a.NameRange, value: s.eval(a.Expr)})
		}
	}
	for _, b := range body.Blocks {
		name := b.Type
		if name == "dynamic" && len(b.Labels) == 1 {
			name = b.Labels[0]
		}
		for _, u := range s.nested(b) {
			u.argument = name
			u.provisioner = u.provisioner || b.Type == "provisioner" || b.Type == "connection"
			out = append(out, u)
		}
	}
	return out
}

// nested are the arguments of a block inside a resource.
func (s scope) nested(b *hclsyntax.Block) []use {
	if b.Type == "lifecycle" {
		return nil
	}
	var out []use
	if b.Type == "dynamic" && len(b.Labels) == 1 {
		iterator := b.Labels[0]
		if e := expression(b.Body, "iterator"); e != nil {
			iterator = hcl.ExprAsKeyword(e)
		}
		if a := b.Body.Attributes["for_each"]; a != nil {
			v := s.eval(a.Expr)
			out = append(out, use{at: a.NameRange, value: v})
			item := mixed(v).without(siblings) // reported once, here
			s = s.bind(iterator, item)
		}
		if content := child(b.Body, "content"); content != nil {
			return append(out, s.uses(content.Body, nil)...)
		}
		return out
	}
	return s.uses(b.Body, nil)
}
