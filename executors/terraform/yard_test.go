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

// programs are the Terraforms that tests run: terraform from PATH, and the OpenTofu that $THESEUS_TOFU names. Neither is reason
// to skip, and one that is named and can't be run to fail.
func programs(t *testing.T) []string {
	t.Helper()
	var out []string
	if path, err := exec.LookPath("terraform"); err == nil {
		out = append(out, path)
	}
	if tofu := os.Getenv("THESEUS_TOFU"); tofu != "" {
		path, err := exec.LookPath(tofu)
		if err != nil {
			t.Fatalf("$THESEUS_TOFU: %v", err)
		}
		out = append(out, path)
	}
	if len(out) == 0 {
		t.Skip("neither terraform in PATH nor OpenTofu in $THESEUS_TOFU: make unit builds the latter")
	}
	return out
}

// withTerraform runs a test with each of the programs.
func withTerraform(t *testing.T, test func(y *yard)) {
	t.Helper()
	t.Parallel()
	for _, path := range programs(t) {
		t.Run(filepath.Base(path), func(t *testing.T) {
			t.Parallel()
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

// slow gives machines a resource whose creation begins by writing Terraform's process id into the file begun, and ends when the file go is there.
func (y *yard) slow() {
	y.t.Helper()
	y.write("slow.tf", `resource "terraform_data" "slow" {
  for_each = var.machines
  input    = terraform_data.vm[each.key].id
  provisioner "local-exec" {
    command = "echo $PPID > begun; while [ ! -e go ]; do sleep 0.05; done"
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
