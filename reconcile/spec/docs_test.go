// SPDX-License-Identifier: Apache-2.0

package spec_test

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/theseus-gitops/theseus/reconcile/spec"
	"github.com/theseus-gitops/theseus/reconcile/status"
)

const reference = "../../docs/specs.md"

var (
	// A block is a generated table: its first line names the kind and the keys whose fields it shows.
	blockPattern  = regexp.MustCompile(`(?s)(<!-- fields of (fleet|release|cluster): ([A-Za-z ]+) -->\n).*?(<!-- end -->\n)`)
	statusPattern = regexp.MustCompile(`(?s)<!-- fields of status -->\n(.*?)<!-- end -->\n`)
	codePattern   = regexp.MustCompile("`([^`\n]+)`")
	pathPattern   = regexp.MustCompile(`^[a-z][A-Za-z]*(\[\])?(\.[a-z][A-Za-z]*(\[\])?)+$`)
	samplePattern = regexp.MustCompile("(?s)```yaml\n# ([a-z0-9/-]+\\.yaml)\n(.*?)```\n")
)

// The tables of fields are made from the schemas, which are made from the types. Prose may not name a field that none has.
func TestReferenceShowsEveryField(t *testing.T) {
	text := read(t, reference)
	shown := map[string][]string{}
	made := blockPattern.ReplaceAllStringFunc(text, func(block string) string {
		m := blockPattern.FindStringSubmatch(block)
		keys := strings.Fields(m[3])
		shown[m[2]] = append(shown[m[2]], keys...)
		return m[1] + "\n" + table(t, m[2], keys) + "\n" + m[4]
	})
	for _, kind := range []string{"fleet", "release", "cluster"} {
		oncePerKey(t, kind, shown[kind])
	}
	if t.Failed() {
		return // -update would write tables with holes
	}
	if *update {
		if err := os.WriteFile(reference, []byte(made), 0o600); err != nil {
			t.Fatal(err)
		}
		text = made
	}
	compare(t, text, made)
	known, roots := namedFields(t)
	for _, m := range codePattern.FindAllStringSubmatch(blockPattern.ReplaceAllString(text, ""), -1) {
		path := strings.TrimPrefix(m[1], "spec.")
		root, _, _ := strings.Cut(strings.ReplaceAll(path, "[]", ""), ".")
		about := path != m[1] || roots[root]
		if pathPattern.MatchString(m[1]) && about && !known[path] {
			t.Errorf("%s names `%s`, which no kind of document has", reference, m[1])
		}
	}
}

// compare says which rows differ.
func compare(t *testing.T, text, made string) {
	t.Helper()
	if text == made {
		return
	}
	have, want := strings.Split(text, "\n"), strings.Split(made, "\n")
	for _, row := range want {
		if !slices.Contains(have, row) {
			t.Errorf("%s lacks the row\n%s", reference, row)
		}
	}
	for _, row := range have {
		if !slices.Contains(want, row) {
			t.Errorf("%s has a row that the types have not\n%s", reference, row)
		}
	}
	t.Errorf("%s: mend it with go test ./reconcile/spec -run TestReferenceShowsEveryField -update", reference)
}

// topKeys are the keys that tables are ordered by: those of spec, and those beside it.
func topKeys(root *schema) map[string]bool {
	keys := map[string]bool{}
	for _, properties := range []map[string]*schema{root.Properties, root.Properties["spec"].Properties} {
		for name := range properties {
			keys[name] = true
		}
	}
	delete(keys, "spec")
	return keys
}

func oncePerKey(t *testing.T, kind string, shown []string) {
	t.Helper()
	keys := topKeys(schemaOf(t, kind))
	for i, key := range shown {
		switch {
		case !keys[key]:
			t.Errorf("%s has a table for %s of %s, which does not exist", reference, key, kind)
		case slices.Contains(shown[:i], key):
			t.Errorf("%s has two tables for %s of %s", reference, key, kind)
		}
	}
	for key := range keys {
		if !slices.Contains(shown, key) {
			t.Errorf("%s has no table for `%s` of %s: add the key to a line <!-- fields of %s: … -->", reference, key, kind, kind)
		}
	}
}

// namedFields are the paths of all fields of all kinds, with and without their lists' brackets, and the first words of paths.
func namedFields(t *testing.T) (known, roots map[string]bool) {
	t.Helper()
	known, roots = map[string]bool{}, map[string]bool{}
	for _, kind := range []string{"fleet", "release", "cluster"} {
		walk(schemaOf(t, kind), "", "", func(path, _ string, _ *schema) {
			path = strings.TrimPrefix(path, "spec.")
			plain := strings.ReplaceAll(path, "[]", "")
			known[path], known[plain] = true, true
			root, _, _ := strings.Cut(plain, ".")
			roots[root] = true
		})
	}
	return known, roots
}

// table has a row for each field below the keys, in the order of the keys.
func table(t *testing.T, kind string, keys []string) string {
	t.Helper()
	rows := map[string][]string{}
	required := map[string]bool{}
	root := schemaOf(t, kind)
	words := words(t)
	require := func(at string, s *schema) {
		for _, name := range s.Required {
			required[strings.TrimPrefix(at+"."+name, ".")] = true
		}
	}
	require("", root)
	walk(root, "", "", func(path, acts string, s *schema) {
		at := path
		for s := s; s != nil; s, at = s.Items, at+"[]" {
			require(at, s)
		}
		short := strings.TrimPrefix(path, "spec.")
		key, _, _ := strings.Cut(strings.ReplaceAll(short, "[]", ""), ".")
		meaning := strings.ReplaceAll(actsPattern.ReplaceAllString(s.Description, ""), "|", `\|`)
		rows[key] = append(rows[key], fmt.Sprintf("| `%s` | %s | %s | %s | %s |\n",
			short, typeOf(s, words), defaultOf(s, required[path]), when(acts), strings.TrimSpace(meaning)))
	})
	out := "| field | type | default | acts | meaning |\n|---|---|---|---|---|\n"
	for _, key := range keys {
		out += strings.Join(rows[key], "")
	}
	return out
}

