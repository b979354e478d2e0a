// SPDX-License-Identifier: Apache-2.0

package terraform_test

import (
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/theseus-gitops/theseus/executors/terraform"
	"github.com/theseus-gitops/theseus/reconcile/rollout"
)

// One machine of two is replaced, step by step, as a roll does it.
func TestRoll(t *testing.T) {
	withTerraform(t, func(y *yard) {
		t := y.t
		y.write("pool.tf", "resource \"terraform_data\" \"pool\" {\n  input = [for name in sort(keys(var.machines)) : name if var.machines[name].serving]\n}\n")
		y.seed("c-cp-1", "c-cp-2")
		m := y.open()
		begin := y.state(m)
		if notices, err := m.Idle(t.Context(), begin.Registry); err != nil || len(notices) > 0 {
			t.Fatalf("Idle: %q, %v", notices, err)
		}

		joining := addStep(begin.Registry, "c-cp-3")
		joining.New.Serving = false
		state := y.do(m, joining)
		if got := state.Instances["c-cp-3"]; len(got) != 1 || got[0].Address != `terraform_data.vm["c-cp-3"]` {
			t.Fatalf("after add, c-cp-3 has %v", got)
		}
		if state.Output.Machines["c-cp-3"].Addresses[0] != "10.0.0.3" || state.Lineage != begin.Lineage || state.Serial <= begin.Serial {
			t.Fatalf("after add: %+v", state)
		}
		state = y.do(m, terraform.Step{Kind: terraform.Serve, Machine: "c-cp-3", Have: state.Registry, Serving: true})
		state = y.do(m, terraform.Step{Kind: terraform.Serve, Machine: "c-cp-1", Have: state.Registry, Serving: false})
		state = y.do(m, terraform.Step{Kind: terraform.Destroy, Machine: "c-cp-1", Have: state.Registry})
		if got := slices.Sorted(maps.Keys(state.Registry)); !slices.Equal(got, []string{"c-cp-2", "c-cp-3"}) {
			t.Errorf("in the end there are %v", got)
		}
		if !state.Registry["c-cp-3"].Serving || state.Missing("c-cp-3") || state.Broken("c-cp-3") {
			t.Errorf("c-cp-3 is not as it should be: %+v", state)
		}
		if _, err := m.Idle(t.Context(), state.Registry); err != nil {
			t.Error("the module is not at rest after the roll:", err)
		}
		if err := m.Close(); err != nil {
			t.Error(err)
		}
		if left := y.leftOver(); len(left) > 0 {
			t.Errorf("left over: %q", left)
		}
	})
}

// Terraform takes seconds per call, so calls are counted: one to open, three to plan and apply, one to read, and one,
// the first time, for which program it is.
func TestCallsAreFew(t *testing.T) {
	withTerraform(t, func(y *yard) {
		t := y.t
		y.seed("c-cp-1")
		calls := filepath.Join(y.dir, "calls")
		counted := filepath.Join(y.dir, "counted")
		y.write("counted", "#!/bin/sh\necho \"$1\" >> "+calls+"\nexec "+y.binary+" \"$@\"\n")
		if err := os.Chmod(counted, 0o700); err != nil {
			t.Fatal(err)
		}
		m := y.open(func(o *terraform.Options) { o.Binary = counted })
		y.do(m, addStep(y.state(m).Registry, "c-cp-2"))
		data, err := os.ReadFile(calls)
		if err != nil {
			t.Fatal(err)
		}
		if got, want := strings.Fields(string(data)), []string{"init", "state", "plan", "show", "version", "apply", "state"}; !slices.Equal(got, want) {
			t.Errorf("calls: %q, want %q", got, want)
		}
	})
}

