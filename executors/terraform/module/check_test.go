// SPDX-License-Identifier: Apache-2.0

package module_test

import (
	"flag"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"

	"github.com/theseus-gitops/theseus/executors/terraform/module"
)

var update = flag.Bool("update", false, "rewrite golden files")

// folders is a module in memory: paths relative to the root module.
type folders map[string][]byte

func (f folders) read(dir string) ([]module.File, error) {
	var out []module.File
	for name, data := range f {
		if filepath.ToSlash(filepath.Dir(name)) == dir {
			out = append(out, module.File{Name: filepath.Base(name), Data: data})
		}
	}
	if out == nil {
		return nil, fs.ErrNotExist
	}
	slices.SortFunc(out, func(a, b module.File) int { return strings.Compare(a.Name, b.Name) })
	return out, nil
}

// good is the complete example of the contract's document.
func good(tb testing.TB) folders {
	tb.Helper()
	entries, err := os.ReadDir(filepath.Join("testdata", "openstack"))
	if err != nil {
		tb.Fatal(err)
	}
	out := folders{}
	for _, e := range entries {
		if out[e.Name()], err = os.ReadFile(filepath.Join("testdata", "openstack", e.Name())); err != nil {
			tb.Fatal(err)
		}
	}
	return out
}

func check(t *testing.T, f folders) module.Findings {
	t.Helper()
	r, err := module.Check(f.read)
	if err != nil {
		t.Fatal(err)
	}
	return r.Findings
}

func TestGoodModuleHasNoFindings(t *testing.T) {
	t.Parallel()
	for _, dir := range []string{"testdata/openstack", "../../../examples/terraform/lab"} {
		r, err := module.Check(module.FromDisk(dir))
		if err != nil {
			t.Fatal(err)
		}
		if len(r.Findings) > 0 {
			t.Errorf("%s:\n%s", dir, r.Findings)
		}
		if r.Resources == 0 || r.Files == 0 {
			t.Errorf("%s: %d files, %d resources", dir, r.Files, r.Resources)
		}
	}
}

// Each case is a comment that says what is wrong, files that take the place of the good module's, and what the check finds.
func TestCases(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/cases/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatal("no cases", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			t.Parallel()
			runCase(t, file)
		})
	}
}

const findingsFile = "findings"

func runCase(t *testing.T, file string) {
	t.Helper()
	archive, err := txtar.ParseFile(file)
	if err != nil {
		t.Fatal(err)
	}
	sources, want := good(t), ""
	for _, f := range archive.Files {
		switch f.Name {
		case findingsFile:
			want = string(f.Data)
		case "remove":
			for _, name := range strings.Fields(string(f.Data)) {
				delete(sources, name)
			}
		default:
			sources[f.Name] = f.Data
		}
	}
	got := check(t, sources).String()
	if again := check(t, sources).String(); again != got {
		t.Errorf("checked twice:\n%s\nand\n%s", got, again)
	}
	if *update {
		archive.Files = slices.DeleteFunc(archive.Files, func(f txtar.File) bool { return f.Name == findingsFile })
		archive.Files = append(archive.Files, txtar.File{Name: findingsFile, Data: []byte(got)})
		if err := os.WriteFile(file, txtar.Format(archive), 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// A rule that no case breaks may have stopped working, and nobody would know.
func TestEveryRuleHasACase(t *testing.T) {
	t.Parallel()
	if *update {
		t.Skip("the cases are being rewritten")
	}
	files, err := filepath.Glob("testdata/cases/*.txtar")
	if err != nil {
		t.Fatal(err)
	}
	all := ""
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		all += string(data)
	}
	seen := map[module.Code]bool{}
	for _, r := range module.Rules() {
		if seen[r.Code] {
			t.Errorf("rule %s is there twice", r.Code)
		}
		seen[r.Code] = true
		if !strings.Contains(all, "["+string(r.Code)+"]\n") {
			t.Errorf("no case breaks rule %s", r.Code)
		}
		if r.Want == "" || r.Change == "" || r.Why == "" {
			t.Errorf("rule %s does not say what is wanted, how to get there and why", r.Code)
		}
	}
}

func TestNoModule(t *testing.T) {
	t.Parallel()
	if _, err := module.Check(module.FromDisk("testdata/nowhere")); err == nil || !strings.Contains(err.Error(), "nowhere") {
		t.Errorf("no folder: %v", err)
	}
	if _, err := module.Check(folders{"README.md": nil, ".terraform.lock.hcl": nil}.read); err == nil {
		t.Error("a folder without *.tf files passed")
	}
}