func when(acts string) string {
	if spec.Capability(acts).Acts() {
		return "now"
	}
	return acts
}

func defaultOf(s *schema, required bool) string {
	switch value := s.Default.(type) {
	case nil:
		if required {
			return "needed"
		}
		return ""
	case string:
		return "`" + value + "`"
	default:
		return fmt.Sprintf("`%v`", value)
	}
}

// words names the patterns of scalars, learned from a field of each.
func words(t *testing.T) map[string]string {
	t.Helper()
	cluster := schemaOf(t, "cluster").Properties["spec"].Properties
	plane := cluster["controlPlane"].Properties
	return map[string]string{
		cluster["kubernetesVersion"].Pattern:              "version",
		plane["maxMachineAge"].Pattern:                    "duration",
		plane["rollAfter"].Pattern:                        "time",
		cluster["coreDNS"].Properties["imageTag"].Pattern: "image tag",
	}
}

func typeOf(s *schema, words map[string]string) string {
	if len(s.Enum) > 0 {
		var list []string
		for _, e := range s.Enum {
			list = append(list, fmt.Sprintf("`%v`", e))
		}
		return strings.Join(list, ", ")
	}
	kind, _ := s.Type.(string)
	switch kind {
	case "array":
		return "list of " + typeOf(s.Items, words)
	case "object":
		var values schema
		if json.Unmarshal(s.Additional, &values) == nil && values.Type != nil {
			return "map of " + typeOf(&values, words)
		}
		return "object"
	case "integer":
		return "number" + limits(s)
	case "boolean":
		return "true, false"
	case "string":
		if word := words[s.Pattern]; s.Pattern != "" && word != "" {
			return word
		}
		return "text"
	default:
		return "number or percentage"
	}
}

func limits(s *schema) string {
	switch {
	case s.Minimum != nil && s.Maximum != nil:
		return fmt.Sprintf(", %d to %d", *s.Minimum, *s.Maximum)
	case s.Minimum != nil:
		return fmt.Sprintf(", %d or more", *s.Minimum)
	default:
		return ""
	}
}

// The status table is written by hand, and names every field of the document, each once, and no other.
func TestReferenceShowsStatus(t *testing.T) {
	t.Parallel()
	block := statusPattern.FindStringSubmatch(read(t, reference))
	if block == nil {
		t.Fatalf("%s has no table of status fields", reference)
	}
	var shown []string
	for line := range strings.Lines(block[1]) {
		cells := strings.Split(line, "|")
		if len(cells) < 3 {
			continue
		}
		for _, m := range codePattern.FindAllStringSubmatch(cells[1], -1) {
			shown = append(shown, m[1])
		}
	}
	want := leaves(reflect.TypeFor[status.Status](), "")
	for i, path := range shown {
		if !slices.Contains(want, path) || slices.Contains(shown[:i], path) {
			t.Errorf("%s names `%s` of status, which does not exist or stands there twice", reference, path)
		}
	}
	for _, path := range want {
		if !slices.Contains(shown, path) {
			t.Errorf("%s does not name `%s` of status", reference, path)
		}
	}
}

func leaves(typ reflect.Type, path string) []string {
	switch {
	case typ.Kind() == reflect.Pointer:
		return leaves(typ.Elem(), path)
	case typ.Kind() == reflect.Slice && typ.Elem().Kind() == reflect.Struct:
		return leaves(typ.Elem(), path+"[]")
	case typ.Kind() != reflect.Struct || typ == reflect.TypeFor[time.Time]():
		return []string{path}
	}
	var out []string
	for i := range typ.NumField() {
		name, _, _ := strings.Cut(typ.Field(i).Tag.Get("yaml"), ",")
		out = append(out, leaves(typ.Field(i).Type, strings.TrimPrefix(path+"."+name, "."))...)
	}
	return out
}

// Samples are what people copy: each YAML block that begins with a file's name is that file.
func TestReferenceSamplesAreGood(t *testing.T) {
	t.Parallel()
	var files []spec.File
	for _, m := range samplePattern.FindAllStringSubmatch(read(t, reference), -1) {
		if strings.HasPrefix(m[1], "status/") {
			if _, err := status.Parse([]byte(m[2])); err != nil {
				t.Errorf("%s: %v", m[1], err)
			}
			continue
		}
		files = append(files, spec.File{Path: m[1], Data: []byte(m[2])})
	}
	good(t, files, 3)
}

// The example fleet is copied whole.
func TestExampleFleet(t *testing.T) {
	t.Parallel()
	root := os.DirFS(filepath.Join("..", "..", "examples", "fleet-minimal"))
	var files []spec.File
	err := fs.WalkDir(root, ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := fs.ReadFile(root, path)
		files = append(files, spec.File{Path: path, Data: data})
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	good(t, files, 2)
}

// good wants so many files, all of them ours and without an error.
func good(t *testing.T, files []spec.File, count int) {
	t.Helper()
	repo, problems := spec.Parse(files)
	if len(files) != count || repo.OtherFiles > 0 || problems.HasErrors() {
		t.Errorf("%d files, want %d; %d are not ours\n%s", len(files), count, repo.OtherFiles, problems)
	}
	for _, c := range repo.Clusters {
		if _, err := repo.Effective(c); err != nil {
			t.Error(err)
		}
	}
}
