// SPDX-License-Identifier: Apache-2.0

package spec

import (
	"bytes"
	"encoding/json"
	"fmt"
	"iter"
	"reflect"
	"strings"

	"go.yaml.in/yaml/v3"
)

// node is a JSON Schema (draft 2020-12), as far as these types need one.
type node struct {
	Schema      string           `json:"$schema,omitempty"`
	Title       string           `json:"title,omitempty"`
	Description string           `json:"description,omitempty"`
	Type        any              `json:"type,omitempty"` // a text, or a list of texts
	Properties  map[string]*node `json:"properties,omitempty"`
	Required    []string         `json:"required,omitempty"`
	// Additional is false for structs and the schema of the values for maps.
	Additional any    `json:"additionalProperties,omitempty"`
	Names      *node  `json:"propertyNames,omitempty"`
	Items      *node  `json:"items,omitempty"`
	Enum       []any  `json:"enum,omitempty"`
	Pattern    string `json:"pattern,omitempty"`
	MinLength  int    `json:"minLength,omitempty"`
	Minimum    *int   `json:"minimum,omitempty"`
	Maximum    *int   `json:"maximum,omitempty"`
	MinItems   int    `json:"minItems,omitempty"`
	Default    any    `json:"default,omitempty"`
}

// Schema returns the JSON Schema of a kind, given as in documents or in lower case: Fleet, Release or Cluster.
//
// It is made from the struct tags that the decoder reads, by a reflector of our own: a schema library reads its own tags,
// which could then say something else than the decoder does. Rules that span several keys are not in it; Parse has them.
func Schema(kind string) ([]byte, error) {
	t, name := typeOf(kind)
	if t == nil {
		return nil, fmt.Errorf("no schema for kind %q: want fleet, release or cluster", kind)
	}
	n := schemaOf(t, field{})
	n.Schema = "https://json-schema.org/draft/2020-12/schema"
	n.Title = name
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false) // people read it
	enc.SetIndent("", "  ")
	if err := enc.Encode(n); err != nil {
		return nil, fmt.Errorf("schema of %s: %w", name, err)
	}
	return out.Bytes(), nil
}

func typeOf(kind string) (reflect.Type, string) {
	switch strings.ToLower(kind) {
	case "fleet":
		return reflect.TypeFor[Fleet](), KindFleet
	case "release":
		return reflect.TypeFor[Release](), KindRelease
	case "cluster":
		return reflect.TypeFor[Cluster](), KindCluster
	default:
		return nil, ""
	}
}

func schemaOf(t reflect.Type, f field) *node {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if s, ok := reflect.New(t).Interface().(scalar); ok {
		return scalarSchema(s.form())
	}
	switch t.Kind() { //nolint:exhaustive // the kinds that the types use; any other panics
	case reflect.Struct:
		return structSchema(t)
	case reflect.Map:
		return mapSchema(t, f)
	case reflect.Slice:
		item := f
		item.required = false
		n := &node{Type: "array", Items: schemaOf(t.Elem(), item)}
		if f.required {
			n.MinItems = 1
		}
		return n
	case reflect.String:
		return textSchema(f)
	case reflect.Int:
		return &node{Type: "integer", Minimum: f.min, Maximum: f.max}
	case reflect.Bool:
		return &node{Type: "boolean"}
	default:
		panic("no schema for " + t.String()) // a field type was added without one; the schema test meets it first
	}
}

func structSchema(t reflect.Type) *node {
	n := &node{Type: "object", Properties: map[string]*node{}, Additional: false}
	for _, f := range fieldsOf(t) {
		p := schemaOf(f.typ, f)
		p.Description = f.desc
		if f.acts != "" {
			p.Description += " Acts in: " + string(f.acts) + "."
		}
		if f.hasDef && f.def != "{}" {
			p.Default = defaultOf(f)
		}
		if f.required {
			n.Required = append(n.Required, f.name)
		}
		n.Properties[f.name] = p
	}
	return n
}

func mapSchema(t reflect.Type, f field) *node {
	n := &node{Type: "object"}
	if t == objectType {
		return n
	}
	n.Additional = schemaOf(t.Elem(), f)
	n.Names = &node{MinLength: 1}
	if rule, ok := formats[f.keys]; ok {
		n.Names.Pattern = rule.pattern.String()
	}
	return n
}

func textSchema(f field) *node {
	n := &node{Type: "string"}
	for _, text := range f.enum {
		n.Enum = append(n.Enum, text)
	}
	if rule := formats[f.format]; rule.pattern != nil {
		n.Pattern = rule.pattern.String()
	}
	if !f.empty {
		n.MinLength = 1
	}
	return n
}

func scalarSchema(form scalarForm) *node {
	n := &node{Type: "string", Pattern: form.pattern}
	if form.number {
		n.Type = []string{"string", "integer"}
	}
	return n
}

// defaultOf gives a default as a document would write it, with the type that YAML reads.
func defaultOf(f field) any {
	if f.typ.Kind() == reflect.String {
		return f.def
	}
	var value any
	if err := yaml.Unmarshal([]byte(f.def), &value); err != nil {
		panic(fmt.Sprintf("default of %s: %v", f.name, err)) // part of the code; the schema test meets it first
	}
	return value
}

// pathsOf lists the paths of all keys of a kind, lists as "[]" ("spec.stages[].name").
func pathsOf(kind string) iter.Seq[string] {
	return func(yield func(string) bool) {
		if t, _ := typeOf(kind); t != nil {
			walkPaths(t, "", yield)
		}
	}
}

func walkPaths(t reflect.Type, path string, yield func(string) bool) bool {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch {
	case t.Kind() == reflect.Slice:
		return walkPaths(t.Elem(), path+"[]", yield)
	case t.Kind() != reflect.Struct || reflect.PointerTo(t).Implements(reflect.TypeFor[scalar]()):
		return true
	}
	for _, f := range fieldsOf(t) {
		at := join(path, f.name)
		if !yield(at) || !walkPaths(f.typ, at, yield) {
			return false
		}
	}
	return true
}
