// SPDX-License-Identifier: Apache-2.0

package terraform_test

import (
	"encoding/json"
	"math/rand/v2"
	"strings"
	"testing"

	tfjson "github.com/hashicorp/terraform-json"

	"github.com/theseus-gitops/theseus/executors/terraform"
	"github.com/theseus-gitops/theseus/reconcile/spec"
)

// What the built-in provider can't do is laid over real plans: changes seen outside, deferred ones, provider actions.
func TestGuardOverlays(t *testing.T) {
	t.Parallel()
	outside := `{"resource_drift": [{"address": "terraform_data.%", "mode": "managed", "change": {"actions": ["update"], "before": {"power": "on", "size": 1}, "after": {"power": "off", "size": 1}}}]}`
	vm := func(name string) string { return strings.ReplaceAll(outside, "%", `vm[\"`+name+`\"]`) }
	for name, c := range map[string]struct{ fixture, overlay, want string }{
		"a machine changed outside": {"idle-clean", vm("c-cp-2"),
			`terraform_data.vm["c-cp-2"]: update outside: machine c-cp-2 was changed outside of Terraform ("power"); look at it, then apply with -refresh-only`},
		"a machine that stays changed outside": {"destroy-clean", vm("c-cp-2"),
			`terraform_data.vm["c-cp-2"]: update outside: machine c-cp-2 was changed outside of Terraform ("power"); look at it, then apply with -refresh-only`},
		"the machine that goes changed outside": {"destroy-clean", vm("c-cp-1"), "allowed"},
		"something else changed outside":        {"idle-clean", strings.ReplaceAll(outside, "%", "network"), "allowed"},
		"a machine of no key of ours":           {"idle-clean", vm("bastion"), "allowed"},
		"the registry changed outside": {"destroy-clean", strings.ReplaceAll(outside, "%", `machine[\"c-cp-1\"]`),
			`terraform_data.machine["c-cp-1"]: update outside: the registry was changed outside of Terraform`},
		"a machine deleted outside": {"idle-clean", `{"resource_drift": [{"address": "terraform_data.vm[\"c-cp-2\"]", "change": {"actions": ["delete"], "before": {"power": "on"}, "after": null}}]}`,
			`terraform_data.vm["c-cp-2"]: delete outside: machine c-cp-2 was changed outside of Terraform; look at it, then apply with -refresh-only`},
		"deferred": {"add-clean", `{"complete": false, "deferred_changes": [{"reason": "provider_config_unknown", "resource_change": {"address": "terraform_data.x", "change": {"actions": ["create"]}}}]}`,
			"plan: incomplete: it does not bring the whole module to its wanted state, because of targets or deferred changes\nterraform_data.x: deferred: Terraform can't say yet what it will do"},
		"targeted":        {"add-clean", `{"complete": false}`, "plan: incomplete: it does not bring the whole module to its wanted state, because of targets or deferred changes"},
		"provider action": {"destroy-clean", `{"action_invocations": [{"address": "action.aws_lambda_invoke.x"}]}`, "action.aws_lambda_invoke.x: invoke: provider actions do what no plan shows"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := fixtures(t)[c.fixture]
			text, _ := f.file("plan.json")
			var plan tfjson.Plan
			if err := json.Unmarshal(laidOver(t, text, c.overlay), &plan); err != nil {
				t.Fatal(err)
			}
			step, tolerate := f.step(t)
			if got := verdict(terraform.Guard(&plan, step, tolerate)); got != c.want+"\n" {
				t.Errorf("got:\n%swant:\n%s", got, c.want)
			}
		})
	}
}

func laidOver(t *testing.T, text, overlay string) []byte {
	t.Helper()
	var all map[string]json.RawMessage
	for _, layer := range []string{text, overlay} {
		if err := json.Unmarshal([]byte(layer), &all); err != nil {
			t.Fatal(err)
		}
	}
	return mustJSON(t, all)
}

// changeOf edits the change of one address in a fixture's plan.
func changeOf(t *testing.T, plan *tfjson.Plan, address string) *tfjson.ResourceChange {
	t.Helper()
	for _, rc := range plan.ResourceChanges {
		if rc.Address == address {
			return rc
		}
	}
	t.Fatalf("no %s in the plan", address)
	return nil
}

