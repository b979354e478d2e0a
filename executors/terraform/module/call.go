// SPDX-License-Identifier: Apache-2.0

package module

import (
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
)

func stringValue(s string) cty.Value { return cty.StringVal(s) }

// call knows the functions that keep names as keys, and those that give a new value each time.
func (s scope) call(e *hclsyntax.FunctionCallExpr) value {
	switch e.Name {
	case "try", "can":
		s.guarded = true
		if e.Name == "try" {
			return either(s.evalAll(e.Args...)...)
		}
	case "lookup":
		return s.lookup(e)
	}
	args := s.evalAll(e.Args...)
	switch e.Name {
	case "timestamp", "plantimestamp", "uuid", "bcrypt":
		return mixed(args...).with(unstable, cause{at: e.NameRange, text: e.Name + "()"})
	case "coalesce", "tomap", "sensitive", "nonsensitive":
		return either(args...)
	case "merge":
		return merge(args)
	case "keys", "toset", "tolist", "sort":
		if len(args) == 1 {
			return listing(e.Name, args[0])
		}
	}
	out := mixed(args...)
	if c, ok := out.traits[siblings]; ok {
		out = out.seenAt(cause{at: c.at, text: e.Name + "(" + c.text + ")"})
	}
	return out
}

// lookup is the way to read var.bootstrap: without the key it gives the default.
func (s scope) lookup(e *hclsyntax.FunctionCallExpr) value {
	args := s.evalAll(e.Args...)
	if len(args) < 2 || args[0].kind != keyed || !args[1].isName {
		return mixed(args...)
	}
	s.guarded = len(args) > 2
	return mixed(append(args[2:], s.element(args[0], e.Range()))...)
}

// merge keeps names as keys when all of its arguments have them.
func merge(args []value) value {
	for _, a := range args {
		if a.kind != keyed {
			return mixed(args...)
		}
	}
	return either(args...)
}

// listing is keys() of a map of machines, and what is made of the list.
func listing(function string, v value) value {
	switch {
	case function == "keys" && v.kind == keyed:
		return value{kind: names, traits: v.traits}
	case function == "toset" && (v.kind == names || isNameSet(v)):
		return value{kind: keyed, traits: v.traits, elem: &value{kind: own, isName: true}}
	case function != "keys" && (v.kind == names || isNameSet(v)):
		return value{kind: names, traits: v.traits}
	}
	return mixed(v)
}

func isNameSet(v value) bool { return v.kind == keyed && v.elem != nil && v.elem.isName }
