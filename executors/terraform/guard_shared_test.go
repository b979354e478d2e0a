// SPDX-License-Identifier: Apache-2.0

package terraform_test

import (
	"encoding/json"
	"strings"
	"testing"

	tfjson "github.com/hashicorp/terraform-json"

	"github.com/theseus-gitops/theseus/executors/terraform"
)

// Changes of a shared resource, as JSON: before, after, and what is unknown of after.
func TestGuardOnSharedElements(t *testing.T) {
	t.Parallel()
	const update = "terraform_data.pool: update: attribute input: "
	for name, c := range map[string]struct{ fixture, before, after, unknown, want string }{
		"K's entry changes":               {"serve-on", `{"c-cp-1": {"w": 1}, "c-cp-2": {"w": 0}}`, `{"c-cp-1": {"w": 1}, "c-cp-2": {"w": 1}}`, `{}`, "allowed"},
		"another's entry goes":            {"destroy-clean", `{"c-cp-1": 1, "c-cp-2": 1}`, `{}`, `{}`, update + "it loses the element of c-cp-2"},
		"another's entry comes":           {"destroy-clean", `{"c-cp-1": 1}`, `{"c-cp-2": 1}`, `{}`, update + "it gains the element of c-cp-2"},
		"an entry of nobody comes":        {"add-serving", `{"c-cp-1": 1}`, `{"c-cp-1": 1, "x": 1}`, `{}`, update + "it gains an element that names no machine of output theseus"},
		"K's goes by what it names":       {"destroy-clean", `{"x": {"n": "c-cp-1"}, "y": {"n": "c-cp-2"}}`, `{"y": {"n": "c-cp-2"}}`, `{}`, "allowed"},
		"an unknown entry comes":          {"add-serving", `{"x": "c-cp-1"}`, `{"x": "c-cp-1"}`, `{"y": true}`, "allowed"},
		"an unknown entry of another":     {"add-serving", `{"x": 1}`, `{"x": 1}`, `{"c-cp-2": true}`, update + "it gains the element of c-cp-2"},
		"unknown while a machine goes":    {"destroy-clean", `["c-cp-1", "c-cp-2"]`, `["c-cp-2", null]`, `[false, true]`, update + "it gains an element that names no machine of output theseus"},
		"a half unknown one of another":   {"add-serving", `[]`, `[{"name": "c-cp-2"}]`, `[{"id": true}]`, update + "it gains the element of c-cp-2"},
		"one element of two machines":     {"destroy-clean", `[["c-cp-1", "c-cp-2"], "x"]`, `["x"]`, `[]`, update + "it loses or changes the element of c-cp-1 and c-cp-2"},
		"a known null that is unknown":    {"add-serving", `["c-cp-1", null]`, `["c-cp-1", null]`, `[false, true]`, update + "it loses or changes an element that names no machine of output theseus"},
		"the same twice, once less":       {"add-serving", `["c-cp-1", "c-cp-1"]`, `["c-cp-1", "c-cp-3"]`, `[]`, update + "it loses or changes the element of c-cp-1"},
		"from nothing":                    {"add-serving", `null`, `["c-cp-3"]`, `[]`, "allowed"},
		"another type":                    {"add-serving", `["c-cp-1"]`, `{"c-cp-1": 1}`, `{}`, update + "it changes, and not by an element of c-cp-3"},
		"K's id by its provider's number": {"destroy-clean", `[{"id": 4711}, {"id": 4712}]`, `[{"id": 4712}]`, `[]`, "allowed"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := fixtures(t)[c.fixture]
			plan := f.plan(t)
			change := changeOf(t, plan, "terraform_data.pool").Change
			change.Actions = tfjson.Actions{tfjson.ActionUpdate}
			for side, text := range map[*any]string{&change.Before: c.before, &change.After: c.after, &change.AfterUnknown: c.unknown} {
				*side = map[string]any{"input": decoded(t, text)}
			}
			machines := plan.OutputChanges["theseus"].Before.(map[string]any)["machines"].(map[string]any)
			machines["c-cp-1"].(map[string]any)["provider_id"] = "cloud://4711"
			if step, _ := f.step(t); step.Kind != terraform.Destroy { // there the machine leaves the output
				plan.OutputChanges["theseus"].After.(map[string]any)["machines"].(map[string]any)["c-cp-1"].(map[string]any)["provider_id"] = "cloud://4711"
			}
			step, tolerate := f.step(t)
			if got := verdict(terraform.Guard(plan, step, tolerate)); got != c.want+"\n" {
				t.Errorf("got:\n%swant:\n%s", got, c.want)
			}
		})
	}
}

func decoded(t *testing.T, text string) any {
	t.Helper()
	decoder := json.NewDecoder(strings.NewReader(text))
	decoder.UseNumber()
	var v any
	if err := decoder.Decode(&v); err != nil {
		t.Fatal(err)
	}
	return v
}

// A dynamic block is not in the configuration's JSON, so its attribute looks as if the provider computed it. What the
// plan makes of it is compared all the same.
func TestGuardSeesDynamicBlocks(t *testing.T) {
	t.Parallel()
	asDynamic := func(plan *tfjson.Plan) *tfjson.ResourceChange {
		for _, r := range plan.Config.RootModule.Resources {
			if r.Name == "pool" {
				r.Type = "openstack_lb_pool_v2"
				delete(r.Expressions, "input")
			}
		}
		rc := changeOf(t, plan, "terraform_data.pool")
		rc.Type = "openstack_lb_pool_v2"
		for _, values := range []any{rc.Change.Before, rc.Change.After, rc.Change.AfterUnknown} {
			delete(values.(map[string]any), "output")
		}
		return rc
	}
	for name, want := range map[string]string{
		"add-pool-blocks":      "allowed\n",
		"add-pool-drops-other": "terraform_data.pool: update: attribute input: it loses or changes the element of c-cp-1\n",
		"add-pool-unknown":     "terraform_data.pool: update: attribute input: it will be known only after the apply, so nobody can see now that other machines stay in it; use what is known before (names), or one resource per machine\n",
	} {
		f := fixtures(t)[name]
		plan := f.plan(t)
		asDynamic(plan)
		step, tolerate := f.step(t)
		if got := verdict(terraform.Guard(plan, step, tolerate)); got != want {
			t.Errorf("%s:\n%s\nwant:\n%s", name, got, want)
		}
	}
	// What the provider computes anew and what names no machine may be anything.
	f := fixtures(t)["add-serving"]
	plan := f.plan(t)
	rc := asDynamic(plan)
	rc.Change.Before.(map[string]any)["updated_at"] = "2026-12-01"
	rc.Change.AfterUnknown.(map[string]any)["updated_at"] = true
	step, tolerate := f.step(t)
	if got := verdict(terraform.Guard(plan, step, tolerate)); got != "allowed\n" {
		t.Errorf("a computed attribute: %s", got)
	}
}
