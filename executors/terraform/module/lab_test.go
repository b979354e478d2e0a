// SPDX-License-Identifier: Apache-2.0

package module_test

import (
	"cmp"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const labExample = "../../../examples/terraform/lab"

// workspace is a copy of a module in which the real Terraform runs.
type workspace struct {
	t       *testing.T
	dir     string
	program string
}

func newWorkspace(t *testing.T, from string) workspace {
	t.Helper()
	program, err := exec.LookPath(cmp.Or(os.Getenv("THESEUS_TOFU"), "terraform"))
	if err != nil {
		t.Fatalf("this test runs the real Terraform (1.4 or newer), or the OpenTofu that $THESEUS_TOFU names, and curl: %v", err)
	}
	w := workspace{t: t, dir: t.TempDir(), program: program}
	if err := os.CopyFS(w.dir, os.DirFS(from)); err != nil {
		t.Fatal(err)
	}
	return w
}

func (w workspace) write(name string, content any) {
	w.t.Helper()
	data, err := json.Marshal(content)
	if err != nil {
		w.t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(w.dir, name), data, 0o600); err != nil {
		w.t.Fatal(err)
	}
}

func (w workspace) terraform(args ...string) string {
	w.t.Helper()
	cmd := exec.CommandContext(w.t.Context(), w.program, args...)
	cmd.Dir = w.dir
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + w.dir, "CHECKPOINT_DISABLE=1", "TF_IN_AUTOMATION=1"}
	var stdout, stderr strings.Builder
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		w.t.Fatalf("terraform %s: %v\n%s%s", strings.Join(args, " "), err, stdout.String(), stderr.String())
	}
	return stdout.String()
}

// entry is one of var.machines.
type entry map[string]any

func machine(image string, serving bool) entry {
	return entry{
		"role": "control-plane", "pool": "control-plane", "kubernetes_version": "v1.37.2", "image": image,
		"failure_domain": "", "created": "2026-12-01T00:00:00Z", "serving": serving, "values": map[string]string{"flavor": "small"},
	}
}

// plan makes a plan and returns what it changes: "ADDRESS: ACTIONS", sorted.
func (w workspace) plan(machines map[string]entry, bootstrap map[string]string) []string {
	w.t.Helper()
	variables := map[string]any{"machines": machines}
	if bootstrap != nil {
		variables["bootstrap"] = bootstrap
	}
	w.write("step.auto.tfvars.json", variables)
	w.terraform("plan", "-input=false", "-out=plan")
	var plan struct {
		ResourceChanges []struct {
			Address string
			Change  struct{ Actions []string }
		} `json:"resource_changes"`
	}
	if err := json.Unmarshal([]byte(w.terraform("show", "-json", "plan")), &plan); err != nil {
		w.t.Fatal(err)
	}
	var out []string
	for _, c := range plan.ResourceChanges {
		if !slices.Equal(c.Change.Actions, []string{"no-op"}) {
			out = append(out, c.Address+": "+strings.Join(c.Change.Actions, "+"))
		}
	}
	slices.Sort(out)
	return out
}

func TestLabExampleIsValid(t *testing.T) {
	t.Parallel()
	w := newWorkspace(t, labExample)
	w.terraform("init", "-backend=false", "-input=false")
	w.terraform("validate")
	w.terraform("fmt", "-check")
}

// A whole replacement of one machine: every plan touches what its step may touch, and nothing else.
func TestLabExampleRolls(t *testing.T) {
	t.Parallel()
	lab := startLabService(t)
	w := newWorkspace(t, labExample)
	w.write("lab.auto.tfvars.json", map[string]string{"cluster": "lab", "service": lab.URL, "endpoint": "10.213.0.1:6443"})
	state := lab.URL + "/state/lab"
	w.terraform("init", "-input=false", "-lockfile=readonly",
		"-backend-config=address="+state, "-backend-config=lock_address="+state, "-backend-config=unlock_address="+state)

	machines := map[string]entry{"lab-cp-1": machine("debian-12", true)}
	all := []string{`terraform_data.endpoint["lab-cp-1"]: create`, `terraform_data.machine["lab-cp-1"]: create`, `terraform_data.server["lab-cp-1"]: create`}
	steps := []struct {
		name      string
		change    func()
		bootstrap map[string]string
		want      []string
		world     string
	}{
		{"the first machine", func() {}, map[string]string{"lab-cp-1": "#!/bin/sh\necho 'it's \"first\"'"}, all, "lab-cp-1 | lab-cp-1"},
		{"idle: user data is gone", func() {}, nil, nil, "lab-cp-1 | lab-cp-1"},
		{
			"add", func() { machines["lab-cp-2"] = machine("debian-13", false) }, map[string]string{"lab-cp-2": "#cloud-config"},
			[]string{`terraform_data.machine["lab-cp-2"]: create`, `terraform_data.server["lab-cp-2"]: create`}, "lab-cp-1 lab-cp-2 | lab-cp-1",
		},
		{
			"serve", func() { machines["lab-cp-2"]["serving"] = true }, nil,
			[]string{`terraform_data.endpoint["lab-cp-2"]: create`, `terraform_data.machine["lab-cp-2"]: update`}, "lab-cp-1 lab-cp-2 | lab-cp-1 lab-cp-2",
		},
		{
			"leave the endpoint", func() { machines["lab-cp-1"]["serving"] = false }, nil,
			[]string{`terraform_data.endpoint["lab-cp-1"]: delete`, `terraform_data.machine["lab-cp-1"]: update`}, "lab-cp-1 lab-cp-2 | lab-cp-2",
		},
		{
			"destroy", func() { delete(machines, "lab-cp-1") }, nil,
			[]string{`terraform_data.machine["lab-cp-1"]: delete`, `terraform_data.server["lab-cp-1"]: delete`}, "lab-cp-2 | lab-cp-2",
		},
		{"idle at the end", func() {}, nil, nil, "lab-cp-2 | lab-cp-2"},
	}
	for _, s := range steps {
		s.change()
		if got := w.plan(machines, s.bootstrap); !slices.Equal(got, s.want) {
			t.Fatalf("%s: the plan changes\n%s\nwant\n%s", s.name, strings.Join(got, "\n"), strings.Join(s.want, "\n"))
		}
		w.terraform("apply", "-input=false", "plan")
		if got := lab.world(); got != s.world {
			t.Fatalf("%s: the lab has %q, want %q", s.name, got, s.world)
		}
	}
	if got := lab.madeWith("lab-cp-2"); got != `{"image":"debian-13","userData":"#cloud-config"}` {
		t.Errorf("the new machine was made with %s", got)
	}
	if lab.locked < 2*len(steps) || lab.lock != nil {
		t.Errorf("the state was locked %d times, and is locked now: %t", lab.locked, lab.lock != nil)
	}
	if out := w.terraform("output", "-json", "theseus"); !strings.Contains(out, `"lab-cp-2":{`) || !strings.Contains(out, `"contract":1`) {
		t.Errorf("output theseus: %s", out)
	}
}
