// SPDX-License-Identifier: Apache-2.0

package module

import (
	"maps"

	"github.com/hashicorp/hcl/v2"
)

// kind tells how an expression depends on the map of machines.
type kind int

const (
	// plain is the same whatever machines there are.
	plain kind = iota
	// own comes from one machine: the one whose resource this is.
	own
	// keyed is a map, or a set, whose keys are machine names.
	keyed
	// names is a list of machine names, as keys() gives it.
	names
	// whole comes from several machines, and not by name.
	whole
)

// trait is something that makes an expression dangerous in some places.
type trait int

const (
	// siblings: it changes when another machine comes or goes.
	siblings trait = iota
	// serving: it changes when the machine joins or leaves the endpoint.
	serving
	// userData: it comes from var.bootstrap, which holds a machine's key only while that machine is created.
	userData
	// unguarded: it reads a key of var.bootstrap that is missing later.
	unguarded
	// unstable: it has a new value in every plan.
	unstable
	// newestImage: it is an image that somebody's upload changes.
	newestImage
	// imageByName: it is an image looked up by its name, which can be given to another image.
	imageByName
	// registryOutput: it is unknown while the registry's entry is updated.
	registryOutput
	// sharedValue: it comes from a resource that changes with the map of machines.
	sharedValue
)

// cause is where a trait was seen, and how the module's author wrote it.
type cause struct {
	at   hcl.Range
	text string
}

// value is what is known of an expression without evaluating it.
type value struct {
	kind   kind
	isName bool // the machine's own name
	// traits of the whole; those of a keyed value are of its keys, its elements have their own in elem.
	traits map[trait]cause
	fields map[string]value // of an object whose attributes are known
	elem   *value           // of a keyed value
}

func (v value) has(t trait) bool {
	_, ok := v.traits[t]
	return ok
}

// with returns v with a trait. One that is there already keeps its first cause.
func (v value) with(t trait, c cause) value {
	if v.has(t) {
		return v
	}
	v.traits = maps.Clone(v.traits)
	if v.traits == nil {
		v.traits = map[trait]cause{}
	}
	v.traits[t] = c
	return v
}

// without returns v free of a trait.
func (v value) without(t trait) value {
	if v.has(t) {
		v.traits = maps.Clone(v.traits)
		delete(v.traits, t)
	}
	return v
}

// seenAt moves the blame for siblings to the place where the author wrote the reference.
func (v value) seenAt(c cause) value {
	if v.has(siblings) {
		v = v.without(siblings).with(siblings, c)
	}
	return v
}

// mixed is what an expression made of these values is: structure is lost, traits stay.
func mixed(parts ...value) value {
	var out value
	for _, p := range parts {
		out.kind = max(out.kind, flat(p.kind))
		out = out.withAll(p)
		if p.elem != nil {
			out = out.withAll(*p.elem)
		}
	}
	return out
}

func flat(k kind) kind {
	if k == keyed || k == names {
		return whole
	}
	return k
}

func (v value) withAll(other value) value {
	for t := siblings; t <= sharedValue; t++ {
		if c, ok := other.traits[t]; ok {
			v = v.with(t, c)
		}
	}
	return v
}

// either is one of the values: structure stays when all that have one agree.
func either(parts ...value) value {
	var structured []value
	for _, p := range parts {
		if p.kind != plain {
			structured = append(structured, p)
		}
	}
	if len(structured) == 0 {
		return mixed(parts...)
	}
	first := structured[0]
	out := mixed(parts...)
	for _, p := range structured[1:] {
		if p.kind != first.kind || p.isName != first.isName {
			return out
		}
	}
	if first.kind == own && len(structured) < len(parts) {
		return out
	}
	if len(structured) == 1 {
		for _, p := range parts {
			first = first.withAll(p)
		}
		return first
	}
	return sameKind(first, structured, out)
}

// sameKind merges values of one kind.
func sameKind(first value, all []value, flattened value) value {
	out := value{kind: first.kind, isName: first.isName, traits: flattened.traits}
	if first.kind != keyed {
		return out
	}
	out.traits = nil
	var elems []value
	for _, p := range all {
		out = out.withAll(p)
		if p.elem != nil {
			elems = append(elems, *p.elem)
		}
	}
	elem := either(elems...)
	out.elem = &elem
	return out
}

// step follows one step of a traversal.
func (v value) step(t hcl.Traverser) value {
	key, named := stepName(t)
	switch {
	case v.kind == keyed || v.kind == names:
		return mixed(v) // a machine named in the code, or an attribute of all
	case named && v.fields != nil:
		if f, ok := v.fields[key]; ok {
			return f
		}
		return value{kind: v.kind}
	}
	v.isName = false
	return v
}

func stepName(t hcl.Traverser) (string, bool) {
	switch t := t.(type) {
	case hcl.TraverseAttr:
		return t.Name, true
	case hcl.TraverseIndex:
		return text(t.Key)
	}
	return "", false
}
