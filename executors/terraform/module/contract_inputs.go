// SPDX-License-Identifier: Apache-2.0

package module

import (
	"fmt"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/ext/typeexpr"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
)

// contractFields are the attributes of an entry of var.machines.
func contractFields() []string {
	return []string{"role", "pool", "kubernetes_version", "image", "failure_domain", "created", "serving", "values"}
}

func contractType(field string) cty.Type {
	switch field {
	case "serving":
		return cty.Bool
	case "values":
		return cty.Map(cty.String)
	}
	return cty.String
}

func entryType() cty.Type {
	fields := map[string]cty.Type{}
	for _, name := range contractFields() {
		fields[name] = contractType(name)
	}
	return cty.Object(fields)
}

func (c *checker) machinesVariable(root *instance) {
	b := root.variables["machines"]
	if b == nil {
		c.report(MachinesMissing, root.start(), "there is no variable machines")
		return
	}
	if e := expression(b.Body, "type"); e == nil {
		c.report(MachinesType, b.DefRange(), "variable machines has no type")
	} else if wrong := wrongEntries(e); wrong != "" {
		c.report(MachinesType, e.Range(), "variable machines: %s", wrong)
	}
	if a := b.Body.Attributes["default"]; a != nil {
		c.report(MachinesDefault, a.NameRange, "variable machines has a default")
	}
	if e := expression(b.Body, "nullable"); e == nil {
		c.report(MachinesNullable, b.DefRange(), "variable machines may be null")
	} else if !isBool(e, false) {
		c.report(MachinesNullable, e.Range(), "variable machines may be null")
	}
	c.validation(b)
}

// wrongEntries says in which way a type is not the contract's; nothing when it is.
func wrongEntries(e hclsyntax.Expression) string {
	t, _, diagnostics := typeexpr.TypeConstraintWithDefaults(e)
	switch {
	case diagnostics.HasErrors():
		return "its type can't be read"
	case !t.IsMapType():
		return "its type is no map"
	case !t.ElementType().IsObjectType():
		return "its entries are no objects"
	}
	var wrong []string
	entry := t.ElementType()
	for _, name := range contractFields() {
		switch {
		case !entry.HasAttribute(name):
			wrong = append(wrong, name+" is missing")
		case entry.AttributeOptional(name):
			wrong = append(wrong, name+" is optional")
		case !entry.AttributeType(name).Equals(contractType(name)):
			wrong = append(wrong, fmt.Sprintf("%s is %s, not %s", name,
				typeexpr.TypeString(entry.AttributeType(name)), typeexpr.TypeString(contractType(name))))
		}
	}
	for name := range entry.AttributeTypes() {
		if !slices.Contains(contractFields(), name) && !entry.AttributeOptional(name) {
			wrong = append(wrong, name+" is not in the contract (what differs between machines goes into values)")
		}
	}
	slices.Sort(wrong)
	return strings.Join(wrong, ", ")
}

// validation looks for a condition that is false for {}.
func (c *checker) validation(b *hclsyntax.Block) {
	unclear := hcl.Range{}
	for _, v := range b.Body.Blocks {
		if v.Type != "validation" {
			continue
		}
		condition := expression(v.Body, "condition")
		if condition == nil {
			continue
		}
		switch holdsForNoMachines(condition) {
		case no:
			return
		case unknown:
			unclear = condition.Range()
		case yes:
		}
	}
	if unclear.Filename != "" {
		c.report(ValidationUnclear, unclear, "this condition can't be evaluated here, so perhaps variable machines accepts {}")
		return
	}
	c.report(MachinesValidation, b.DefRange(), "variable machines accepts {}")
}

func (c *checker) bootstrapVariable(root *instance) {
	b := root.variables["bootstrap"]
	if b == nil {
		c.report(BootstrapMissing, root.start(), "there is no variable bootstrap")
		return
	}
	at := func(name string) hcl.Range {
		if a := b.Body.Attributes[name]; a != nil {
			return a.NameRange
		}
		return b.DefRange()
	}
	t := cty.DynamicPseudoType
	if e := expression(b.Body, "type"); e != nil {
		t, _, _ = typeexpr.TypeConstraintWithDefaults(e)
	}
	if !t.Equals(cty.Map(cty.String)) {
		c.report(BootstrapType, at("type"), "variable bootstrap is not a map of strings")
	}
	if !isBool(expression(b.Body, "sensitive"), true) {
		c.report(BootstrapSensitive, at("sensitive"), "variable bootstrap is not sensitive")
	}
	if v, ok := constant(expression(b.Body, "default")); !ok || v.IsNull() || !v.CanIterateElements() || v.LengthInt() > 0 {
		c.report(BootstrapDefault, at("default"), "variable bootstrap is not empty by default")
	}
}
