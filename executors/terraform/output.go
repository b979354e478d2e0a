// SPDX-License-Identifier: Apache-2.0

package terraform

import (
	"encoding/json"
	"fmt"
)

// Output is the module's output theseus.
type Output struct {
	Contract int    `json:"contract"`
	Cluster  string `json:"cluster"`
	Endpoint string `json:"endpoint"`
	// ActsOnServing is false when a health-checked load balancer finds machines itself.
	ActsOnServing bool            `json:"acts_on_serving"`
	Machines      map[string]Host `json:"machines"`
	// SharedAddresses are of what all machines share, which may change in place by the element of the step's machine only,
	// and of what each machine has of the endpoint, which comes and goes with serving.
	SharedAddresses []string `json:"shared_addresses"`
}

// Host is what became of a machine.
type Host struct {
	Hostname   string   `json:"hostname"`
	Addresses  []string `json:"addresses"`
	ProviderID string   `json:"provider_id"`
}

// contractVersion is the only one known.
const contractVersion = 1

// parseOutput refuses a state that is not this cluster's, before anything else is believed of it.
func parseOutput(value json.RawMessage, cluster string) (Output, error) {
	var o Output
	if len(value) == 0 || string(value) == "null" {
		return o, &UnfitError{
			Problem: "the state has no output theseus, so it may be another module's or workspace's",
			Remedy:  "check dir, backendConfig and workspace of spec.terraform; or add the output (docs/terraform-contract.md) and apply once",
		}
	}
	var version struct {
		Contract json.Number `json:"contract"`
	}
	if err := json.Unmarshal(value, &version); err != nil {
		return o, badOutput("it is no object with a number named contract")
	}
	if version.Contract.String() != fmt.Sprint(contractVersion) {
		return o, &UnfitError{
			Problem: fmt.Sprintf("the module's output theseus has contract %q, and this Theseus knows only %d", version.Contract, contractVersion),
			Remedy:  "set contract = 1 and follow docs/terraform-contract.md, or use a Theseus that knows it",
		}
	}
	if err := json.Unmarshal(value, &o); err != nil {
		return o, badOutput("a field has another type than the contract's")
	}
	if o.Cluster != cluster {
		return o, &UnfitError{
			Problem: fmt.Sprintf("the state belongs to cluster %q, not to %q", o.Cluster, cluster),
			Remedy:  "check dir, backendConfig and workspace of spec.terraform; output theseus must have cluster = metadata.name",
		}
	}
	if o.Endpoint == "" {
		return o, badOutput("endpoint is empty")
	}
	return o, nil
}

func badOutput(why string) error {
	return &UnfitError{Problem: "output theseus is not as the contract asks: " + why, Remedy: "compare it with docs/terraform-contract.md"}
}
