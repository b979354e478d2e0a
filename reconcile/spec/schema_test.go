// SPDX-License-Identifier: Apache-2.0

package spec_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/theseus-gitops/theseus/reconcile/spec"
)

type schema struct {
	Description string             `json:"description"`
	Type        any                `json:"type"`
	Properties  map[string]*schema `json:"properties"`
	Required    []string           `json:"required"`
	Additional  json.RawMessage    `json:"additionalProperties"`
	Items       *schema            `json:"items"`
	Enum        []any              `json:"enum"`
	Pattern     string             `json:"pattern"`
	Minimum     *int               `json:"minimum"`
	Maximum     *int               `json:"maximum"`
	Default     any                `json:"default"`
}

func schemaOf(t *testing.T, kind string) *schema {
	t.Helper()
	data, err := spec.Schema(kind)
	if err != nil {
		t.Fatal(err)
	}
	var s schema
	if err := json.Unmarshal(data, &s); err != nil {
		t.Fatal(err)
	}
	return &s
}

var actsPattern = regexp.MustCompile(`Acts in: (.*)\.$`)

// walk calls visit for each key below s, with the capability that the key has or inherits.
func walk(s *schema, path, acts string, visit func(path, acts string, s *schema)) {
	for s.Items != nil {
		s, path = s.Items, path+"[]"
	}
	for _, name := range slices.Sorted(maps.Keys(s.Properties)) {
		p, at, capability := s.Properties[name], strings.TrimPrefix(path+"."+name, "."), acts
		if m := actsPattern.FindStringSubmatch(p.Description); m != nil {
			capability = m[1]
		}
		visit(at, capability, p)
		walk(p, at, capability, visit)
	}
}

// TestSchemaHasTheTable compares the schema with the Cluster table: no key more, none less, each with its capability.
func TestSchemaHasTheTable(t *testing.T) {
	want := map[string]string{}
	for line := range strings.Lines(read(t, "testdata/cluster-fields.txt")) {
		if path, acts, ok := strings.Cut(strings.TrimSpace(line), " "); ok && path != "#" {
			want[path] = strings.TrimSpace(acts)
		}
	}
	got := map[string]string{}
	walk(schemaOf(t, "cluster").Properties["spec"], "", "", func(path, acts string, _ *schema) { got[path] = acts })
	for path, acts := range want {
		if got[path] != acts {
			t.Errorf("%s: the table says %q, the schema %q", path, acts, got[path])
		}
	}
	for path := range got {
		if _, ok := want[path]; !ok {
			t.Errorf("%s: in the schema only", path)
		}
	}
}

func TestSchemas(t *testing.T) {
	for _, kind := range []string{"fleet", "release", "cluster"} {
		data, err := spec.Schema(kind)
		if err != nil {
			t.Fatal(err)
		}
		golden(t, "testdata/schema-"+kind+".golden", string(data))
		walk(schemaOf(t, kind), "", "", func(path, _ string, s *schema) {
			if s.Description == "" {
				t.Errorf("%s: %s has no description", kind, path)
			}
			if s.Pattern != "" {
				regexp.MustCompile(s.Pattern)
			}
			if s.Default != nil {
				check(t, kind+" default of "+path, s, s.Default)
			}
		})
	}
	if _, err := spec.Schema("plan"); err == nil {
		t.Error("got a schema for an unknown kind")
	}
}

