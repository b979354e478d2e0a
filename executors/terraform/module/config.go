// SPDX-License-Identifier: Apache-2.0

package module

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
)

// config is what stands in one folder.
type config struct {
	dir   string
	files int             // *.tf files and those that are not read
	first string          // main.tf, or the first of them
	lock  *hclsyntax.Body // .terraform.lock.hcl; nil when there is none

	variables, outputs, calls map[string]*hclsyntax.Block
	locals                    map[string]hclsyntax.Expression
	resources                 map[string]*resource // by TYPE.NAME or data.TYPE.NAME
	providers, terraform      []*hclsyntax.Block
}

// resource is a resource or data block.
type resource struct {
	address   string // TYPE.NAME or data.TYPE.NAME
	kind      string // TYPE
	managed   bool
	block     *hclsyntax.Block
	lifecycle *hclsyntax.Body
}

func newConfig(dir string) *config {
	return &config{
		dir: dir, variables: map[string]*hclsyntax.Block{}, outputs: map[string]*hclsyntax.Block{},
		calls: map[string]*hclsyntax.Block{}, locals: map[string]hclsyntax.Expression{}, resources: map[string]*resource{},
	}
}

// add takes in one file. Of two blocks with one name the first counts; terraform validate refuses the second.
func (m *config) add(body *hclsyntax.Body) {
	named := map[string]map[string]*hclsyntax.Block{"variable": m.variables, "output": m.outputs, "module": m.calls}
	for _, b := range body.Blocks {
		if to := named[b.Type]; to != nil && len(b.Labels) == 1 {
			addBlock(to, b)
			continue
		}
		switch b.Type {
		case "provider":
			m.providers = append(m.providers, b)
		case "terraform":
			m.terraform = append(m.terraform, b)
		case "locals":
			m.addLocals(b)
		case "resource", "data":
			m.addResource(b)
		}
	}
}

func (m *config) addLocals(b *hclsyntax.Block) {
	for _, a := range attributes(b.Body) {
		if _, taken := m.locals[a.Name]; !taken {
			m.locals[a.Name] = a.Expr
		}
	}
}

func addBlock(to map[string]*hclsyntax.Block, b *hclsyntax.Block) {
	if _, taken := to[b.Labels[0]]; !taken {
		to[b.Labels[0]] = b
	}
}

func (m *config) addResource(b *hclsyntax.Block) {
	if len(b.Labels) != 2 {
		return
	}
	r := &resource{address: b.Labels[0] + "." + b.Labels[1], kind: b.Labels[0], managed: b.Type == "resource", block: b}
	if !r.managed {
		r.address = "data." + r.address
	}
	if l := child(b.Body, "lifecycle"); l != nil {
		r.lifecycle = l.Body
	}
	if _, taken := m.resources[r.address]; !taken {
		m.resources[r.address] = r
	}
}

// sorted returns a map's values in the order of their keys.
func sorted[V any](m map[string]V) []V {
	out := make([]V, 0, len(m))
	for _, k := range slices.Sorted(maps.Keys(m)) {
		out = append(out, m[k])
	}
	return out
}

// attributes returns a body's attributes in the order in which they are written.
func attributes(b *hclsyntax.Body) []*hclsyntax.Attribute {
	return slices.SortedFunc(maps.Values(b.Attributes), func(a, b *hclsyntax.Attribute) int {
		return cmp.Compare(a.NameRange.Start.Byte, b.NameRange.Start.Byte)
	})
}

// child returns the first nested block of a type; nil when there is none.
func child(b *hclsyntax.Body, kind string) *hclsyntax.Block {
	i := slices.IndexFunc(b.Blocks, func(c *hclsyntax.Block) bool { return c.Type == kind })
	if i < 0 {
		return nil
	}
	return b.Blocks[i]
}

// expression returns an attribute's expression; nil when it is not set.
func expression(b *hclsyntax.Body, name string) hclsyntax.Expression {
	if b == nil || b.Attributes[name] == nil {
		return nil
	}
	return b.Attributes[name].Expr
}

// text returns a string that is known here.
func text(v cty.Value) (string, bool) {
	if v == cty.NilVal || !v.IsKnown() || v.IsNull() || v.IsMarked() || !v.Type().Equals(cty.String) {
		return "", false
	}
	return v.AsString(), true
}

// constant evaluates an expression that refers to nothing.
func constant(e hclsyntax.Expression) (cty.Value, bool) {
	if e == nil || len(e.Variables()) > 0 {
		return cty.NilVal, false
	}
	v, diagnostics := e.Value(nil)
	if diagnostics.HasErrors() || !v.IsWhollyKnown() {
		return cty.NilVal, false
	}
	return v, true
}

func constantText(e hclsyntax.Expression) (string, bool) {
	v, ok := constant(e)
	if !ok {
		return "", false
	}
	return text(v)
}

// isBool tells whether an expression is that very bool.
func isBool(e hclsyntax.Expression, want bool) bool {
	v, ok := constant(e)
	return ok && v.Type().Equals(cty.Bool) && !v.IsNull() && v.True() == want
}

// isReference tells whether an expression is nothing but that reference, such as var.machines.
func isReference(e hclsyntax.Expression, want ...string) bool {
	for {
		switch inner := e.(type) {
		case *hclsyntax.ParenthesesExpr:
			e = inner.Expression
		case *hclsyntax.TemplateWrapExpr:
			e = inner.Wrapped
		case *hclsyntax.ScopeTraversalExpr:
			return slices.Equal(stepNames(inner.Traversal), want)
		default:
			return false
		}
	}
}

// stepNames are the names of a traversal up to the first index.
func stepNames(t hcl.Traversal) []string {
	var out []string
	for _, s := range t {
		switch s := s.(type) {
		case hcl.TraverseRoot:
			out = append(out, s.Name)
		case hcl.TraverseAttr:
			out = append(out, s.Name)
		default:
			return append(out, "[")
		}
	}
	return out
}

// written is a traversal as its author wrote it.
func written(t hcl.Traversal) string {
	var b strings.Builder
	for _, s := range t {
		switch s := s.(type) {
		case hcl.TraverseRoot:
			b.WriteString(s.Name)
		case hcl.TraverseAttr:
			b.WriteString("." + s.Name)
		case hcl.TraverseIndex:
			if name, ok := text(s.Key); ok {
				b.WriteString(`["` + name + `"]`)
			} else if s.Key.Type().Equals(cty.Number) && s.Key.IsKnown() && !s.Key.IsNull() {
				b.WriteString("[" + s.Key.AsBigFloat().Text('f', -1) + "]")
			}
		case hcl.TraverseSplat:
			b.WriteString("[*]")
		}
	}
	return b.String()
}
