// SPDX-License-Identifier: Apache-2.0

package terraform_test

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/theseus-gitops/theseus/executors/terraform"
)

// planted is a secret of two lines that names where it was put.
func planted(where string) terraform.Secret {
	return terraform.Secret("PLANTED in " + where + "\nand " + where + " PLANTED again\n")
}

// shows looks for planted secrets in every form.
func shows(t *testing.T, where, text string) {
	t.Helper()
	if strings.Contains(text, "PLANTED") || strings.Contains(text, base64.StdEncoding.EncodeToString([]byte("PLANTED in"))[:12]) {
		t.Errorf("%s shows a secret: %s", where, text)
	}
}

// Secrets in user data, variables, the environment and outputs are in no error, although a provisioner prints all of
// them and fails.
func TestSecretsStaySecret(t *testing.T) {
	withTerraform(t, func(y *yard) {
		t := y.t
		y.write("leak.tf", `variable "token" {
  type    = string
  default = ""
}
variable "pin" {
  type      = string
  default   = "PLANTED as the default of a sensitive variable"
  sensitive = true
}
output "kubeconfig" {
  value     = "PLANTED in an output"
  sensitive = true
}
resource "terraform_data" "leak" {
  for_each = var.machines
  input    = terraform_data.vm[each.key].id
  provisioner "local-exec" {
    command     = "test ${each.key} != c-cp-2 || { printenv TOKEN CREDENTIAL DATA PIN KUBECONFIG; exit 1; } >&2"
    environment = {
      TOKEN      = var.token
      DATA       = lookup(nonsensitive(var.bootstrap), each.key, "")
      PIN        = nonsensitive(var.pin)
      KUBECONFIG = "PLANTED in an output"
    }
  }
}
`)
		have := y.seed("c-cp-1")
		y.write("terraform.tfvars.json", "{}")
		m := y.open(func(o *terraform.Options) {
			o.Variables = map[string]terraform.Secret{"token": planted("a variable")}
			o.Env = map[string]terraform.Secret{"CREDENTIAL": planted("the environment")}
		})
		y.state(m) // knows the outputs from here
		step := addStep(have, "c-cp-2")
		step.UserData = planted("user data")
		p := y.plan(m, step)
		for _, form := range []string{"%v", "%+v", "%#v", "%s"} {
			shows(t, "printed as "+form, fmt.Sprintf(form+form+form+form, p.Step, p, m, y.options()))
		}
		state, err := m.Apply(t.Context(), p)
		if err == nil || !strings.Contains(err.Error(), "(sensitive)") {
			t.Fatalf("Apply: %v", err)
		}
		shows(t, "the error of apply", err.Error())
		shows(t, "the state", fmt.Sprintf("%+v", state))
		y.shownInFiles("while the module is open")
		if err := m.Close(); err != nil {
			t.Fatal(err)
		}
		if left := y.leftOver(); len(left) > 0 {
			t.Errorf("left over: %q", left)
		}
	})
}

// shownInFiles looks into every file below the place for private folders.
func (y *yard) shownInFiles(when string) {
	y.t.Helper()
	for _, name := range y.leftOver() {
		if data, err := os.ReadFile(filepath.Join(y.temp, name)); err == nil {
			shows(y.t, name+" "+when, string(data))
		}
	}
}

func TestSecretDoesNotPrint(t *testing.T) {
	t.Parallel()
	step := addStep(terraform.Machines{"a": machine()}, "b")
	step.UserData = planted("user data")
	var log bytes.Buffer
	slog.New(slog.NewJSONHandler(&log, nil)).Info("step", "step", step, "data", step.UserData)
	slog.New(slog.NewTextHandler(&log, nil)).Info("step", "step", step, "data", step.UserData)
	data, err := json.Marshal(step)
	if err != nil {
		t.Fatal(err)
	}
	shows(t, "a log or JSON", log.String()+string(data))
}

// User data arrives byte for byte, although it looks like a template; backend settings too.
func TestTemplatesAreNotExpanded(t *testing.T) {
	withTerraform(t, func(y *yard) {
		t := y.t
		y.replace("  lifecycle {\n    ignore_changes = [input]\n  }\n", "")
		have := y.seed("c-cp-1")
		m := y.open(func(o *terraform.Options) {
			o.BackendConfig = map[string]terraform.Secret{"username": "${path.cwd} %{ if true }"}
		})
		step := addStep(have, "c-cp-2")
		step.UserData = "#cloud-config\nruncmd: [\"echo ${HOME} $${x} %{ if } é \\\\ \\\" <>&\"]\n"
		y.do(m, step)
		y.server.mu.Lock()
		defer y.server.mu.Unlock()
		quoted, err := json.Marshal(string(step.UserData))
		if err != nil {
			t.Fatal(err)
		}
		var state, want any
		if err := json.Unmarshal(y.server.state, &state); err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(quoted, &want); err != nil {
			t.Fatal(err)
		}
		if !holds(state, want) {
			t.Errorf("the state does not hold %s", quoted)
		}
	})
}

func holds(v, want any) bool {
	switch v := v.(type) {
	case map[string]any:
		for _, inner := range v {
			if holds(inner, want) {
				return true
			}
		}
	case []any:
		for _, inner := range v {
			if holds(inner, want) {
				return true
			}
		}
	}
	text, ok := v.(string)
	return ok && text == want
}

// What a plan marks as sensitive is concealed in what its apply says.
func TestScrubMarked(t *testing.T) {
	t.Parallel()
	value := decoded(t, `{"a": "first secret", "b": {"c": ["open text", "second secret"]}, "d": {"e": "third secret", "f": 12345678}}`)
	mask := decoded(t, `{"a": true, "b": {"c": [false, true]}, "d": true}`)
	got := terraform.ScrubMarked(value, mask, "first secret, open text, second secret, third secret, 12345678")
	if want := "(sensitive), open text, (sensitive), (sensitive), (sensitive)"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}
