// SPDX-License-Identifier: Apache-2.0

package kubeadmconfig

import (
	"bytes"
	"errors"
	"fmt"
	"strings"

	"go.yaml.in/yaml/v3"
)

// errLayout is a layout in which a field of the section has no line of its own.
var errLayout = errors.New("the section is not laid out in lines")

// splice edits the lines of a section and leaves every other byte as it is. Who calls it checks its result, so that
// a layout which is not foreseen here costs the layout, never the content.
func splice(text string, root *yaml.Node, s section) (string, error) {
	if !inLines(root) || root.Column != 1 {
		return "", errLayout
	}
	doc := newLines(text)
	parent, header := root, (*yaml.Node)(nil)
	for i, name := range s.path {
		key, value := find(parent, name)
		if key == nil || !inLines(value) {
			err := doc.putSection(header, parent, section{s.path[i:], s.fields})
			return doc.String(), err
		}
		parent, header = value, key
	}
	err := doc.editFields(header, parent, s.fields)
	return doc.String(), err
}

// inLines tells that a mapping has keys, each on a line of its own.
func inLines(value *yaml.Node) bool {
	return value.Kind == yaml.MappingNode && value.Style&yaml.FlowStyle == 0 && len(value.Content) > 0
}

// lines is a text whose lines can be replaced while their numbers stay what the parser said.
type lines struct {
	eol  string
	text []string
	// open is that the last line has no end.
	open bool
}

func newLines(text string) *lines {
	d := &lines{eol: "\n", text: strings.SplitAfter(text, "\n")}
	if strings.HasSuffix(d.text[0], "\r\n") {
		d.eol = "\r\n"
	}
	if last := len(d.text) - 1; d.text[last] != "" {
		d.text[last] += d.eol
		d.open = true
	}
	return d
}

func (d *lines) String() string {
	text := strings.Join(d.text, "")
	if d.open {
		text = strings.TrimSuffix(text, d.eol)
	}
	return text
}

// set replaces a line, of the parser's count, by text that ends in "\n"; "" removes it.
func (d *lines) set(number int, text string) {
	d.text[number-1] = strings.ReplaceAll(text, "\n", d.eol)
}

// prepend puts text before a line; beyond the last line it goes to the end.
func (d *lines) prepend(number int, text string) {
	text = strings.ReplaceAll(text, "\n", d.eol)
	i := min(number-1, len(d.text)-1)
	d.text[i] = text + d.text[i]
}

// putSection writes a section that is not there, or anew one that is null or in flow style on one line, into the mapping
// parent, whose key is header, nil for the whole document.
func (d *lines) putSection(header, parent *yaml.Node, s section) error {
	key, value := find(parent, s.path[0])
	comment := ""
	if key == nil {
		value = &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map"}
	} else {
		comment = firstOf(value.LineComment, key.LineComment)
	}
	value.HeadComment, value.LineComment, value.FootComment = "", "", ""
	section{s.path[1:], s.fields}.edit(value)
	text, err := entry(s.path[0], value, parent.Column-1)
	if err != nil {
		return err
	}
	if key == nil {
		d.insert(header, parent, s.path[0], text)
		return nil
	}
	d.set(key.Line, withComment(text, comment))
	return nil
}

// insert puts a new key's text into a mapping: right below its header; in the document itself before the first key that
// sorts after it, as kubeadm orders its keys, or at the end.
func (d *lines) insert(header, parent *yaml.Node, key, text string) {
	if header != nil {
		d.prepend(header.Line+1, text)
		return
	}
	for i := 0; i < len(parent.Content); i += 2 {
		if next := parent.Content[i]; next.Value > key {
			d.prepend(d.aboveComments(next.Line), text)
			return
		}
	}
	d.prepend(len(d.text)+1, text)
}

// aboveComments is the first line of the comments right above a line.
func (d *lines) aboveComments(number int) int {
	for number > 1 && strings.HasPrefix(d.text[number-2], "#") {
		number--
	}
	return number
}

// editFields edits the fields of a mapping, each on its line.
func (d *lines) editFields(header, mapping *yaml.Node, fields []field) error {
	kept := len(mapping.Content) / 2
	var added strings.Builder
	for _, f := range fields {
		key, old := find(mapping, f.key)
		if key == nil && f.value == "" {
			continue
		}
		text, err := f.line(mapping.Column-1, old)
		if err != nil {
			return err
		}
		switch {
		case key == nil && header == nil:
			d.insert(nil, mapping, f.key, text)
		case key == nil:
			kept++
			added.WriteString(text)
		case f.value == "":
			kept--
			fallthrough
		default:
			if err := d.replaceField(header, key, old, f, text); err != nil {
				return err
			}
		}
	}
	if header != nil {
		d.finish(header, kept, added.String())
	}
	return nil
}

// finish puts added lines below a section's header, or says that nothing is kept of it.
func (d *lines) finish(header *yaml.Node, kept int, added string) {
	if kept == 0 {
		d.set(header.Line, strings.Repeat(" ", header.Column-1)+withComment(header.Value+": {}\n", header.LineComment))
	}
	d.prepend(header.Line+1, added)
}

// replaceField puts text in the place of a field that says something else.
func (d *lines) replaceField(header, key, old *yaml.Node, f field, text string) error {
	if header != nil && key.Line == header.Line || old.Line != key.Line {
		return errLayout
	}
	if old.Tag != f.tag || old.Value != f.value {
		d.set(key.Line, text)
	}
	return nil
}

// line is the field's line with the comment of the value that it replaces; empty when the field is to go.
func (f field) line(blanks int, old *yaml.Node) (string, error) {
	if f.value == "" {
		return "", nil
	}
	text, err := entry(f.key, f.node(), blanks)
	if err != nil || old == nil {
		return text, err
	}
	return withComment(text, old.LineComment), nil
}

// entry prints one key with its value, indented by blanks.
func entry(key string, value *yaml.Node, blanks int) (string, error) {
	text, err := encode(&yaml.Node{Kind: yaml.MappingNode, Tag: "!!map", Content: []*yaml.Node{{Kind: yaml.ScalarNode, Tag: "!!str", Value: key}, value}})
	if err != nil || blanks == 0 {
		return text, err
	}
	before := strings.Repeat(" ", blanks)
	return before + strings.ReplaceAll(strings.TrimSuffix(text, "\n"), "\n", "\n"+before) + "\n", nil
}

// encode prints a tree as kubeadm prints its documents: two blanks, sequences not indented.
func encode(node *yaml.Node) (string, error) {
	var out bytes.Buffer
	enc := yaml.NewEncoder(&out)
	enc.SetIndent(2)
	enc.CompactSeqIndent()
	if err := enc.Encode(node); err != nil {
		return "", fmt.Errorf("print YAML: %w", err)
	}
	if err := enc.Close(); err != nil {
		return "", fmt.Errorf("print YAML: %w", err)
	}
	return out.String(), nil
}

// withComment puts a comment at the end of a text's first line.
func withComment(text, comment string) string {
	if comment == "" {
		return text
	}
	first, rest, _ := strings.Cut(text, "\n")
	return first + " " + comment + "\n" + rest
}

func firstOf(a, b string) string {
	if a != "" {
		return a
	}
	return b
}
