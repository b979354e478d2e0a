// SPDX-License-Identifier: Apache-2.0

package terraform_test

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/theseus-gitops/theseus/executors/terraform"
)

// unfit opens the module, reads the state and plans, until something is refused.
func (y *yard) unfit(change ...func(*terraform.Options)) error {
	y.t.Helper()
	o := y.options()
	for _, c := range change {
		c(&o)
	}
	m, err := terraform.Open(y.t.Context(), o)
	if err != nil {
		return y.asUnfit(err)
	}
	defer func() { _ = m.Close() }()
	_, planned := m.Plan(y.t.Context(), terraform.Step{Kind: terraform.Idle, Have: terraform.Machines{"c-cp-1": machine()}})
	_, err = m.State(y.t.Context())
	if (planned == nil) != (err == nil) {
		y.t.Errorf("Plan and State do not agree: %v; %v", planned, err)
	}
	return y.asUnfit(err)
}

func (y *yard) asUnfit(err error) error {
	y.t.Helper()
	var unfit *terraform.UnfitError
	if err != nil && !errors.As(err, &unfit) {
		y.t.Errorf("got %v, want an UnfitError", err)
	}
	if left := y.leftOver(); err != nil && strings.Contains(strings.Join(left, " "), ".tfvars") {
		y.t.Errorf("left over: %q", left)
	}
	return err
}

func wants(t *testing.T, err error, text string) {
	t.Helper()
	if err == nil || !strings.Contains(err.Error(), text) {
		t.Errorf("got %v, want %q in it", err, text)
	}
}

// replace edits the module.
func (y *yard) replace(old, replacement string) {
	y.t.Helper()
	data, err := os.ReadFile(filepath.Join(y.dir, "main.tf"))
	if err != nil {
		y.t.Fatal(err)
	}
	if !strings.Contains(string(data), old) {
		y.t.Fatalf("main.tf has no %q", old)
	}
	y.write("main.tf", strings.ReplaceAll(string(data), old, replacement))
}

// The state is another cluster's, although the module names ours now: what the state says counts.
func TestForeignCluster(t *testing.T) {
	withTerraform(t, func(y *yard) {
		t := y.t
		y.replace(`"c"`, `"other"`)
		y.seed("c-cp-1")
		y.replace(`"other"`, `"c"`)
		wants(t, y.unfit(), `the state belongs to cluster "other", not to "c"`)
	})
}

func TestUnknownContract(t *testing.T) {
	withTerraform(t, func(y *yard) {
		t := y.t
		y.replace("= 1\n", "= 2\n")
		y.seed("c-cp-1")
		wants(t, y.unfit(), `contract "2", and this Theseus knows only 1`)
	})
}

func TestNoOutput(t *testing.T) {
	withTerraform(t, func(y *yard) {
		t := y.t
		y.replace(`output "theseus"`, `output "other"`)
		y.seed("c-cp-1")
		wants(t, y.unfit(), "the state has no output theseus")
	})
}

// A plan without prior state makes machines, each time it is applied.
func TestNoState(t *testing.T) {
	withTerraform(t, func(y *yard) {
		t := y.t
		m := y.open()
		_, err := m.State(t.Context())
		wants(t, y.asUnfit(err), "there is no Terraform state yet")
		_, err = m.Plan(t.Context(), addStep(terraform.Machines{"c-cp-1": machine()}, "c-cp-2"))
		wants(t, y.asUnfit(err), "no output theseus")
	})
}

func TestRegistryHasMoreThanTheContract(t *testing.T) {
	withTerraform(t, func(y *yard) {
		t := y.t
		y.replace("input    = each.value", `input    = merge(each.value, { flavor = "big" })`)
		y.seed("c-cp-1")
		m := y.open()
		_, err := m.State(t.Context())
		wants(t, y.asUnfit(err), `terraform_data.machine["c-cp-1"] is not as the contract asks: its input has "flavor", which contract 1 does not know; move it into values`)
	})
}

func TestBackendWithoutLocks(t *testing.T) {
	withTerraform(t, func(y *yard) {
		t := y.t
		y.seed("c-cp-1")
		y.write("backend.tf", "terraform {\n  backend \"http\" {\n    address = \""+y.server.URL+"\"\n  }\n}\n")
		wants(t, y.unfit(), `the state's backend "http" does not lock, so two runs could change machines at once; set lock_address and unlock_address`)
		if err := y.unfit(func(o *terraform.Options) {
			o.Env = map[string]terraform.Secret{"TF_HTTP_LOCK_ADDRESS": terraform.Secret(y.server.URL), "TF_HTTP_UNLOCK_ADDRESS": terraform.Secret(y.server.URL)}
		}); err != nil {
			t.Error("with the address in the environment:", err)
		}
		if err := y.unfit(func(o *terraform.Options) {
			o.BackendConfig = map[string]terraform.Secret{"lock_address": terraform.Secret(y.server.URL), "unlock_address": terraform.Secret(y.server.URL)}
		}); err != nil {
			t.Error("with the address in backendConfig:", err)
		}
	})
}

