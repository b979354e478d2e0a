// SPDX-License-Identifier: Apache-2.0

package module_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"

	"github.com/theseus-gitops/theseus/executors/terraform/module"
)

// FuzzCheck: no HCL makes the check panic or hang, and what it finds has a place in a file that was read.
func FuzzCheck(f *testing.F) {
	cases, err := filepath.Glob("testdata/cases/*.txtar")
	if err != nil {
		f.Fatal(err)
	}
	for _, file := range cases {
		archive, err := txtar.ParseFile(file)
		if err != nil {
			f.Fatal(err)
		}
		for _, a := range archive.Files {
			if strings.HasSuffix(a.Name, ".tf") {
				f.Add(string(a.Data), `variable "name" {}`)
			}
		}
	}
	lab, err := os.ReadFile("../../../examples/terraform/lab/main.tf")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(string(lab), "")
	f.Add(`module "a" { source = "./child", x = module.a.y }`, `module "b" { source = "../child" }`)
	f.Add(`locals { a = local.b
b = [for k, v in local.a : local.b...] }`, `output "y" { value = module.x }`)
	base := good(f)
	f.Fuzz(func(t *testing.T, extra, inside string) {
		sources := folders{"extra.tf": []byte(extra), "child/main.tf": []byte(inside)}
		for name, data := range base {
			sources[name] = data
		}
		for _, s := range []folders{sources, {"main.tf": []byte(extra), "child/main.tf": []byte(inside)}} {
			r, err := module.Check(s.read)
			if err != nil {
				t.Fatal(err)
			}
			for _, x := range r.Findings {
				if _, ok := s[x.File]; !ok || x.Line < 1 || x.Column < 1 {
					t.Errorf("a finding at no place: %s", x)
				}
			}
		}
	})
}
