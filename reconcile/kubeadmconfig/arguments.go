// SPDX-License-Identifier: Apache-2.0

package kubeadmconfig

import (
	"fmt"
	"reflect"
	"strings"

	"go.yaml.in/yaml/v3"
)

const argumentsKey = "extraArgs"

// listArguments turns each extraArgs of a v1beta3 document, a map, into v1beta4's list of names and values. Order and
// comments stay.
func listArguments(text string) (string, error) {
	for _, path := range [][]string{{"apiServer"}, {"controllerManager"}, {"scheduler"}, {"etcd", "local"}} {
		var err error
		if text, err = listArgumentsAt(text, path); err != nil {
			return "", err
		}
	}
	return text, nil
}

func listArgumentsAt(text string, path []string) (string, error) {
	doc, err := parse(text, path)
	if err != nil {
		return "", err
	}
	node, err := argumentsBelow(doc.Content[0], path)
	if err != nil || node == nil {
		return text, err
	}
	before, err := decode(text)
	if err != nil {
		return "", err
	}
	if doc.Content[0].Column == 1 && inLines(node) {
		if out, err := spliceArguments(text, node); err == nil && argumentsListed(before, out, path, node) {
			return out, nil
		}
	}
	*node = yaml.Node{Kind: yaml.SequenceNode, Tag: "!!seq", Style: node.Style & yaml.FlowStyle, Content: listOf(node), LineComment: node.LineComment}
	out, err := encode(doc)
	if err != nil {
		return "", err
	}
	if !argumentsListed(before, out, path, node) {
		return "", fmt.Errorf("%s.%s can't be turned into a list without changing something else; do it by hand", strings.Join(path, "."), argumentsKey)
	}
	return out, nil
}

// argumentsBelow is the mapping of arguments at path, nil when there is none to turn into a list.
func argumentsBelow(root *yaml.Node, path []string) (*yaml.Node, error) {
	node := descend(root, append(path[:len(path):len(path)], argumentsKey))
	if node == nil || node.Kind == yaml.SequenceNode || node.Tag == "!!null" {
		return nil, nil //nolint:nilnil // none is no error
	}
	where := strings.Join(path, ".") + "." + argumentsKey
	if node.Kind != yaml.MappingNode {
		return nil, fmt.Errorf("line %d: %s is not a mapping; an alias is not followed", node.Line, where)
	}
	for _, part := range node.Content {
		if part.Kind != yaml.ScalarNode || part.Tag == "!!merge" {
			return nil, fmt.Errorf("line %d: %s: only names and values are understood, no aliases", part.Line, where)
		}
	}
	return node, nil
}

func descend(node *yaml.Node, path []string) *yaml.Node {
	for _, name := range path {
		if node == nil || node.Kind != yaml.MappingNode {
			return nil
		}
		_, node = find(node, name)
	}
	return node
}

// spliceArguments rewrites the lines of the arguments only.
func spliceArguments(text string, node *yaml.Node) (string, error) {
	doc := newLines(text)
	indent := strings.Repeat(" ", node.Column-1)
	for i := 0; i < len(node.Content); i += 2 {
		key, value := node.Content[i], node.Content[i+1]
		if value.Line != key.Line && value.Tag != "!!null" {
			return "", errLayout
		}
		item, err := encode(&yaml.Node{Kind: yaml.SequenceNode, Tag: "!!seq", Content: []*yaml.Node{listItem(key, value)}})
		if err != nil {
			return "", err
		}
		item = indent + strings.ReplaceAll(strings.TrimSuffix(item, "\n"), "\n", "\n"+indent) + "\n"
		doc.set(key.Line, withComment(item, firstOf(value.LineComment, key.LineComment)))
	}
	return doc.String(), nil
}

// listOf is the list of a mapping's names and values, with their comments.
func listOf(node *yaml.Node) []*yaml.Node {
	var out []*yaml.Node
	for i := 0; i < len(node.Content); i += 2 {
		item := listItem(node.Content[i], node.Content[i+1])
		item.HeadComment, item.FootComment = node.Content[i].HeadComment, node.Content[i].FootComment
		item.Content[1].LineComment = firstOf(node.Content[i+1].LineComment, node.Content[i].LineComment)
		out = append(out, item)
	}
	return out
}

func listItem(key, value *yaml.Node) *yaml.Node {
	text := func(s string) *yaml.Node { return field{value: s, tag: "!!str"}.node() }
	name, content := text(key.Value), text(value.Value)
	if value.Tag == "!!null" {
		content = text("")
	}
	return &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map", Content: []*yaml.Node{text("name"), name, text("value"), content}}
}

// argumentsListed proves that out says what before said, but for the arguments, which are now a list. The node may be the
// mapping or the list.
func argumentsListed(before map[string]any, out string, path []string, node *yaml.Node) bool {
	after, err := decode(out)
	if err != nil {
		return false
	}
	items := node.Content
	if node.Kind == yaml.MappingNode {
		items = listOf(node)
	}
	want := make([]any, 0, len(items))
	for _, item := range items {
		want = append(want, map[string]any{"name": item.Content[1].Value, "value": item.Content[3].Value})
	}
	parent, _ := at(before, path...).(map[string]any)
	got, _ := at(after, path...).(map[string]any)
	if parent == nil || got == nil || !reflect.DeepEqual(got[argumentsKey], any(want)) {
		return false
	}
	parent[argumentsKey], got[argumentsKey] = nil, nil
	return reflect.DeepEqual(before, after)
}
