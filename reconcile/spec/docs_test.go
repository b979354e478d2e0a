// SPDX-License-Identifier: Apache-2.0

package spec_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/theseus-gitops/theseus/reconcile/spec"
)

const reference = "../../docs/specs.md"

// field is what the reference shows of one node of a schema.
type field struct {
	Type        any               `json:"type"`
	Description string            `json:"description"`
	Default     any               `json:"default"`
	Enum        []any             `json:"enum"`
	Properties  map[string]*field `json:"properties"`
	Items       *field            `json:"items"`
	Required    []string          `json:"required"`
}

// The tables of docs/specs.md are made from the schemas, which are made from the types: the three can't disagree.
func TestReferenceShowsEveryField(t *testing.T) {
	text, err := os.ReadFile(reference)
	if err != nil {
		t.Fatal(err)
	}
	want := string(text)
	for _, kind := range []string{"fleet", "release", "cluster"} {
		begin, end := fmt.Sprintf("<!-- fields of %s -->\n", kind), fmt.Sprintf("<!-- end of %s -->", kind)
		head, rest, found := strings.Cut(want, begin)
		_, tail, closed := strings.Cut(rest, end)
		if !found || !closed {
			t.Fatalf("%s lacks the lines %q and %q", reference, begin, end)
		}
		want = head + begin + "\n" + table(t, kind) + "\n" + end + tail
	}
	if *update {
		if err := os.WriteFile(reference, []byte(want), 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	if !bytes.Equal(text, []byte(want)) {
		t.Errorf("%s does not show the fields as the types have them: go test ./reconcile/spec -update", reference)
	}
}

func table(t *testing.T, kind string) string {
	t.Helper()
	data, err := spec.Schema(kind)
	if err != nil {
		t.Fatal(err)
	}
	var root field
	if err := json.Unmarshal(data, &root); err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	b.WriteString("| field | type | default | meaning |\n|---|---|---|---|\n")
	rows(&b, root.Properties["spec"], "")
	return b.String()
}

func rows(b *strings.Builder, node *field, path string) {
	for _, name := range slices.Sorted(maps.Keys(node.Properties)) {
		f := node.Properties[name]
		here := strings.TrimPrefix(path+"."+name, ".")
		fallback := ""
		if f.Default != nil {
			text, _ := json.Marshal(f.Default) //nolint:errchkjson // it came from JSON
			fallback = "`" + string(text) + "`"
		} else if slices.Contains(node.Required, name) {
			fallback = "needed"
		}
		fmt.Fprintf(b, "| `%s` | %s | %s | %s |\n", here, kindOf(f), fallback, strings.ReplaceAll(f.Description, "|", "\\|"))
		rows(b, f, here)
		if f.Items != nil {
			rows(b, f.Items, here+"[]")
		}
	}
}

func kindOf(f *field) string {
	if len(f.Enum) > 0 {
		var words []string
		for _, e := range f.Enum {
			words = append(words, fmt.Sprintf("`%v`", e))
		}
		return strings.Join(words, ", ")
	}
	if list, ok := f.Type.([]any); ok {
		return strings.Trim(fmt.Sprint(list), "[]")
	}
	return fmt.Sprint(f.Type)
}

// The example fleet is what people copy.
func TestExampleFleet(t *testing.T) {
	t.Parallel()
	root := "../../examples/fleet-minimal"
	var files []spec.File
	for _, name := range []string{"fleet.yaml", "clusters/seed-dev-1.yaml"} {
		data, err := os.ReadFile(filepath.Join(root, name))
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, spec.File{Path: name, Data: data})
	}
	repo, problems := spec.Parse(files)
	if problems.HasErrors() || len(repo.Clusters) != 1 {
		t.Errorf("%d clusters\n%s", len(repo.Clusters), problems)
	}
}
