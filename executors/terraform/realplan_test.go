// SPDX-License-Identifier: Apache-2.0

package terraform_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/theseus-gitops/theseus/executors/terraform"
)

// workshop is a folder in which the real program runs, with local state.
type workshop struct {
	t           *testing.T
	dir, binary string
}

func (w workshop) write(name, text string) {
	w.t.Helper()
	path := filepath.Join(w.dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		w.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		w.t.Fatal(err)
	}
}

func (w workshop) run(args ...string) []byte {
	w.t.Helper()
	cmd := exec.CommandContext(w.t.Context(), w.binary, args...)
	cmd.Dir = w.dir
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + w.dir, "CHECKPOINT_DISABLE=1"}
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		w.t.Fatalf("%s %s: %v\n%s%s", w.binary, strings.Join(args, " "), err, out, stderr.Bytes())
	}
	return out
}

// apply is what a person does: it applies the folder with that map.
func (w workshop) apply(machines terraform.Machines, userData ...string) {
	w.t.Helper()
	w.variables(machines, userData...)
	w.run("apply", "-auto-approve", "-input=false", "-no-color")
}

func (w workshop) variables(machines terraform.Machines, userData ...string) {
	w.t.Helper()
	bootstrap := map[string]string{}
	for _, name := range userData {
		bootstrap[name] = "#cloud-config\n"
	}
	data, err := json.Marshal(map[string]any{"machines": machines, "bootstrap": bootstrap})
	if err != nil {
		w.t.Fatal(err)
	}
	w.write("terraform.tfvars.json", string(data))
}

// module writes testdata/module.
func (w workshop) module() {
	w.t.Helper()
	for _, name := range []string{"main.tf", "node/main.tf", "net.tfstate"} {
		data, err := os.ReadFile(filepath.Join("testdata/module", name))
		if err != nil {
			w.t.Fatal(err)
		}
		w.write(name, string(data))
	}
}

// files writes the fixture's files whose names begin with prefix.
func (f fixture) files(w workshop, prefix string) {
	w.t.Helper()
	for _, name := range []string{"main.tf", "extra.tf"} {
		if text, ok := f.file(prefix + name); ok {
			w.write(name, text)
		}
	}
}

// prepare runs the fixture's lines between the first apply and the plan: `apply {JSON over the map} [bootstrap NAME]`,
// or a command of terraform.
func (f fixture) prepare(w workshop) {
	w.t.Helper()
	text, _ := f.file("prepare")
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		over, isApply := strings.CutPrefix(line, "apply ")
		if !isApply {
			w.run(strings.Fields(line)...)
			continue
		}
		over, name, _ := strings.Cut(over, " bootstrap ")
		var userData []string
		if name != "" {
			userData = append(userData, name)
		}
		w.apply(changed(w.t, f.machines(w.t), over), userData...)
	}
}

// realPlan makes the fixture's plan with the real terraform.
func (f fixture) realPlan(t *testing.T) []byte {
	t.Helper()
	w := workshop{t: t, dir: t.TempDir(), binary: "terraform"}
	w.module()
	f.files(w, "")
	w.run("init", "-input=false")
	w.apply(f.machines(t))
	f.prepare(w)
	f.files(w, "then-")
	step, _ := f.step(t)
	after, err := step.Machines()
	if err != nil {
		t.Fatal(err)
	}
	if step.Kind == terraform.Add {
		w.variables(after, step.Machine)
	} else {
		w.variables(after)
	}
	w.run("plan", "-input=false", "-out=plan")
	return trim(t, w.run("show", "-json", "plan"))
}

var uuids = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`)

// trim leaves out what the guard does not look at, and gives ids that are the same each time.
func trim(t *testing.T, data []byte) []byte {
	t.Helper()
	ids := map[string]string{}
	data = uuids.ReplaceAllFunc(data, func(id []byte) []byte {
		if ids[string(id)] == "" {
			ids[string(id)] = fmt.Sprintf("00000000-0000-4000-8000-%012d", len(ids)+1)
		}
		return []byte(ids[string(id)])
	})
	var plan map[string]any
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.UseNumber()
	if err := decoder.Decode(&plan); err != nil {
		t.Fatal(err)
	}
	maps.DeleteFunc(plan, func(key string, _ any) bool {
		switch key {
		case "format_version", "terraform_version", "complete", "errored", "applyable", "resource_changes", "resource_drift", "deferred_changes", "output_changes", "configuration":
			return false
		}
		return true
	})
	configuration, _ := plan["configuration"].(map[string]any)
	root, _ := configuration["root_module"].(map[string]any)
	plan["configuration"] = map[string]any{"root_module": map[string]any{"resources": root["resources"], "module_calls": root["module_calls"]}}
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", " ")
	if err := encoder.Encode(plan); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}