func TestGuardOnOddChanges(t *testing.T) {
	t.Parallel()
	const vm1, vm2, member = `terraform_data.vm["c-cp-1"]`, `terraform_data.vm["c-cp-2"]`, `terraform_data.member["c-cp-2"]`
	for name, c := range map[string]struct {
		fixture, address string
		edit             func(*tfjson.ResourceChange)
		want             string
	}{
		"deposed object of the machine that goes": {"destroy-clean", vm1, func(rc *tfjson.ResourceChange) { rc.DeposedKey, rc.ActionReason = "0a1b2c3d", "" }, "allowed"},
		"deposed object of another": {"destroy-clean", vm2, func(rc *tfjson.ResourceChange) {
			rc.DeposedKey, rc.Change.Actions = "0a1b2c3d", tfjson.Actions{tfjson.ActionDelete}
		}, vm2 + ": delete of a deposed object: it belongs to c-cp-2, and this step is about c-cp-1 alone"},
		"an action of tomorrow": {"add-clean", vm2, func(rc *tfjson.ResourceChange) { rc.Change.Actions = tfjson.Actions{"migrate"} },
			vm2 + ": migrate: it belongs to c-cp-2, and this step is about c-cp-3 alone"},
		"no change told": {"idle-clean", vm2, func(rc *tfjson.ResourceChange) { rc.Change = nil }, vm2 + ": unknown: the plan does not say what changes"},
		"an update of the new machine's": {"add-clean", `terraform_data.vm["c-cp-3"]`, func(rc *tfjson.ResourceChange) { rc.Change.Actions = tfjson.Actions{tfjson.ActionUpdate} },
			`terraform_data.vm["c-cp-3"]: update: the step "add" may not do this to c-cp-3's own resources`},
		"a module that went, not the machine's": {"destroy-clean", vm1, func(rc *tfjson.ResourceChange) { rc.ActionReason = tfjson.ActionReasonDeleteBecauseNoModule },
			vm1 + ": delete: it goes for another reason than that its key is gone (its module is gone)"},
		"a member made while leaving": {"serve-off", member, func(rc *tfjson.ResourceChange) { rc.Change.Actions = tfjson.Actions{tfjson.ActionCreate} },
			member + `: create: the step "serving" may not do this to c-cp-2's own resources (its key is gone)`},
		"a member replaced while serving": {"serve-on", member, func(rc *tfjson.ResourceChange) {
			rc.Change.Actions = tfjson.Actions{tfjson.ActionDelete, tfjson.ActionCreate}
		},
			member + `: replace: the step "serving" may not do this to c-cp-2's own resources`},
		"a member that goes for another reason": {"serve-off", member, func(rc *tfjson.ResourceChange) { rc.ActionReason = tfjson.ActionReasonDeleteBecauseNoResourceConfig },
			member + ": delete: it goes for another reason than that its key is gone (the module has no such resource any more)"},
		"a registry entry that goes while serving": {"serve-off", `terraform_data.machine["c-cp-2"]`, func(rc *tfjson.ResourceChange) { rc.Change.Actions = tfjson.Actions{tfjson.ActionDelete} },
			`terraform_data.machine["c-cp-2"]: delete: the step "serving" may not do this to c-cp-2's own resources` + "\n" +
				`terraform_data.machine["c-cp-2"]: no-op: the step "serving" needs its update; does the registry have for_each = var.machines and input = each.value?`},
		"a tolerated update of nothing visible": {"idle-tolerated", "terraform_data.other", func(rc *tfjson.ResourceChange) { rc.Change.After, rc.Change.AfterUnknown = rc.Change.Before, nil },
			"terraform_data.other: update: nothing may be left to change before a roll; apply it yourself, or name it in spec.terraform.tolerate if it comes back each time"},
		"a resource of two machines": {"destroy-clean", vm1, func(rc *tfjson.ResourceChange) { rc.Address = `module.a["c-cp-2"].terraform_data.vm["c-cp-1"]` },
			`module.a["c-cp-2"].terraform_data.vm["c-cp-1"]: delete: it belongs to c-cp-2 and c-cp-1, and this step is about c-cp-1 alone (its key is gone)`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := fixtures(t)[c.fixture]
			plan := f.plan(t)
			c.edit(changeOf(t, plan, c.address))
			step, tolerate := f.step(t)
			if got := verdict(terraform.Guard(plan, step, tolerate)); got != c.want+"\n" {
				t.Errorf("got:\n%swant:\n%s", got, c.want)
			}
		})
	}
}

// What output theseus says of others may not become unknown.
func TestGuardOnUnknownOutput(t *testing.T) {
	t.Parallel()
	f := fixtures(t)["add-clean"]
	step, tolerate := f.step(t)
	for unknown, want := range map[string]string{
		`{"machines": {"c-cp-3": {"provider_id": true}}}`: "allowed\n",
		`{"machines": {"c-cp-2": {"provider_id": true}}}`: "output.theseus: update: what it says of c-cp-2 may not change in this step\n",
		`{"endpoint": true}`:                              "output.theseus: update: \"endpoint\" may not change in a step\n",
	} {
		plan := f.plan(t)
		plan.OutputChanges["theseus"].AfterUnknown = decoded(t, unknown)
		if got := verdict(terraform.Guard(plan, step, tolerate)); got != want {
			t.Errorf("%s: got %s, want %s", unknown, got, want)
		}
	}
}

