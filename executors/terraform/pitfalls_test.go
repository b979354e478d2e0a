// SPDX-License-Identifier: Apache-2.0

package terraform_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/theseus-gitops/theseus/executors/terraform"
)

// An ephemeral variable is in no plan, so it is given again with the apply (hashicorp/terraform#36181).
func TestEphemeralVariable(t *testing.T) {
	withTerraform(t, func(y *yard) {
		t := y.t
		have := y.seed("c-cp-1")
		y.write("ephemeral.tf", `variable "once" {
  type      = string
  ephemeral = true
}
variable "token" {
  type = string
}
resource "terraform_data" "uses" {
  for_each = var.machines
  provisioner "local-exec" {
    command = "test \"$ONCE\" = 'given once'"
    environment = {
      ONCE = var.once
    }
  }
}
`)
		given := func(o *terraform.Options) {
			o.Variables = map[string]terraform.Secret{"once": "given once", "token": "kept"}
		}
		y.write("terraform.tfvars.json", "{}")
		y.write("all.tfvars.json", string(mustJSON(t, map[string]any{"machines": have, "once": "given once", "token": "kept"})))
		y.run("apply", "-auto-approve", "-input=false", "-var-file=all.tfvars.json")
		y.do(y.open(given), addStep(have, "c-cp-2"))
	})
}

// The backend does not take the new state: Terraform leaves it in a file, which is pushed when the backend is back, so
// that the machine is not lost.
func TestStateThatTheBackendDidNotTake(t *testing.T) {
	withTerraform(t, func(y *yard) {
		t := y.t
		y.slow()
		have := y.seed("c-cp-1")
		y.holdSlow()
		m := y.open()
		p := y.plan(m, addStep(have, "c-cp-2"))
		go func() {
			for !y.has("begun") {
				time.Sleep(10 * time.Millisecond)
			}
			y.server.set(func(s *stateServer) { s.refuse = 1 })
			_ = os.WriteFile(filepath.Join(y.dir, "go"), nil, 0o600)
		}()
		state, err := m.Apply(t.Context(), p)
		wants(t, err, "apply: Failed to save state")
		if state == nil || len(state.Instances["c-cp-2"]) != 3 {
			t.Errorf("the machine is not in the state: %+v", state)
		}
		if y.has("errored.tfstate") {
			t.Error("errored.tfstate was left, with secrets in it")
		}
	})
}

// The backend stays away: the file stays too, as the only record, and the error says what to do.
func TestStateThatTheBackendNeverTakes(t *testing.T) {
	withTerraform(t, func(y *yard) {
		t := y.t
		have := y.seed("c-cp-1")
		m := y.open()
		p := y.plan(m, addStep(have, "c-cp-2"))
		y.server.set(func(s *stateServer) { s.refuse = 1000 })
		_, err := m.Apply(t.Context(), p)
		wants(t, err, "the backend did not take the new state, which is in "+filepath.Join(y.dir, "errored.tfstate")+" now: run `")
		if info, err := os.Stat(filepath.Join(y.dir, "errored.tfstate")); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("errored.tfstate: %v, %v", info, err)
		}
	})
}

// Machines with null and with empty values are written back as they are: their registry entries don't change.
func TestValuesRoundTrip(t *testing.T) {
	withTerraform(t, func(y *yard) {
		t := y.t
		none, some := machine(), machine()
		none.Values = nil
		some.Values = map[string]string{"flavor": "big"}
		y.run("init", "-input=false")
		y.apply(terraform.Machines{"c-cp-1": machine(), "c-cp-2": none, "c-cp-3": some})
		m := y.open()
		state := y.state(m)
		if state.Registry["c-cp-1"].Values == nil || state.Registry["c-cp-2"].Values != nil || state.Registry["c-cp-3"].Values["flavor"] != "big" {
			t.Errorf("read back: %+v", state.Registry)
		}
		if _, err := m.Idle(t.Context(), state.Registry); err != nil {
			t.Error(err)
		}
	})
}
