// SPDX-License-Identifier: Apache-2.0

package terraform

import (
	"encoding/json"
	"errors"
	"fmt"

	tfjson "github.com/hashicorp/terraform-json"
)

// parsePlan reads `show -json PLAN` (https://developer.hashicorp.com/terraform/internals/json-format). An error says
// nothing of its contents, which hold secrets in clear.
func parsePlan(data []byte) (*tfjson.Plan, error) {
	var plan tfjson.Plan
	plan.UseJSONNumber(true)
	var end struct {
		Errored bool `json:"errored"`
	}
	if json.Unmarshal(data, &plan) != nil || json.Unmarshal(data, &end) != nil {
		return nil, errors.New("the saved plan can't be read as JSON of format version 1")
	}
	if end.Errored {
		return nil, errors.New("the saved plan ended with an error, and is not used")
	}
	return &plan, nil
}

// priorOutput is output theseus as it was before the plan. The plan's prior_state does not have it: Terraform writes
// the outputs of the new configuration into it.
func priorOutput(plan *tfjson.Plan) (json.RawMessage, error) {
	c := plan.OutputChanges[outputName]
	if c == nil {
		return nil, nil
	}
	value, err := json.Marshal(c.Before)
	if err != nil {
		return nil, fmt.Errorf("output theseus: %w", err)
	}
	return value, nil
}

// ephemeral picks the given variables that the module declares and the plan does not hold.
func ephemeral(plan *tfjson.Plan, given map[string]Secret) map[string]Secret {
	left := map[string]Secret{}
	if plan.Config == nil || plan.Config.RootModule == nil {
		return left
	}
	for name := range plan.Config.RootModule.Variables {
		value, isGiven := given[name]
		if _, kept := plan.Variables[name]; isGiven && !kept {
			left[name] = value
		}
	}
	return left
}