// Tolerance of one instance is not tolerance of the others.
func TestGuardToleratesOneInstance(t *testing.T) {
	t.Parallel()
	f := fixtures(t)["idle-tolerated-instances"]
	step, _ := f.step(t)
	got := verdict(terraform.Guard(f.plan(t), step, []spec.Toleration{{Address: `terraform_data.tag["c-cp-1"]`, Attributes: []string{"input", "output"}}}))
	if strings.Contains(got, "c-cp-1") || !strings.Contains(got, `terraform_data.tag["c-cp-2"]: update`) {
		t.Error(got)
	}
}

// Every plan that is allowed for one step is refused for every other kind of step and for every other machine: the
// guard knows what it judges. Only plans that change nothing of machines are idle ones.
func TestGuardAllowsOneStepOnly(t *testing.T) {
	t.Parallel()
	for name, f := range fixtures(t) {
		if want, _ := f.file("verdict"); want != "allowed\n" {
			continue
		}
		step, tolerate := f.step(t)
		for _, kind := range []terraform.Kind{terraform.Idle, terraform.Add, terraform.Serve, terraform.Destroy, terraform.Drop} {
			for _, machine := range []string{"c-cp-1", "c-cp-2", "c-cp-3"} {
				other := step
				other.Kind, other.Machine = kind, machine
				if kind == terraform.Idle {
					other.Machine = ""
				}
				// A destroy plan without shared updates is one of a drop too, and the other way round.
				removes := func(k terraform.Kind) bool { return k == terraform.Destroy || k == terraform.Drop }
				if other.Machine == step.Machine && (kind == step.Kind || removes(kind) && removes(step.Kind)) {
					continue
				}
				if offences := terraform.Guard(f.plan(t), other, tolerate); len(offences) == 0 {
					t.Errorf("%s is allowed as %q too", name, other)
				}
			}
		}
	}
}

// The verdict does not depend on the order of changes.
func TestGuardIsSorted(t *testing.T) {
	t.Parallel()
	for name, f := range fixtures(t) {
		want, _ := f.file("verdict")
		step, tolerate := f.step(t)
		plan := f.plan(t)
		random := rand.New(rand.NewPCG(1, 2)) //nolint:gosec // an order, no secret
		random.Shuffle(len(plan.ResourceChanges), func(i, j int) {
			plan.ResourceChanges[i], plan.ResourceChanges[j] = plan.ResourceChanges[j], plan.ResourceChanges[i]
		})
		if got := verdict(terraform.Guard(plan, step, tolerate)); got != want {
			t.Errorf("%s, shuffled:\n%s\nwant:\n%s", name, got, want)
		}
	}
}

// A tolerated attribute covers what changes outside of Terraform as well.
func TestGuardToleratesOutside(t *testing.T) {
	t.Parallel()
	f := fixtures(t)["idle-clean"]
	text, _ := f.file("plan.json")
	var plan tfjson.Plan
	overlay := `{"resource_drift": [{"address": "terraform_data.vm[\"c-cp-2\"]", "change": {"actions": ["update"], "before": {"seen": 1}, "after": {"seen": 2}}}]}`
	if err := json.Unmarshal(laidOver(t, text, overlay), &plan); err != nil {
		t.Fatal(err)
	}
	step, _ := f.step(t)
	if got := terraform.Guard(&plan, step, []spec.Toleration{{Address: "terraform_data.vm", Attributes: []string{"seen"}}}); len(got) > 0 {
		t.Error(verdict(got))
	}
}

func TestStepMachines(t *testing.T) {
	t.Parallel()
	have := terraform.Machines{"a": machine(), "b": machine()}
	for want, s := range map[string]terraform.Step{
		"add a: the name is taken":                                                                     {Kind: terraform.Add, Machine: "a", Have: have, UserData: "x"},
		"add c: a machine is only created with a name and with user data":                              {Kind: terraform.Add, Machine: "c", Have: have},
		"destroy c: there is no such machine; there are \"a\", \"b\"":                                  {Kind: terraform.Destroy, Machine: "c", Have: have},
		"serving c: there is no such machine; there are \"a\", \"b\"":                                  {Kind: terraform.Serve, Machine: "c", Have: have},
		"drop entry a: it is the last machine":                                                         {Kind: terraform.Drop, Machine: "a", Have: terraform.Machines{"a": machine()}},
		"idle check: the present map of machines is empty, and a plan for it would destroy everything": {Kind: terraform.Idle},
	} {
		if _, err := s.Machines(); err == nil || err.Error() != want {
			t.Errorf("got %v, want %s", err, want)
		}
	}
	after, err := terraform.Step{Kind: terraform.Serve, Machine: "a", Have: have}.Machines()
	if err != nil || after["a"].Serving || !after["b"].Serving || !have["a"].Serving {
		t.Errorf("serving off: %+v (before: %+v), %v", after, have, err)
	}
}
