// SPDX-License-Identifier: Apache-2.0

package kubeadm

import (
	"errors"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/theseus-gitops/theseus/reconcile/live"
)

// errLayout is a layout in which a field of the dns section has no line of its own.
var errLayout = errors.New("the dns section is not laid out in lines")

// splice edits the lines of the dns section and leaves every other byte as it is. EditDNS checks its result, so that
// a layout which is not foreseen here costs the layout, never the content.
func splice(text string, root *yaml.Node, dns live.KubeadmDNS) (string, error) {
	if root.Style&yaml.FlowStyle != 0 || len(root.Content) == 0 {
		return "", errLayout
	}
	doc := newLines(text)
	key, value := find(root, dnsKey)
	var err error
	switch {
	case key == nil:
		err = doc.addSection(root, dns)
	case key.Column != 1:
		err = errLayout
	case value.Kind == yaml.MappingNode && value.Style&yaml.FlowStyle == 0 && len(value.Content) > 0:
		err = doc.editSection(key, value, dns)
	default:
		err = doc.replaceSection(key, value, dns)
	}
	return doc.String(), err
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

// addSection writes a section where there is none: before the first key that sorts after it, as kubeadm orders its
// keys, or at the end.
func (d *lines) addSection(root *yaml.Node, dns live.KubeadmDNS) error {
	value := &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map"}
	edit(value, dns)
	text, err := entry(dnsKey, value, 0)
	if err != nil {
		return err
	}
	for i := 0; i < len(root.Content); i += 2 {
		if key := root.Content[i]; key.Value > dnsKey {
			d.prepend(d.aboveComments(key.Line), text)
			return nil
		}
	}
	d.prepend(len(d.text)+1, text)
	return nil
}

// aboveComments is the first line of the comments right above a line.
func (d *lines) aboveComments(number int) int {
	for number > 1 && strings.HasPrefix(d.text[number-2], "#") {
		number--
	}
	return number
}

// replaceSection writes a section anew that is null or in flow style, on one line.
func (d *lines) replaceSection(key, value *yaml.Node, dns live.KubeadmDNS) error {
	comment := firstOf(value.LineComment, key.LineComment)
	value.HeadComment, value.LineComment, value.FootComment = "", "", ""
	edit(value, dns)
	text, err := entry(dnsKey, value, 0)
	if err != nil {
		return err
	}
	d.set(key.Line, withComment(text, comment))
	return nil
}

// editSection edits the section's fields, each on its line.
func (d *lines) editSection(section, value *yaml.Node, dns live.KubeadmDNS) error {
	kept := len(value.Content) / 2
	var added strings.Builder
	for _, f := range fields(dns) {
		key, old := find(value, f.key)
		if key == nil && f.value == "" {
			continue
		}
		if key != nil && f.value == "" {
			kept--
		}
		text, err := f.line(value.Column-1, old)
		if err != nil {
			return err
		}
		if key == nil {
			kept++
			added.WriteString(text)
			continue
		}
		if err := d.replaceField(section, key, old, f, text); err != nil {
			return err
		}
	}
	if kept == 0 {
		d.set(section.Line, withComment(dnsKey+": {}\n", section.LineComment))
	}
	d.prepend(section.Line+1, added.String())
	return nil
}

// replaceField puts text in the place of a field that says something else.
func (d *lines) replaceField(section, key, old *yaml.Node, f field, text string) error {
	if key.Line == section.Line || old.Line != key.Line {
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
	if err != nil {
		return "", err
	}
	return strings.Repeat(" ", blanks) + text, nil
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
