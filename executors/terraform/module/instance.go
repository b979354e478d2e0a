// SPDX-License-Identifier: Apache-2.0

package module

import (
	"path"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
)

const (
	// maxDepth and maxInstances end what only a hostile module does: calls in calls without end.
	maxDepth     = 8
	maxInstances = 300
)

// instance is a module as one call uses it: the same folder called twice may get the machines once.
type instance struct {
	*config
	checker  *checker
	path     string // before the addresses inside: module.NAME. for each call on the way
	parent   *instance
	call     *hclsyntax.Block
	children map[string]*instance // by call; those not read are missing

	known map[string]value // what was evaluated before, by reference
	busy  map[string]bool  // what is being evaluated: a circle ends there
}

// newInstance reads the local modules that a module calls, and theirs.
func (c *checker) newInstance(m *config, parent *instance, call *hclsyntax.Block) *instance {
	in := &instance{
		config: m, checker: c, parent: parent, call: call, children: map[string]*instance{},
		known: map[string]value{}, busy: map[string]bool{},
	}
	if parent != nil {
		in.path = parent.path + "module." + call.Labels[0] + "."
	}
	c.instances = append(c.instances, in)
	for _, b := range sorted(m.calls) {
		dir, local := in.source(b)
		if !local || len(c.instances) >= maxInstances || in.depth() >= maxDepth {
			continue
		}
		inside, err := c.load(dir)
		if err == nil && inside.files > 0 {
			in.children[b.Labels[0]] = c.newInstance(inside, in, b)
		}
	}
	return in
}

func (in *instance) depth() int {
	if in.parent == nil {
		return 0
	}
	return in.parent.depth() + 1
}

// source is the folder of a local module, relative to the root module.
func (in *instance) source(call *hclsyntax.Block) (string, bool) {
	source, ok := constantText(expression(call.Body, "source"))
	if !ok || !strings.HasPrefix(source, "./") && !strings.HasPrefix(source, "../") {
		return "", false
	}
	return path.Join(in.dir, source), true
}

// perMachine tells whether the module is called once for each machine.
func (in *instance) perMachine() bool {
	return in.parent != nil && (in.parent.perMachine() || in.parent.place(in.call).perMachine)
}

// once evaluates something, and ends circles.
func (in *instance) once(name string, eval func() value) value {
	if v, ok := in.known[name]; ok {
		return v
	}
	if in.busy[name] {
		return value{}
	}
	in.busy[name] = true
	v := eval()
	delete(in.busy, name)
	in.known[name] = v
	return v
}

func (in *instance) variable(name string) value {
	if in.parent == nil {
		switch name {
		case "machines":
			return machines()
		case "bootstrap":
			return bootstrap()
		}
		return value{}
	}
	return in.once("var."+name, func() value {
		e := expression(in.call.Body, name)
		if e == nil {
			return value{}
		}
		return in.parent.place(in.call).scope.eval(e).without(unguarded) // reported at the call
	})
}

// machines is var.machines of the root module.
func machines() value {
	fields := map[string]value{}
	for _, name := range contractFields() {
		fields[name] = value{kind: own}
	}
	fields["serving"] = value{kind: own}.with(serving, cause{})
	elem := value{kind: own, fields: fields}.with(serving, cause{})
	return value{kind: keyed, elem: &elem}.with(siblings, cause{})
}

// bootstrap is var.bootstrap of the root module.
func bootstrap() value {
	elem := value{kind: own}.with(userData, cause{})
	return value{kind: keyed, elem: &elem}.with(siblings, cause{}).with(userData, cause{})
}

func (in *instance) local(name string) value {
	return in.once("local."+name, func() value { return scope{in: in}.eval(in.locals[name]) })
}

// output is what a module gives to its caller.
func (in *instance) output(name string) value {
	return in.once("output."+name, func() value {
		if b := in.outputs[name]; b != nil {
			return scope{in: in}.eval(expression(b.Body, "value"))
		}
		return value{}
	})
}

// reference is what a traversal refers to.
func (s scope) reference(t hcl.Traversal) value {
	if t.IsRelative() {
		return value{}
	}
	v, used := s.base(t)
	for _, step := range t[min(used, len(t)):] {
		v = v.step(step)
	}
	return v.seenAt(cause{at: t.SourceRange(), text: written(t)})
}

// base is the thing that a traversal begins with, and how many steps name it.
func (s scope) base(t hcl.Traversal) (value, int) {
	root := t.RootName()
	if v, ok := s.bound[root]; ok {
		return v, 1
	}
	n := stepNames(t)
	if len(n) < 2 || n[1] == "[" {
		return value{}, 1
	}
	switch root {
	case "each":
		return s.each[n[1]], 2
	case "self", "path", "terraform", "count":
		return value{}, len(t)
	case "var":
		return s.in.variable(n[1]), 2
	case "local":
		return s.in.local(n[1]), 2
	case "module":
		return s.in.module(n)
	case "data":
		if len(n) < 3 {
			return value{}, 2
		}
		return s.in.resourceValue("data."+n[1]+"."+n[2], n[3:]), 3
	}
	return s.in.resourceValue(n[0]+"."+n[1], n[2:]), 2
}

// module is module.NAME, or module.NAME.OUTPUT of a module that all machines share.
func (in *instance) module(n []string) (value, int) {
	call := in.calls[n[1]]
	if call == nil {
		return value{}, 2
	}
	child, place := in.children[n[1]], in.place(call)
	switch {
	case place.perMachine && !in.perMachine():
		elem := in.moduleElement(n[1], child, place)
		return in.byName(place, elem), 2
	case child == nil:
		return in.moduleElement(n[1], nil, place), 2
	case len(n) > 2 && n[2] != "[":
		return child.output(n[2]), 3
	}
	return in.moduleElement(n[1], child, place), 2
}

// moduleElement is one call of a module, with its outputs.
func (in *instance) moduleElement(name string, child *instance, p place) value {
	if child == nil {
		return in.once("arguments "+name, func() value { return mixed(p.scope.arguments(in.calls[name])...) })
	}
	out := value{fields: map[string]value{}}
	if p.perMachine {
		out.kind = own
	}
	for _, b := range sorted(child.outputs) {
		out.fields[b.Labels[0]] = child.output(b.Labels[0])
	}
	return out
}

// changes tells whether anything in a module changes when a machine comes or goes.
func (in *instance) changes() bool {
	for _, r := range in.resources {
		if in.place(r.block).perMachine || in.takes(r) {
			return true
		}
	}
	return slices.ContainsFunc(sorted(in.children), (*instance).changes)
}

// arguments are the values that a call hands over.
func (s scope) arguments(call *hclsyntax.Block) []value {
	var out []value
	for _, a := range attributes(call.Body) {
		if !slices.Contains(callMeta(), a.Name) {
			out = append(out, s.eval(a.Expr))
		}
	}
	return out
}
