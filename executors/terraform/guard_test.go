// SPDX-License-Identifier: Apache-2.0

package terraform_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	tfjson "github.com/hashicorp/terraform-json"
	"github.com/rogpeppe/go-internal/txtar"

	"github.com/theseus-gitops/theseus/executors/terraform"
	"github.com/theseus-gitops/theseus/reconcile/spec"
)

var update = flag.Bool("update", false, "make the plans in testdata/plans again with the real terraform, and rewrite the verdicts")

// fixture is a file of testdata/plans: a module, how it came to its state, the step, the plan that the real
// terraform made of it (`show -json`, trimmed), and the guard's verdict. What is not given is testdata/module, with
// machines c-cp-1 and c-cp-2.
type fixture struct {
	path    string
	archive *txtar.Archive
}

// stepFile is a fixture's step.json.
type stepFile struct {
	Kind     string            `json:"kind"`
	Machine  string            `json:"machine"`
	Serving  bool              `json:"serving"`
	Tolerate []spec.Toleration `json:"tolerate"`
}

func (f fixture) file(name string) (string, bool) {
	for _, file := range f.archive.Files {
		if file.Name == name {
			return string(file.Data), true
		}
	}
	return "", false
}

func (f fixture) set(name string, data []byte) {
	for i, file := range f.archive.Files {
		if file.Name == name {
			f.archive.Files[i].Data = data
			return
		}
	}
	f.archive.Files = append(f.archive.Files, txtar.File{Name: name, Data: data})
}

func (f fixture) step(t *testing.T) (terraform.Step, []spec.Toleration) {
	t.Helper()
	text, _ := f.file("step.json")
	var s stepFile
	if err := json.Unmarshal([]byte(text), &s); err != nil {
		t.Fatal("step.json:", err)
	}
	kinds := map[string]terraform.Kind{"idle": terraform.Idle, "add": terraform.Add, "serve": terraform.Serve, "destroy": terraform.Destroy, "drop": terraform.Drop}
	kind, ok := kinds[s.Kind]
	if !ok {
		t.Fatalf("step.json: unknown kind %q", s.Kind)
	}
	added := machine()
	added.Serving = s.Serving
	return terraform.Step{Kind: kind, Machine: s.Machine, Have: f.machines(t), New: added, UserData: "#cloud-config\n", Serving: s.Serving}, s.Tolerate
}

// machines is the map before the step.
func (f fixture) machines(t *testing.T) terraform.Machines {
	t.Helper()
	text, ok := f.file("machines.json")
	if !ok {
		text = `{"c-cp-1": {}, "c-cp-2": {}}`
	}
	return changed(t, terraform.Machines{}, text)
}

// changed lays a JSON object of machines over a map: fields that it gives replace those there, or the usual ones.
func changed(t *testing.T, have terraform.Machines, text string) terraform.Machines {
	t.Helper()
	var over map[string]json.RawMessage
	if err := json.Unmarshal([]byte(text), &over); err != nil {
		t.Fatal(err)
	}
	all := terraform.Machines{}
	for name, m := range have {
		all[name] = m
	}
	for name, fields := range over {
		m, ok := all[name]
		if !ok {
			m = machine()
		}
		if err := json.Unmarshal(fields, &m); err != nil {
			t.Fatal(err)
		}
		all[name] = m
	}
	return all
}

func machine() terraform.Machine {
	return terraform.Machine{Role: "control-plane", Pool: "control-plane", KubernetesVersion: "v1.37.2", Image: "debian-13", Created: "2026-12-01T08:00:00Z", Serving: true, Values: map[string]string{}}
}

func fixtures(t *testing.T) map[string]fixture {
	t.Helper()
	paths, err := filepath.Glob("testdata/plans/*.txtar")
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]fixture{}
	for _, path := range paths {
		archive, err := txtar.ParseFile(path)
		if err != nil {
			t.Fatal(err)
		}
		all[strings.TrimSuffix(filepath.Base(path), ".txtar")] = fixture{path, archive}
	}
	return all
}

func (f fixture) plan(t *testing.T) *tfjson.Plan {
	t.Helper()
	text, ok := f.file("plan.json")
	if !ok {
		t.Fatal("no plan.json: run with -update")
	}
	var plan tfjson.Plan
	plan.UseJSONNumber(true)
	if err := json.Unmarshal([]byte(text), &plan); err != nil {
		t.Fatal(err)
	}
	return &plan
}

func verdict(offences []terraform.Offence) string {
	if len(offences) == 0 {
		return "allowed\n"
	}
	var b strings.Builder
	for _, o := range offences {
		b.WriteString(o.String() + "\n")
	}
	return b.String()
}

func TestGuard(t *testing.T) {
	t.Parallel()
	all := fixtures(t)
	if len(all) < 30 {
		t.Errorf("%d fixtures, want at least 30", len(all))
	}
	for name, f := range all {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if *update {
				f.set("plan.json", f.realPlan(t))
			}
			step, tolerate := f.step(t)
			got := verdict(terraform.Guard(f.plan(t), step, tolerate))
			if *update {
				f.set("verdict", []byte(got))
				if err := os.WriteFile(f.path, txtar.Format(f.archive), 0o600); err != nil {
					t.Fatal(err)
				}
				return
			}
			want, _ := f.file("verdict")
			if got != want {
				t.Errorf("%s\ngot:\n%s\nwant:\n%s", bytes.TrimSpace(f.archive.Comment), got, want)
			}
		})
	}
}

func mustJSON(t *testing.T, v any) []byte {
	t.Helper()
	data, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return data
}
