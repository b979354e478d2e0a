// SPDX-License-Identifier: Apache-2.0

package terraform_test

import (
	"encoding/json"
	"reflect"
	"testing"

	"github.com/theseus-gitops/theseus/executors/terraform"
)

// What is printed is what the next plan must be given: Terraform itself reads it, and sees nothing to change.
func TestFormatIsWhatTerraformReads(t *testing.T) {
	withTerraform(t, func(y *yard) {
		odd := machine()
		odd.Values = map[string]string{"quote": `a "b" ${c} %{d}`, "line": "1\n2", "ü": ""}
		have := terraform.Machines{"c-cp-1": machine(), "c-cp-2": odd, "c-cp-3": {Role: "control-plane", Created: "2026-12-01T00:00:00Z"}}
		y.run("init", "-input=false", "-reconfigure")
		y.apply(have)
		for name, asJSON := range map[string]bool{"print.tfvars": false, "print.tfvars.json": true} {
			text, err := y.state(y.open()).Registry.Format(asJSON)
			if err != nil {
				y.t.Fatal(err)
			}
			y.write(name, string(text))
			// -detailed-exitcode: 2 when there is something to change.
			y.run("plan", "-input=false", "-detailed-exitcode", "-var-file="+name)
		}
	})
}

func TestFormatJSONKeepsNull(t *testing.T) {
	t.Parallel()
	have := terraform.Machines{"a": {Role: "worker"}, "b": {Values: map[string]string{}}}
	text, err := have.Format(true)
	if err != nil {
		t.Fatal(err)
	}
	var got struct{ Machines terraform.Machines }
	if err := json.Unmarshal(text, &got); err != nil || !reflect.DeepEqual(got.Machines, have) {
		t.Errorf("%v: %+v, want %+v", err, got.Machines, have)
	}
}
