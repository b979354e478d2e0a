// SPDX-License-Identifier: Apache-2.0

package terraform

import (
	"encoding/json"
	"fmt"

	"github.com/hashicorp/hcl/v2/hclwrite"
	"github.com/zclconf/go-cty/cty"
)

// Format is the map as a file of variables: tfvars, or tfvars.json.
func (all Machines) Format(asJSON bool) ([]byte, error) {
	if asJSON {
		data, err := json.MarshalIndent(map[string]Machines{"machines": all}, "", "  ")
		if err != nil {
			return nil, fmt.Errorf("the map of machines: %w", err)
		}
		return append(data, '\n'), nil
	}
	entries := map[string]cty.Value{}
	for name, m := range all {
		entries[name] = m.value()
	}
	file := hclwrite.NewEmptyFile()
	file.Body().SetAttributeValue("machines", cty.ObjectVal(entries))
	return file.Bytes(), nil
}

func (m Machine) value() cty.Value {
	values := cty.NullVal(cty.Map(cty.String))
	if m.Values != nil {
		each := map[string]cty.Value{}
		for key, value := range m.Values {
			each[key] = cty.StringVal(value)
		}
		values = cty.ObjectVal(each)
	}
	return cty.ObjectVal(map[string]cty.Value{
		"role": cty.StringVal(m.Role), "pool": cty.StringVal(m.Pool), "kubernetes_version": cty.StringVal(m.KubernetesVersion),
		"image": cty.StringVal(m.Image), "failure_domain": cty.StringVal(m.FailureDomain), "created": cty.StringVal(m.Created),
		"serving": cty.BoolVal(m.Serving), "values": values,
	})
}