// A machine whose creation fails half-way is tainted: the error names it, the state tells, and its entry is dropped.
func TestFailedAddIsDropped(t *testing.T) {
	withTerraform(t, func(y *yard) {
		t := y.t
		y.write("quota.tf", `resource "terraform_data" "quota" {
  for_each = var.machines
  input    = terraform_data.vm[each.key].id
  provisioner "local-exec" {
    command = "test ${each.key} != c-cp-3 || { echo no quota for big >&2; exit 3; }"
  }
}
`)
		y.seed("c-cp-1", "c-cp-2")
		m := y.open()
		p := y.plan(m, addStep(y.state(m).Registry, "c-cp-3"))
		state, err := m.Apply(t.Context(), p)
		if err == nil || !strings.Contains(err.Error(), "no quota for big") || !strings.Contains(err.Error(), `terraform_data.quota["c-cp-3"]`) {
			t.Errorf("Apply: %v", err)
		}
		if state == nil || !state.Broken("c-cp-3") || state.Broken("c-cp-2") {
			t.Fatalf("the state after the failure: %+v", state)
		}
		if _, err := m.Idle(t.Context(), state.Registry); err == nil {
			t.Error("a module with a tainted machine is at rest")
		}
		state = y.do(m, terraform.Step{Kind: terraform.Drop, Machine: "c-cp-3", Have: state.Registry})
		if _, err := m.Idle(t.Context(), state.Registry); err != nil {
			t.Error("Idle after the drop:", err)
		}
	})
}

func TestRefusedPlanIsNotApplied(t *testing.T) {
	withTerraform(t, func(y *yard) {
		t := y.t
		have := y.seed("c-cp-1", "c-cp-2")
		m := y.open()
		y.write("more.tf", "resource \"terraform_data\" \"more\" {}\n")
		p := y.plan(m, addStep(have, "c-cp-3"))
		_, err := m.Apply(t.Context(), p)
		var refused *terraform.RefusedError
		if !errors.As(err, &refused) || len(refused.Offences) != 1 {
			t.Fatalf("Apply: %v", err)
		}
		want := "Terraform's plan for \"add c-cp-3\" does what this step may not do; nothing was changed:\n- terraform_data.more: create: it does not belong to c-cp-3"
		if refused.Error() != want {
			t.Errorf("got:\n%s\nwant:\n%s", refused, want)
		}
		if _, err := m.Idle(t.Context(), have); !errors.As(err, &refused) {
			t.Errorf("Idle: %v", err)
		}
		if _, exists := y.state(m).Registry["c-cp-3"]; exists {
			t.Error("c-cp-3 was made")
		}
	})
}

// The state moves between plan and apply: nothing is changed, the decision is taken again, and no lock is left
// (hashicorp/terraform#28693).
func TestStalePlanIsAConflict(t *testing.T) {
	withTerraform(t, func(y *yard) {
		t := y.t
		y.seed("c-cp-1", "c-cp-2")
		m := y.open()
		p := y.plan(m, addStep(y.state(m).Registry, "c-cp-3"))
		y.write("note.tf", "output \"note\" {\n  value = 1\n}\n")
		y.apply(terraform.Machines{"c-cp-1": machine(), "c-cp-2": machine()})
		state, err := m.Apply(t.Context(), p)
		if !errors.Is(err, rollout.ErrConflict) {
			t.Fatalf("Apply: %v, want ErrConflict", err)
		}
		if state == nil || len(state.Registry) != 2 {
			t.Errorf("the state after the conflict: %+v", state)
		}
		if y.server.locked() {
			t.Error("the lock was left")
		}
	})
}

// A plan is applied once: one made without prior state would make everything twice (hashicorp/terraform#24078).
func TestPlanIsAppliedOnce(t *testing.T) {
	withTerraform(t, func(y *yard) {
		t := y.t
		have := y.seed("c-cp-1")
		m, other := y.open(), y.open()
		p := y.plan(m, addStep(have, "c-cp-2"))
		if _, err := other.Apply(t.Context(), p); err == nil {
			t.Error("another module applied the plan")
		}
		if _, err := m.Apply(t.Context(), p); err != nil {
			t.Fatal(err)
		}
		if _, err := m.Apply(t.Context(), p); err == nil || !strings.Contains(err.Error(), "applied already") {
			t.Errorf("the second apply: %v", err)
		}
		idle := y.plan(m, terraform.Step{Kind: terraform.Idle, Have: y.state(m).Registry})
		if _, err := m.Apply(t.Context(), idle); err == nil {
			t.Error("the plan of an idle check was applied")
		}
	})
}
