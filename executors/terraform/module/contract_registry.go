// SPDX-License-Identifier: Apache-2.0

package module

import "github.com/hashicorp/hcl/v2"

const registryAddress = "terraform_data.machine"

func (c *checker) registry(root *instance) {
	r := root.resources[registryAddress]
	if r == nil {
		c.report(RegistryMissing, root.start(), "there is no %s", registryAddress)
		return
	}
	at := func(name string) hcl.Range {
		if a := r.block.Body.Attributes[name]; a != nil {
			return a.NameRange
		}
		return r.block.DefRange()
	}
	if !isReference(expression(r.block.Body, "for_each"), "var", "machines") {
		c.report(RegistryForEach, at("for_each"), "%s is not made for each of var.machines", registryAddress)
	}
	if !isReference(expression(r.block.Body, "input"), "each", "value") {
		c.report(RegistryInput, at("input"), "%s does not keep the entry as it is", registryAddress)
	}
	if a := r.block.Body.Attributes["triggers_replace"]; a != nil {
		c.report(RegistryExtra, a.NameRange, "%s has triggers_replace", registryAddress)
	}
	for _, b := range r.block.Body.Blocks {
		c.report(RegistryExtra, b.DefRange(), "%s has a %s block", registryAddress, b.Type)
	}
}
