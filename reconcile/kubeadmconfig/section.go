// SPDX-License-Identifier: Apache-2.0

package kubeadmconfig

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"reflect"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
	kubeyaml "sigs.k8s.io/yaml"
)

// section is what to set in one mapping of a document: that at the end of path, the whole document's when path is empty.
type section struct {
	path   []string
	fields []field
}

// field is one field of a section; an empty value stands for no key.
type field struct{ key, value, tag string }

// String names the section in messages.
func (s section) String() string {
	if len(s.path) > 0 {
		return strings.Join(s.path, ".")
	}
	var keys []string
	for _, f := range s.fields {
		keys = append(keys, f.key)
	}
	return strings.Join(keys, ", ")
}

// set returns the document with the section's fields set, and nothing else changed: keys it does not know, order and
// comments stay. In block style all bytes outside the section stay. A text that says so already is returned as it is.
func (s section) set(text string) (string, error) {
	doc, err := parse(text, s.path)
	if err != nil {
		return "", err
	}
	before, err := decode(text)
	if err != nil {
		return "", err
	}
	want := s.setIn(before)
	if reflect.DeepEqual(tidy(before, s.path), want) {
		return text, nil
	}
	out, err := splice(text, doc.Content[0], s)
	if err == nil {
		err = s.check(want, out)
	}
	if err == nil {
		return out, nil
	}
	// Flow style, tags or an unusual layout: print the whole tree instead.
	if out, err = s.reprint(text); err != nil {
		return "", err
	}
	if err := s.check(want, out); err != nil {
		return "", err
	}
	return out, nil
}

// check proves that out says what is wanted, and nothing else.
func (s section) check(want map[string]any, out string) error {
	after, err := decode(out)
	if err != nil {
		return err
	}
	if !reflect.DeepEqual(tidy(after, s.path), want) {
		return fmt.Errorf("%s can't be set without changing something else, or is set from elsewhere in the document; set it by hand", s)
	}
	return nil
}

// setIn is a tidy copy of the document's values with the fields set.
func (s section) setIn(document map[string]any) map[string]any {
	out := maps.Clone(document)
	if out == nil {
		out = map[string]any{}
	}
	if len(s.path) > 0 {
		inner, _ := out[s.path[0]].(map[string]any)
		out[s.path[0]] = section{s.path[1:], s.fields}.setIn(inner)
		return tidy(out, s.path)
	}
	for _, f := range s.fields {
		switch {
		case f.value == "":
			delete(out, f.key)
		case f.tag == "!!bool":
			out[f.key] = f.value == "true"
		default:
			out[f.key] = f.value
		}
	}
	return out
}

// tidy is a copy without the mappings along path that hold nothing: to kubeadm they say the same as none.
func tidy(document map[string]any, path []string) map[string]any {
	out := maps.Clone(document)
	if len(path) == 0 {
		return out
	}
	inner, isMap := out[path[0]].(map[string]any)
	if inner = tidy(inner, path[1:]); len(inner) > 0 {
		out[path[0]] = inner
	} else if isMap || out[path[0]] == nil {
		delete(out, path[0])
	}
	return out
}

// parse reads the one document of text as a tree and checks its shape, down along path. The root mapping is its first
// content.
func parse(text string, path []string) (*yaml.Node, error) {
	in := yaml.NewDecoder(strings.NewReader(text))
	var doc, second yaml.Node
	if err := in.Decode(&doc); err != nil {
		if errors.Is(err, io.EOF) {
			return nil, errors.New("the document is empty")
		}
		return nil, fmt.Errorf("not YAML: %w", err)
	}
	if err := in.Decode(&second); !errors.Is(err, io.EOF) {
		return nil, errors.New("there is more than one document, only one is understood")
	}
	node := doc.Content[0]
	if node.Kind != yaml.MappingNode {
		return nil, fmt.Errorf("line %d: not a mapping of keys to values", node.Line)
	}
	for i, name := range path {
		if _, node = find(node, name); node == nil || node.Tag == "!!null" {
			break
		}
		if node.Kind != yaml.MappingNode {
			return nil, fmt.Errorf("line %d: %s is not a mapping; an alias is not followed", node.Line, strings.Join(path[:i+1], "."))
		}
	}
	return &doc, nil
}

// decode reads text as plain values, by the library that kubeadm reads it with. It refuses duplicate keys.
func decode(text string) (map[string]any, error) {
	var out map[string]any
	if err := kubeyaml.UnmarshalStrict([]byte(text), &out); err != nil {
		return nil, fmt.Errorf("not YAML: %w", err)
	}
	return out, nil
}

// find is the key and value nodes of a mapping, nil when there is no such key.
func find(mapping *yaml.Node, key string) (k, v *yaml.Node) {
	for i := 0; i+1 < len(mapping.Content); i += 2 {
		if mapping.Content[i].Value == key {
			return mapping.Content[i], mapping.Content[i+1]
		}
	}
	return nil, nil
}

// edit sets the section's fields in the tree below node, the mapping that the path begins in.
func (s section) edit(node *yaml.Node) {
	if node.Kind != yaml.MappingNode {
		node.Kind, node.Tag, node.Value = yaml.MappingNode, "!!map", ""
	}
	if len(s.path) > 0 {
		_, value := find(node, s.path[0])
		if value == nil {
			value = &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map"}
			node.Content = append(node.Content, &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: s.path[0]}, value)
		}
		section{s.path[1:], s.fields}.edit(value)
	}
	for _, f := range s.fields {
		if len(s.path) == 0 {
			f.set(node)
		}
	}
	if len(node.Content) > 0 {
		node.Style &^= yaml.FlowStyle
	}
}

// node is the field's scalar, in quotes where kubeadm's library would read the plain text as something else than text.
func (f field) node() *yaml.Node {
	n := &yaml.Node{Kind: yaml.ScalarNode, Tag: f.tag, Value: f.value}
	var plain any
	if err := kubeyaml.Unmarshal([]byte(f.value), &plain); f.tag == "!!str" && (err != nil || plain != any(f.value)) {
		n.Style = yaml.DoubleQuotedStyle
	}
	return n
}

// set sets the field's scalar, or removes its key.
func (f field) set(mapping *yaml.Node) {
	_, v := find(mapping, f.key)
	switch {
	case v != nil && f.value == "":
		i := slices.Index(mapping.Content, v)
		mapping.Content = slices.Delete(mapping.Content, i-1, i+1)
	case v != nil:
		comment := v.LineComment
		*v = *f.node()
		v.LineComment = comment
	case f.value != "":
		mapping.Content = append(mapping.Content, &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: f.key}, f.node())
	}
}

// reprint edits and prints the whole tree.
func (s section) reprint(text string) (string, error) {
	doc, err := parse(text, s.path)
	if err != nil {
		return "", err
	}
	root := doc.Content[0]
	style := root.Style
	s.edit(root)
	root.Style = style
	return encode(doc)
}
