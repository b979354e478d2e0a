// SPDX-License-Identifier: Apache-2.0

package terraform_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/theseus-gitops/theseus/executors/terraform"
)

// rehearse gives what was planned, each with its first offence.
func rehearse(y *yard) []string {
	y.t.Helper()
	var told []string
	m := y.open()
	all, err := m.Rehearse(y.t.Context(), time.Date(2026, 12, 1, 0, 0, 0, 0, time.UTC), func(s terraform.Step) { told = append(told, s.String()) })
	if err != nil {
		y.t.Fatal("Rehearse:", err)
	}
	var out []string
	for i, r := range all {
		if told[i] != r.Step.String() {
			y.t.Errorf("told of %q, planned %q", told[i], r.Step)
		}
		line := r.Step.String()
		if len(r.Offences) > 0 {
			line += ": " + r.Offences[0].Address
		}
		out = append(out, line)
	}
	return out
}

func TestRehearse(t *testing.T) {
	withTerraform(t, func(y *yard) {
		y.seed("c-cp-1", "c-cp-2")
		before := y.state(y.open())
		got := rehearse(y)
		want := []string{"idle check", "add c-cp-rehearsal", "serving c-cp-1", "destroy c-cp-1"}
		if !slices.Equal(got, want) {
			y.t.Errorf("rehearsed %q, want %q", got, want)
		}
		if after := y.state(y.open()); after.Serial != before.Serial {
			y.t.Errorf("the state moved from serial %d to %d", before.Serial, after.Serial)
		}
	})
}

// A machine that others depend on shows only when a key comes or goes: that is what rehearsing is for.
func TestRehearseFindsWhatOneMoreKeyTouches(t *testing.T) {
	withTerraform(t, func(y *yard) {
		y.write("neighbours.tf", `resource "terraform_data" "neighbours" {
  for_each         = var.machines
  input            = each.key
  triggers_replace = length(var.machines)
}
`)
		y.seed("c-cp-1", "c-cp-2")
		got := strings.Join(rehearse(y), "\n")
		for _, want := range []string{"idle check\n", `add c-cp-rehearsal: terraform_data.neighbours["c-cp-1"]`, `destroy c-cp-1: terraform_data.neighbours["c-cp-2"]`} {
			if !strings.Contains(got, want) {
				y.t.Errorf("rehearsed\n%s\nwithout %q", got, want)
			}
		}
	})
}

// What is left to change would be in every plan.
func TestRehearseNeedsAModuleAtRest(t *testing.T) {
	withTerraform(t, func(y *yard) {
		y.seed("c-cp-1")
		y.write("late.tf", "resource \"terraform_data\" \"late\" {}\n")
		if got := rehearse(y); !slices.Equal(got, []string{"idle check: terraform_data.late"}) {
			y.t.Errorf("rehearsed %q", got)
		}
	})
}

// Where each machine has a module of its own, its member may be counted there: 1 while it serves, 0 when it does not.
func TestRehearseMemberInModule(t *testing.T) {
	withTerraform(t, func(y *yard) {
		y.write("main.tf", strings.Replace(y.text("main.tf"), `"terraform_data.pool"`, `"module.behind.terraform_data.member"`, 1))
		y.write("behind.tf", `module "behind" {
  source   = "./behind"
  for_each = var.machines
  machine  = each.value
}
`)
		y.write("behind/main.tf", `variable "machine" {}
resource "terraform_data" "member" {
  count = var.machine.serving ? 1 : 0
}
`)
		y.seed("c-cp-1", "c-cp-2")
		want := []string{"idle check", "add c-cp-rehearsal", "serving c-cp-1", "destroy c-cp-1"}
		if got := rehearse(y); !slices.Equal(got, want) {
			y.t.Errorf("rehearsed %q, want %q", got, want)
		}
	})
}
