// SPDX-License-Identifier: Apache-2.0

package module_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/theseus-gitops/theseus/executors/terraform/module"
)

const contractDocument = "../../../docs/terraform-contract.md"

// The document's table and example are made from the rules and from the module that the tests check.
func TestContractDocumentIsUpToDate(t *testing.T) {
	t.Parallel()
	data, err := os.ReadFile(contractDocument)
	if err != nil {
		t.Fatal(err)
	}
	want := string(data)
	for mark, content := range map[string]string{"rules": rulesTable(), "example": exampleText(t)} {
		begin, end := "<!-- begin "+mark+" -->\n", "<!-- end "+mark+" -->"
		before, rest, found := strings.Cut(want, begin)
		_, after, ended := strings.Cut(rest, end)
		if !found || !ended {
			t.Fatalf("%s has no place for %q between %q and %q", contractDocument, mark, begin, end)
		}
		want = before + begin + content + end + after
	}
	if want == string(data) {
		return
	}
	if *update {
		if err := os.WriteFile(contractDocument, []byte(want), 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	t.Errorf("%s is out of date: go test ./executors/terraform/module -update", contractDocument)
}

func rulesTable() string {
	var b strings.Builder
	b.WriteString("| code | severity | what is wanted, and how to get there | why |\n|---|---|---|---|\n")
	for _, r := range module.Rules() {
		cell := func(s string) string { return strings.ReplaceAll(s, "|", `\|`) }
		_, _ = fmt.Fprintf(&b, "| `%s` | %s | %s: %s | %s |\n", r.Code, r.Severity, cell(strings.TrimPrefix(r.Want, "the contract wants ")), cell(r.Change), cell(r.Why))
	}
	return b.String()
}

func exampleText(t *testing.T) string {
	t.Helper()
	var b strings.Builder
	files := good(t)
	for _, name := range []string{"terraform.tf", "variables.tf", "machines.tf", "endpoint.tf", "outputs.tf"} {
		if len(files[name]) == 0 {
			t.Fatalf("the example has no %s", name)
		}
		_, _ = fmt.Fprintf(&b, "`%s`\n\n```hcl\n%s```\n\n", name, files[name])
	}
	return b.String()
}
