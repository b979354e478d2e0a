// SPDX-License-Identifier: Apache-2.0

package spec

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"
)

const whyNoAliases = "anchors, aliases and merge keys are not allowed, because a reviewer of one line must see its whole effect: write the value out"

// span has the positions of a key and of its value.
type span struct {
	key, value Position
	mapping    bool // the value is a mapping, and its keys were read
}

// document is one of our documents with the places of everything in it, by path ("spec.stages[0].name").
type document struct {
	file    string
	kind    string
	cluster string // metadata.name of a Cluster
	before  int    // lines of the file before the document's text
	root    *yaml.Node
	places  map[string]span
	failed  bool
	wrong   []string // paths with errors
	found   *Problems
}

func (d *document) at(n *yaml.Node) Position {
	return Position{Line: n.Line + d.before, Column: n.Column}
}

// place finds the positions of a path, or of the nearest path around it that is written in the file.
func (d *document) place(path string) span {
	for {
		if s, ok := d.places[path]; ok {
			return s
		}
		end := strings.LastIndexAny(path, ".[")
		if end < 0 {
			return d.places[""]
		}
		path = path[:end]
	}
}

func (d *document) has(path string) bool {
	_, ok := d.places[path]
	return ok
}

// where names the value at a path for the message of a problem elsewhere.
func (d *document) where(path string) string {
	p := d.place(path).value
	return fmt.Sprintf("%s:%d:%d", d.file, p.Line, p.Column)
}

// errorf reports an error at the value of a path.
func (d *document) errorf(path, message string, args ...any) {
	d.wrong = append(d.wrong, path)
	d.add(d.place(path).value, Error, label(path)+fmt.Sprintf(message, args...))
}

// isMapping tells whether the value at a path is there and its keys could be read.
func (d *document) isMapping(path string) bool { return d.places[path].mapping }

// failedBelow tells whether the value at a path, or one in it, has an error of its own.
func (d *document) failedBelow(path string) bool {
	for _, p := range d.wrong {
		if rest, ok := strings.CutPrefix(p, path); ok && (rest == "" || rest[0] == '.' || rest[0] == '[') {
			return true
		}
	}
	return false
}

// warnf reports a warning at the key of a path.
func (d *document) warnf(path, message string, args ...any) {
	d.add(d.place(path).key, Warning, label(path)+fmt.Sprintf(message, args...))
}

func label(path string) string {
	if path == "" {
		return ""
	}
	return path + ": "
}

func (d *document) add(p Position, severity Severity, message string) {
	if severity == Error {
		d.failed = true
	}
	*d.found = append(*d.found, Problem{
		File: d.file, Line: p.Line, Column: p.Column, Severity: severity, Message: printable(message),
		Kind: d.kind, Cluster: d.cluster,
	})
}

// last is the problem that was added last.
func (d *document) last() *Problem { return &(*d.found)[len(*d.found)-1] }

// printable keeps a message on one line, and keys of a file from steering a terminal.
func printable(message string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return utf8.RuneError
	}, message)
}

// checkPlain reports what YAML allows and a spec does not, anywhere in the document: anchors, aliases, merge keys, tags,
// duplicate keys and keys that are no texts. Aliases are not followed.
func (d *document) checkPlain(n *yaml.Node) {
	switch {
	case n.Kind == yaml.AliasNode:
		d.add(d.at(n), Error, fmt.Sprintf("found the alias *%s; %s", shorten(n.Value), whyNoAliases))
		return
	case n.Anchor != "":
		d.add(d.at(n), Error, fmt.Sprintf("found the anchor &%s; %s", shorten(n.Anchor), whyNoAliases))
	}
	if n.Style&yaml.TaggedStyle != 0 {
		d.add(d.at(n), Error, fmt.Sprintf("found the tag %s; tags are not allowed: quote a text, leave anything else bare", shorten(n.Tag)))
	}
	if n.Kind == yaml.MappingNode {
		d.checkKeys(n)
		return
	}
	for _, child := range n.Content {
		d.checkPlain(child)
	}
}

// maxKey is the longest key in characters. YAML itself allows 1024 for a key on the line of its value.
const maxKey = 512

func (d *document) checkKeys(n *yaml.Node) {
	first := map[string]*yaml.Node{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key := n.Content[i]
		switch {
		case key.Kind == yaml.ScalarNode && key.ShortTag() == "!!merge":
			d.add(d.at(key), Error, "found the merge key <<; "+whyNoAliases)
		case key.Kind != yaml.ScalarNode && key.Kind != yaml.AliasNode:
			d.add(d.at(key), Error, fmt.Sprintf("found %s as a key; keys are texts", describe(key)))
		case len(key.Value) > maxKey:
			d.add(d.at(key), Error, fmt.Sprintf("found a key of %d bytes; allowed: %d", len(key.Value), maxKey))
		case first[key.Value] != nil:
			p := d.at(first[key.Value])
			d.add(d.at(key), Error, fmt.Sprintf("duplicate key %q; first at %s:%d:%d", shorten(key.Value), d.file, p.Line, p.Column))
		default:
			first[key.Value] = key
		}
		d.checkPlain(key)
		d.checkPlain(n.Content[i+1])
	}
}

// child returns the value of a key of a mapping, or nil.
func child(n *yaml.Node, key string) *yaml.Node {
	if n == nil || n.Kind != yaml.MappingNode {
		return nil
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		if n.Content[i].Kind == yaml.ScalarNode && n.Content[i].Value == key {
			return n.Content[i+1]
		}
	}
	return nil
}

// textOf returns the value of a scalar, or "".
func textOf(n *yaml.Node) string {
	if n == nil || n.Kind != yaml.ScalarNode {
		return ""
	}
	return n.Value
}

// describe names what was found, for messages.
func describe(n *yaml.Node) string {
	switch n.Kind { //nolint:exhaustive // scalars follow below
	case yaml.MappingNode:
		return "a mapping"
	case yaml.SequenceNode:
		return "a list"
	case yaml.AliasNode:
		return "an alias"
	default:
	}
	switch n.ShortTag() {
	case "!!null":
		return "nothing"
	case "!!bool":
		return n.Value
	case "!!int", "!!float":
		return "the number " + shorten(n.Value)
	default:
		return fmt.Sprintf("the text %q", shorten(n.Value))
	}
}

// shorten keeps messages on one line of a terminal.
func shorten(text string) string {
	const most = 60
	runes := []rune(text)
	if len(runes) <= most {
		return text
	}
	return string(runes[:most]) + "…"
}
