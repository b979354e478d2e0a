// SPDX-License-Identifier: Apache-2.0

package terraform

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Machine is what is asked for, an entry of the module's variable machines. All of it but Serving is set once.
type Machine struct {
	Role              string `json:"role"`
	Pool              string `json:"pool"`
	KubernetesVersion string `json:"kubernetes_version"`
	Image             string `json:"image"`
	FailureDomain     string `json:"failure_domain"`
	Created           string `json:"created"`
	Serving           bool   `json:"serving"`
	// Values may be nil, which is null in Terraform and differs from an empty map there.
	Values map[string]string `json:"values"`
}

// Machines are the entries by machine name. The map is always written whole.
type Machines map[string]Machine

// parseMachine reads a registry entry. An attribute that the contract does not have would be lost with the next
// write of the map, so it must be null.
func parseMachine(name string, input json.RawMessage) (Machine, error) {
	var m Machine
	var attributes map[string]json.RawMessage
	if err := json.Unmarshal(input, &attributes); err != nil {
		return m, notAsContracted(name, "its input is no object")
	}
	if err := json.Unmarshal(input, &m); err != nil {
		return m, notAsContracted(name, "an attribute of its input has another type than the contract's")
	}
	for _, key := range contracted() {
		if _, ok := attributes[key]; !ok {
			return m, notAsContracted(name, fmt.Sprintf("its input lacks %q", key))
		}
		delete(attributes, key)
	}
	for _, key := range slices.Sorted(maps.Keys(attributes)) {
		if string(attributes[key]) != "null" {
			return m, notAsContracted(name, fmt.Sprintf("its input has %q, which contract 1 does not know; move it into values", key))
		}
	}
	return m, nil
}

func contracted() []string {
	return []string{"role", "pool", "kubernetes_version", "image", "failure_domain", "created", "serving", "values"}
}

func notAsContracted(name, why string) error {
	return &UnfitError{
		Problem: fmt.Sprintf("the registry entry %s is not as the contract asks: %s", registryAddress(name), why),
		Remedy:  `resource "terraform_data" "machine" must have for_each = var.machines and input = each.value`,
	}
}

const (
	registryType = "terraform_data"
	registryName = "machine"
	outputName   = "theseus"
)

func registryAddress(name string) string {
	return fmt.Sprintf("%s.%s[%q]", registryType, registryName, name)
}

func quotedList(names []string) string {
	quoted := make([]string, len(names))
	for i, n := range names {
		quoted[i] = fmt.Sprintf("%q", n)
	}
	return strings.Join(quoted, ", ")
}