// check validates a value against the keywords that our schemas use.
func check(t *testing.T, at string, s *schema, value any) {
	t.Helper()
	types := []any{s.Type}
	if list, ok := s.Type.([]any); ok {
		types = list
	}
	ok := slices.ContainsFunc(types, func(name any) bool {
		switch value.(type) {
		case map[string]any:
			return name == "object"
		case []any:
			return name == "array"
		case string:
			return name == "string"
		case bool:
			return name == "boolean"
		case float64, int:
			return name == "integer"
		}
		return false
	})
	if !ok {
		t.Errorf("%s: %v is not of type %v", at, value, s.Type)
	}
	if text, ok := value.(string); ok && s.Pattern != "" && !regexp.MustCompile(s.Pattern).MatchString(text) {
		t.Errorf("%s: %q does not match %s", at, text, s.Pattern)
	}
	if len(s.Enum) > 0 && !slices.Contains(s.Enum, value) {
		t.Errorf("%s: %v is not in %v", at, value, s.Enum)
	}
	if n, ok := value.(float64); ok && ((s.Minimum != nil && n < float64(*s.Minimum)) || (s.Maximum != nil && n > float64(*s.Maximum))) {
		t.Errorf("%s: %v is out of range", at, n)
	}
	for i, item := range asList(value) {
		check(t, fmt.Sprintf("%s[%d]", at, i), s.Items, item)
	}
	checkObject(t, at, s, value)
}

func asList(value any) []any {
	list, _ := value.([]any)
	return list
}

func checkObject(t *testing.T, at string, s *schema, value any) {
	t.Helper()
	object, ok := value.(map[string]any)
	if !ok {
		return
	}
	for _, name := range s.Required {
		if _, ok := object[name]; !ok {
			t.Errorf("%s: %s is missing", at, name)
		}
	}
	var values *schema // of a map
	if len(s.Additional) > 0 && !bytes.Equal(s.Additional, []byte("false")) {
		if err := json.Unmarshal(s.Additional, &values); err != nil {
			t.Fatal(err)
		}
	}
	for name, item := range object {
		switch {
		case s.Properties[name] != nil:
			check(t, at+"."+name, s.Properties[name], item)
		case values != nil:
			check(t, at+"."+name, values, item)
		case bytes.Equal(s.Additional, []byte("false")):
			t.Errorf("%s: unknown key %s", at, name)
		}
	}
}

// TestSchemaAcceptsGoodSpecs holds what the decoder accepts against the schema.
func TestSchemaAcceptsGoodSpecs(t *testing.T) {
	for _, name := range []string{"full", "full-fleet", "spec-examples", "spec-examples-fleet"} {
		dec := yaml.NewDecoder(strings.NewReader(read(t, "testdata/good/"+name+".yaml")))
		for {
			var n yaml.Node
			if dec.Decode(&n) != nil {
				break
			}
			bareDates(&n)
			var value map[string]any
			if err := n.Decode(&value); err != nil {
				t.Fatal(err)
			}
			plain, err := json.Marshal(value)
			if err != nil {
				t.Fatal(err)
			}
			var document any
			if err := json.Unmarshal(plain, &document); err != nil {
				t.Fatal(err)
			}
			kind, _ := value["kind"].(string)
			check(t, name+" "+kind, schemaOf(t, kind), document)
		}
	}
}

// bareDates makes texts of dates, as YAML 1.2 and editors read them.
func bareDates(n *yaml.Node) {
	if n.ShortTag() == "!!timestamp" {
		n.Tag = "!!str"
	}
	for _, c := range n.Content {
		bareDates(c)
	}
}

// TestFullSpecIsFull fails when a new key is missing from the full example, which other tests rely on.
func TestFullSpecIsFull(t *testing.T) {
	got := map[string]bool{}
	for _, name := range []string{"full", "full-fleet"} {
		dec := yaml.NewDecoder(strings.NewReader(read(t, "testdata/good/"+name+".yaml")))
		for {
			var value map[string]any
			if dec.Decode(&value) != nil {
				break
			}
			kind, _ := value["kind"].(string)
			keys(value, kind, got)
		}
	}
	for _, kind := range []string{"Fleet", "Release", "Cluster"} {
		walk(schemaOf(t, kind), kind, "", func(path, _ string, _ *schema) {
			if !got[path] && path != "Cluster.spec.access.kubeconfig.path" { // one way only
				t.Errorf("%s is not in the full example", path)
			}
		})
	}
}

func keys(value any, path string, got map[string]bool) {
	got[path] = true
	switch v := value.(type) {
	case map[string]any:
		for name, item := range v {
			keys(item, path+"."+name, got)
		}
	case []any:
		for _, item := range v {
			keys(item, path+"[]", got)
		}
	}
}