func TestWorkspace(t *testing.T) {
	withTerraform(t, func(y *yard) {
		t := y.t
		none := y.unfit(func(o *terraform.Options) { o.Workspace = "prod" })
		wants(t, none, `workspace "prod" can't be selected: `+filepath.Base(y.binary)+" workspace: ")
		wants(t, none, "workspaces not supported")
		y.write("backend.tf", "")
		y.seed("c-cp-1") // in the default workspace
		for _, name := range []string{"prod", "staging"} {
			y.run("workspace", "new", name)
		}
		y.write("main.tf", strings.ReplaceAll(y.text("main.tf"), `"c"`, `terraform.workspace == "prod" ? "c" : terraform.workspace`))
		y.run("workspace", "select", "staging")
		y.seed("c-cp-1")
		y.run("workspace", "select", "prod")
		y.seed("c-cp-1")
		y.run("workspace", "select", "staging") // in the person's own data folder, which is not ours
		prod := func(o *terraform.Options) { o.Workspace = "prod" }
		if err := y.unfit(prod); err != nil {
			t.Error("the right workspace:", err)
		}
		wants(t, y.unfit(func(o *terraform.Options) { o.Workspace = "staging" }), `the state belongs to cluster "staging", not to "c"`)
		wants(t, y.unfit(func(o *terraform.Options) { o.Workspace = "prdo" }), `no workspace "prdo"`)
		if y.has("terraform.tfstate.d/prdo") {
			t.Error("the missing workspace was made")
		}
		if err := y.unfit(); err != nil { // default still has "c" from before
			t.Error("the default workspace:", err)
		}
	})
}

func (y *yard) text(name string) string {
	y.t.Helper()
	data, err := os.ReadFile(filepath.Join(y.dir, name))
	if err != nil {
		y.t.Fatal(err)
	}
	return string(data)
}

// A provider that the lock file does not pin is refused, and the lock file is not written (diggerhq/digger#2663). The
// provider lies in the module's own mirror, so nothing is downloaded.
func TestUnpinnedProvider(t *testing.T) {
	withTerraform(t, func(y *yard) {
		t := y.t
		y.seed("c-cp-1")
		y.write("providers.tf", "terraform {\n  required_providers {\n    fake = {\n      source = \"example.com/theseus/fake\"\n    }\n  }\n}\n\nresource \"fake_thing\" \"x\" {}\n")
		y.write("terraform.d/plugins/example.com/theseus/fake/1.0.0/"+runtime.GOOS+"_"+runtime.GOARCH+"/terraform-provider-fake_v1.0.0", "#!/bin/sh\nexit 1\n")
		wants(t, y.unfit(), "the lock file .terraform.lock.hcl does not pin every provider of the module")
		if y.has(".terraform.lock.hcl") {
			t.Error("the lock file was written")
		}
	})
}

// A state that lies in the module's folder is never copied into the backend (hashicorp/terraform-exec#268,
// hashicorp/terraform#20448).
func TestLeftOverStateIsNotCopied(t *testing.T) {
	withTerraform(t, func(y *yard) {
		t := y.t
		y.write("backend.tf", "")
		y.seed("c-cp-1")
		y.write("backend.tf", y.server.backend())
		wants(t, y.unfit(), "a terraform.tfstate lies in the module's folder although its backend keeps the state elsewhere")
		if y.server.state != nil {
			t.Error("the state was copied")
		}
	})
}

func TestUnusableOptions(t *testing.T) {
	t.Parallel()
	y := newYard(t, "/bin/true")
	for name, c := range map[string]struct {
		change func(*terraform.Options)
		want   string
	}{
		"no folder":         {func(o *terraform.Options) { o.Dir += "/none" }, "there is no folder"},
		"no program":        {func(o *terraform.Options) { o.Binary = "no-terraform-here" }, `the program "no-terraform-here" can't be run: executable file not found in $PATH`},
		"var file outside":  {func(o *terraform.Options) { o.VarFiles = []string{"../x.tfvars"} }, "outside of the module's folder"},
		"arguments by env":  {func(o *terraform.Options) { o.Env = map[string]terraform.Secret{"TF_CLI_ARGS_plan": "-target=x"} }, `"TF_CLI_ARGS_plan" is not allowed`},
		"variables by env":  {func(o *terraform.Options) { o.Env = map[string]terraform.Secret{"TF_VAR_machines": "{}"} }, `"TF_VAR_machines" is not allowed`},
		"logs by env":       {func(o *terraform.Options) { o.Env = map[string]terraform.Secret{"TF_LOG": "trace"} }, `"TF_LOG" is not allowed`},
		"workspace by env":  {func(o *terraform.Options) { o.Env = map[string]terraform.Secret{"TF_WORKSPACE": "x"} }, `"TF_WORKSPACE" is not allowed`},
		"shared plugin dir": {func(o *terraform.Options) { o.Env = map[string]terraform.Secret{"TF_PLUGIN_CACHE_DIR": "/x"} }, `"TF_PLUGIN_CACHE_DIR" is not allowed`},
	} {
		wants(t, y.unfit(c.change), c.want)
		if left := y.leftOver(); len(left) > 0 {
			t.Errorf("%s: left over: %q", name, left)
		}
	}
}
