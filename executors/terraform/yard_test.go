// SPDX-License-Identifier: Apache-2.0

package terraform_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/theseus-gitops/theseus/executors/terraform"
)

// withTerraform runs a test with the real terraform, from PATH or $THESEUS_TERRAFORM, and with OpenTofu when $THESEUS_TOFU
// names it.
func withTerraform(t *testing.T, test func(y *yard)) {
	t.Helper()
	program := os.Getenv("THESEUS_TERRAFORM")
	if program == "" {
		program = "terraform"
	}
	programs := []string{program}
	if tofu := os.Getenv("THESEUS_TOFU"); tofu != "" {
		programs = append(programs, tofu)
	}
	t.Parallel()
	for _, name := range programs {
		t.Run(filepath.Base(name), func(t *testing.T) {
			t.Parallel()
			path, err := exec.LookPath(name)
			if err != nil {
				t.Skipf("no %s here: install it, or set THESEUS_TERRAFORM", name)
			}
			test(newYard(t, path))
		})
	}
}

// yard is a root module with a state server and a place for private folders.
type yard struct {
	workshop
	temp   string
	server *stateServer
}

func newYard(t *testing.T, program string) *yard {
	t.Helper()
	y := &yard{workshop: workshop{t: t, dir: t.TempDir(), binary: program}, temp: t.TempDir(), server: serveState(t)}
	y.module()
	y.write("backend.tf", y.server.backend())
	return y
}

// seed is what a person did before Theseus came: the first machines.
func (y *yard) seed(names ...string) terraform.Machines {
	y.t.Helper()
	have := terraform.Machines{}
	for _, name := range names {
		have[name] = machine()
	}
	y.run("init", "-input=false", "-reconfigure")
	y.apply(have)
	return have
}

func (y *yard) options() terraform.Options {
	return terraform.Options{
		Dir: y.dir, Binary: y.binary, Cluster: "c", TempDir: y.temp,
		Environ: []string{"PATH=" + os.Getenv("PATH"), "HOME=" + y.dir, "NOT_ON_THE_LIST=1"},
	}
}

func (y *yard) open(change ...func(*terraform.Options)) *terraform.Module {
	y.t.Helper()
	o := y.options()
	for _, c := range change {
		c(&o)
	}
	m, err := terraform.Open(y.t.Context(), o)
	if err != nil {
		y.t.Fatal("Open:", err)
	}
	y.t.Cleanup(func() { // after the test's own Close: folder gone is fine
		_ = m.Close()
	})
	return m
}

// state is State, which must work.
func (y *yard) state(m *terraform.Module) *terraform.State {
	y.t.Helper()
	s, err := m.State(y.t.Context())
	if err != nil {
		y.t.Fatal("State:", err)
	}
	return s
}

// do plans and applies a step, which must work.
func (y *yard) do(m *terraform.Module, s terraform.Step) *terraform.State {
	y.t.Helper()
	p := y.plan(m, s)
	if len(p.Offences) > 0 {
		y.t.Fatalf("%s: %s", s, verdict(p.Offences))
	}
	state, err := m.Apply(y.t.Context(), p)
	if err != nil {
		y.t.Fatalf("Apply %s: %v", s, err)
	}
	return state
}

func (y *yard) plan(m *terraform.Module, s terraform.Step) *terraform.Plan {
	y.t.Helper()
	p, err := m.Plan(y.t.Context(), s)
	if err != nil {
		y.t.Fatalf("Plan %s: %v", s, err)
	}
	return p
}

func addStep(have terraform.Machines, name string) terraform.Step {
	return terraform.Step{Kind: terraform.Add, Machine: name, Have: have, New: machine(), UserData: "#cloud-config\nhostname: new\n"}
}

// slow gives machines a resource whose creation begins by making the file begun, and ends when the file go is there.
func (y *yard) slow() {
	y.t.Helper()
	y.write("slow.tf", `resource "terraform_data" "slow" {
  for_each = var.machines
  input    = terraform_data.vm[each.key].id
  provisioner "local-exec" {
    command = "touch begun; while [ ! -e go ]; do sleep 0.05; done"
  }
}
`)
	y.write("go", "")
}

// hold makes slow resources wait from now on.
func (y *yard) holdSlow() {
	y.t.Helper()
	for _, name := range []string{"go", "begun"} {
		if err := os.Remove(filepath.Join(y.dir, name)); err != nil {
			y.t.Fatal(err)
		}
	}
}

func (y *yard) has(name string) bool {
	_, err := os.Stat(filepath.Join(y.dir, name))
	return err == nil
}

// eventually waits for what another process does.
func eventually(t *testing.T, what string, happened func() bool) {
	t.Helper()
	for range 600 {
		if happened() {
			return
		}
		time.Sleep(50 * time.Millisecond)
	}
	t.Fatalf("after 30 s still not: %s", what)
}

// leftOver are the files below the yard's place for private folders.
func (y *yard) leftOver() []string {
	y.t.Helper()
	var all []string
	err := filepath.WalkDir(y.temp, func(path string, _ os.DirEntry, err error) error {
		if path != y.temp {
			all = append(all, strings.TrimPrefix(path, y.temp))
		}
		return err
	})
	if err != nil {
		y.t.Fatal(err)
	}
	return all
}
