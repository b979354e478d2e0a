// SPDX-License-Identifier: Apache-2.0

package module

import (
	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/ext/tryfunc"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/function"
	"github.com/zclconf/go-cty/cty/function/stdlib"
)

type verdict int

const (
	unknown verdict = iota // the condition uses what is not known here
	yes
	no
)

// holdsForNoMachines evaluates a condition as Terraform would for machines = {}.
func holdsForNoMachines(e hclsyntax.Expression) verdict {
	v, diagnostics := e.Value(&hcl.EvalContext{
		Variables: map[string]cty.Value{"var": cty.ObjectVal(map[string]cty.Value{"machines": cty.MapValEmpty(entryType())})},
		Functions: conditionFunctions(),
	})
	switch {
	case diagnostics.HasErrors() || !v.IsKnown() || v.IsNull() || !v.Type().Equals(cty.Bool):
		return unknown
	case v.True():
		return yes
	}
	return no
}

// conditionFunctions are those of Terraform's that validations of a map are written with.
func conditionFunctions() map[string]function.Function {
	return map[string]function.Function{
		"alltrue": quantifier(true), "anytrue": quantifier(false), "can": tryfunc.CanFunc, "try": tryfunc.TryFunc,
		"length": stdlib.LengthFunc, "keys": stdlib.KeysFunc, "values": stdlib.ValuesFunc, "contains": stdlib.ContainsFunc,
		"regex": stdlib.RegexFunc, "regexall": stdlib.RegexAllFunc, "lookup": stdlib.LookupFunc, "concat": stdlib.ConcatFunc,
		"distinct": stdlib.DistinctFunc, "flatten": stdlib.FlattenFunc, "max": stdlib.MaxFunc, "min": stdlib.MinFunc,
		"toset": stdlib.MakeToFunc(cty.Set(cty.DynamicPseudoType)), "tolist": stdlib.MakeToFunc(cty.List(cty.DynamicPseudoType)),
	}
}

// quantifier is alltrue, or anytrue: of no elements, and of some.
func quantifier(all bool) function.Function {
	return function.New(&function.Spec{
		Params: []function.Parameter{{Name: "list", Type: cty.List(cty.Bool)}},
		Type:   function.StaticReturnType(cty.Bool),
		Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
			for _, v := range args[0].AsValueSlice() {
				switch {
				case !v.IsKnown():
					return cty.UnknownVal(cty.Bool), nil
				case v.IsNull() || v.True() != all:
					return cty.BoolVal(!all), nil
				}
			}
			return cty.BoolVal(all), nil
		},
	})
}
