// SPDX-License-Identifier: Apache-2.0

package terraform

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// State is what Terraform knows of the cluster's machines.
type State struct {
	// Lineage names the state for its whole life; Serial grows with each change.
	Lineage string
	Serial  uint64
	// Registry is what was asked for, by machine name. Only Instances tell what exists.
	Registry Machines
	// Instances are the resource instances of each machine of the registry, without the registry's own, sorted by address.
	Instances map[string][]Instance
	Output    Output
}

// Instance is a resource instance that belongs to a machine.
type Instance struct {
	Address string
	// Tainted: its creation failed half-way, and Terraform would replace it. Deposed: an old object that a
	// replacement left behind.
	Tainted, Deposed bool
}

// Missing reports that a machine is asked for, but nothing of it exists.
func (s *State) Missing(machine string) bool {
	_, asked := s.Registry[machine]
	return asked && len(s.Instances[machine]) == 0
}

// Broken reports that something of a machine is tainted or deposed: it is never completed, but dropped.
func (s *State) Broken(machine string) bool {
	return slices.ContainsFunc(s.Instances[machine], func(i Instance) bool { return i.Tainted || i.Deposed })
}

// rawState is the format of `state pull`, version 4 since Terraform 0.12, in OpenTofu too. It is read rather than
// `show -json`, which lacks lineage and serial and starts every provider for its schema.
type rawState struct {
	Version int    `json:"version"`
	Serial  uint64 `json:"serial"`
	Lineage string `json:"lineage"`
	Outputs map[string]struct {
		Value     json.RawMessage `json:"value"`
		Sensitive bool            `json:"sensitive"`
	} `json:"outputs"`
	Resources []rawResource `json:"resources"`
}

type rawResource struct {
	Module    string        `json:"module"`
	Mode      string        `json:"mode"`
	Type      string        `json:"type"`
	Name      string        `json:"name"`
	Instances []rawInstance `json:"instances"`
}

type rawInstance struct {
	IndexKey   any    `json:"index_key"`
	Status     string `json:"status"`
	Deposed    string `json:"deposed"`
	Attributes struct {
		// Input of terraform_data has a dynamic type, so it is stored with it.
		Input struct {
			Value json.RawMessage `json:"value"`
		} `json:"input"`
	} `json:"attributes"`
}

func (r rawResource) registry() bool {
	return r.Module == "" && r.Mode == "managed" && r.Type == registryType && r.Name == registryName
}

func (r rawResource) address(index any) string {
	address := r.Type + "." + r.Name
	if r.Module != "" {
		address = r.Module + "." + address
	}
	switch i := index.(type) {
	case string:
		return address + "[" + strconv.Quote(i) + "]"
	case json.Number:
		return address + "[" + i.String() + "]"
	}
	return address
}

func parseRaw(data []byte) (rawState, error) {
	var raw rawState
	if len(strings.TrimSpace(string(data))) == 0 {
		return raw, noState()
	}
	decoder := json.NewDecoder(strings.NewReader(string(data)))
	decoder.UseNumber()
	var format struct{ Version int }
	if err := json.Unmarshal(data, &format); err != nil {
		return raw, fmt.Errorf("the state is not JSON: it begins with %d bytes of something else", len(data))
	}
	if format.Version != 4 {
		return raw, &UnfitError{Problem: fmt.Sprintf("the state has format version %d, and only 4 is known", format.Version), Remedy: "use a newer Theseus, or a Terraform that writes version 4"}
	}
	return raw, decoder.Decode(&raw)
}

func noState() error {
	return &UnfitError{Problem: "there is no Terraform state yet in this backend and workspace", Remedy: "check backend and workspace, and apply the module once yourself; Theseus never makes a cluster's first machines"}
}

func (raw rawState) state(cluster string) (*State, error) {
	if len(raw.Resources) == 0 && len(raw.Outputs) == 0 {
		return nil, noState()
	}
	output, err := parseOutput(raw.Outputs[outputName].Value, cluster)
	if err != nil {
		return nil, err
	}
	s := &State{Lineage: raw.Lineage, Serial: raw.Serial, Registry: Machines{}, Instances: map[string][]Instance{}, Output: output}
	for _, r := range raw.Resources {
		if !r.registry() {
			continue
		}
		for _, i := range r.Instances {
			name, ok := i.IndexKey.(string)
			if !ok {
				return nil, notAsContracted(fmt.Sprint(i.IndexKey), "it has no machine name as key")
			}
			if s.Registry[name], err = parseMachine(name, i.Attributes.Input.Value); err != nil {
				return nil, err
			}
		}
	}
	if len(s.Registry) == 0 {
		return nil, &UnfitError{Problem: "the state has no terraform_data.machine, the registry of machines", Remedy: "adopt the contract first: docs/terraform-contract.md"}
	}
	raw.instances(s)
	return s, nil
}

// instances sorts resource instances to machines: by their own key, or by the key of a module around them.
func (raw rawState) instances(s *State) {
	for _, r := range raw.Resources {
		if r.Mode != "managed" || r.registry() {
			continue
		}
		for _, i := range r.Instances {
			address := r.address(i.IndexKey)
			for _, name := range keys(address) {
				if _, ok := s.Registry[name]; ok {
					s.Instances[name] = append(s.Instances[name], Instance{Address: address, Tainted: i.Status == "tainted", Deposed: i.Deposed != ""})
					break
				}
			}
		}
	}
	for _, all := range s.Instances {
		slices.SortFunc(all, func(a, b Instance) int { return strings.Compare(a.Address, b.Address) })
	}
}
