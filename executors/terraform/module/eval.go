// SPDX-License-Identifier: Apache-2.0

package module

import (
	"maps"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
)

// scope is where an expression stands.
type scope struct {
	in      *instance
	each    map[string]value // each.key and each.value; nil where there is no each
	bound   map[string]value // variables of for expressions and dynamic blocks
	guarded bool             // within try() or can()
}

func (s scope) bind(name string, v value) scope {
	if name == "" {
		return s
	}
	s.bound = maps.Clone(s.bound)
	if s.bound == nil {
		s.bound = map[string]value{}
	}
	s.bound[name] = v
	return s
}

// eval tells how an expression depends on the machines.
func (s scope) eval(e hclsyntax.Expression) value {
	switch e := e.(type) {
	case nil:
		return value{}
	case *hclsyntax.ScopeTraversalExpr:
		return s.reference(e.Traversal)
	case *hclsyntax.RelativeTraversalExpr:
		v := s.eval(e.Source)
		for _, t := range e.Traversal {
			v = v.step(t)
		}
		return v
	case *hclsyntax.IndexExpr:
		return s.index(e)
	case *hclsyntax.ForExpr:
		return s.forExpr(e)
	case *hclsyntax.FunctionCallExpr:
		return s.call(e)
	case *hclsyntax.ConditionalExpr:
		return s.conditional(e)
	case *hclsyntax.ObjectConsExpr:
		return s.object(e)
	}
	return s.wrapped(e)
}

// wrapped sees through what only encloses an expression.
func (s scope) wrapped(e hclsyntax.Expression) value {
	switch e := e.(type) {
	case *hclsyntax.ParenthesesExpr:
		return s.eval(e.Expression)
	case *hclsyntax.TemplateWrapExpr:
		return s.eval(e.Wrapped)
	case *hclsyntax.ObjectConsKeyExpr:
		if hcl.ExprAsKeyword(e.Wrapped) != "" && !e.ForceNonLiteral {
			return value{}
		}
		return s.eval(e.Wrapped)
	}
	return mixed(s.parts(e)...)
}

// parts are the values inside an expression that keeps no structure of theirs.
func (s scope) parts(e hclsyntax.Expression) []value {
	switch e := e.(type) {
	case *hclsyntax.SplatExpr:
		return s.evalAll(e.Source)
	case *hclsyntax.BinaryOpExpr:
		return s.evalAll(e.LHS, e.RHS)
	case *hclsyntax.UnaryOpExpr:
		return s.evalAll(e.Val)
	case *hclsyntax.TemplateExpr:
		return s.evalAll(e.Parts...)
	case *hclsyntax.TemplateJoinExpr:
		return s.evalAll(e.Tuple)
	case *hclsyntax.TupleConsExpr:
		return s.evalAll(e.Exprs...)
	}
	var out []value
	for _, t := range e.Variables() {
		out = append(out, s.reference(t))
	}
	return out
}

func (s scope) evalAll(list ...hclsyntax.Expression) []value {
	out := make([]value, 0, len(list))
	for _, e := range list {
		out = append(out, s.eval(e))
	}
	return out
}

// index is COLLECTION[KEY]: the one right way from machine to machine when KEY is the machine's own name.
func (s scope) index(e *hclsyntax.IndexExpr) value {
	collection, key := s.eval(e.Collection), s.eval(e.Key)
	if collection.kind == keyed && key.isName {
		return s.element(collection, e.SrcRange)
	}
	if name, ok := constantText(e.Key); ok && collection.kind != keyed {
		return collection.step(hcl.TraverseIndex{Key: stringValue(name)})
	}
	return mixed(collection, key)
}

func (s scope) element(collection value, at hcl.Range) value {
	v := value{kind: own}
	if collection.elem != nil {
		v = collection.elem.seenAt(cause{at: at, text: "a value of several machines"})
	}
	if v.kind == plain {
		v.kind = own
	}
	if c, boot := collection.traits[userData]; boot && !s.guarded {
		v = v.with(unguarded, c)
	}
	return v
}

func (s scope) conditional(e *hclsyntax.ConditionalExpr) value {
	condition := mixed(s.eval(e.Condition))
	v := either(s.eval(e.TrueResult), s.eval(e.FalseResult)).withAll(condition)
	if v.kind < condition.kind && v.kind != keyed {
		v.kind, v.isName = condition.kind, false
	}
	return v
}

// object keeps its attributes apart, so that local.x.y is judged by y alone.
func (s scope) object(e *hclsyntax.ObjectConsExpr) value {
	var parts []value
	fields := map[string]value{}
	for _, item := range e.Items {
		v := s.eval(item.ValueExpr)
		parts = append(parts, s.eval(item.KeyExpr), v)
		name, ok := itemName(item)
		switch {
		case !ok:
			fields = nil // any name may be meant
		case fields != nil:
			fields[name] = v
		}
	}
	out := mixed(parts...)
	out.fields = fields
	return out
}

// itemName is the name of an object's attribute when it is written out.
func itemName(item hclsyntax.ObjectConsItem) (string, bool) {
	if name := hcl.ExprAsKeyword(item.KeyExpr); name != "" {
		return name, true
	}
	return constantText(item.KeyExpr)
}

// forExpr keeps machine names as keys when the expression does.
func (s scope) forExpr(e *hclsyntax.ForExpr) value {
	collection := s.eval(e.CollExpr)
	inner := s.bindLoop(e, collection)
	key, val, cond := inner.eval(e.KeyExpr), inner.eval(e.ValExpr), inner.eval(e.CondExpr)
	if e.KeyExpr == nil || !key.isName || e.Group || collection.kind != keyed && collection.kind != names {
		return mixed(collection, key, val, cond)
	}
	out := value{kind: keyed, elem: &val}
	return out.withAll(collection).withAll(mixed(cond))
}

func (s scope) bindLoop(e *hclsyntax.ForExpr, collection value) scope {
	name := value{kind: own, isName: true}
	switch collection.kind {
	case keyed:
		elem := value{kind: own}
		if collection.elem != nil {
			elem = *collection.elem
		}
		return s.bind(e.ValVar, elem).bind(e.KeyVar, name)
	case names:
		// The position of a name changes with its siblings.
		return s.bind(e.ValVar, name).bind(e.KeyVar, mixed(collection))
	case plain, own, whole:
	}
	return s.bind(e.ValVar, mixed(collection)).bind(e.KeyVar, mixed(collection))
}
