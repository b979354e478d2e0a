// SPDX-License-Identifier: Apache-2.0

package spec

import (
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// decode fills target, a pointer to a document type, from the document's text. Every deviation from the type is a problem;
// what could be read is filled in nevertheless, and so are defaults.
func (d *document) decode(target any) {
	d.places[""] = span{key: d.at(d.root), value: d.at(d.root)}
	d.checkPlain(d.root)
	d.value(d.root, reflect.ValueOf(target).Elem(), "", field{})
}

// value decodes one node. f has the rules of the key that the node belongs to; lists and maps hand them on to their items.
func (d *document) value(n *yaml.Node, v reflect.Value, path string, f field) {
	if n.Kind == yaml.AliasNode {
		return // reported by checkPlain
	}
	if n.Style&yaml.TaggedStyle != 0 {
		return // reported by checkPlain; what it would mean without its tag is a guess
	}
	if n.Kind == yaml.ScalarNode && n.ShortTag() == "!!null" {
		d.errorf(path, "found no value; give one, or remove the key")
		return
	}
	if v.Kind() == reflect.Pointer {
		v.Set(reflect.New(v.Type().Elem()))
		d.value(n, v.Elem(), path, f)
		return
	}
	if s, ok := scalarOf(v); ok {
		d.scalar(n, s, path)
		return
	}
	if v.Type() == objectType {
		d.object(n, v, path)
		return
	}
	d.byKind(n, v, path, f)
}

func (d *document) byKind(n *yaml.Node, v reflect.Value, path string, f field) {
	switch v.Kind() { //nolint:exhaustive // the kinds that the types use; any other panics
	case reflect.Struct:
		d.structure(n, v, path, f)
	case reflect.Map:
		d.mapping(n, v, path, f)
	case reflect.Slice:
		d.list(n, v, path, f)
	case reflect.String:
		d.text(n, v, path, f)
	case reflect.Int:
		d.whole(n, v, path, f)
	case reflect.Bool:
		d.truth(n, v, path)
	default:
		panic(fmt.Sprintf("%s: no decoder for %s", path, v.Type())) // a field type was added without one; the schema test meets it first
	}
}

func (d *document) structure(n *yaml.Node, v reflect.Value, path string, outer field) {
	fields := fieldsOf(v.Type())
	if n.Kind != yaml.MappingNode {
		d.errorf(path, "found %s; allowed: a mapping with %s", describe(n), strings.Join(fieldNames(fields), ", "))
		return
	}
	place := d.places[path]
	place.mapping = true
	d.places[path] = place
	seen := map[string]bool{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, node := n.Content[i], n.Content[i+1]
		if key.Kind != yaml.ScalarNode || key.ShortTag() == "!!merge" || seen[key.Value] {
			continue // reported by checkPlain
		}
		seen[key.Value] = true
		at := slices.IndexFunc(fields, func(f field) bool { return f.name == key.Value })
		if at < 0 {
			d.unknownKey(key, path, fields)
			continue
		}
		f := fields[at]
		f.acts = d.warnActs(f, outer.acts, key, join(path, f.name))
		d.places[join(path, f.name)] = span{key: d.at(key), value: d.at(node)}
		d.value(node, v.Field(f.index), join(path, f.name), f)
	}
	for _, f := range fields {
		switch {
		case seen[f.name]:
		case f.required:
			d.errorf(path, "%s is missing: %s", f.name, f.desc)
		case f.hasDef:
			setDefault(v.Field(f.index), f)
		}
	}
}

// warnActs reports a key that starts to work with a later capability, once for a key and all that is nested in it, and
// returns the capability that the nested keys inherit.
func (d *document) warnActs(f field, outer Capability, key *yaml.Node, path string) Capability {
	if f.acts == "" || f.acts == outer {
		return outer
	}
	if !f.acts.Acts() && !f.needed {
		d.add(d.at(key), Warning, fmt.Sprintf("%s is not acted on yet (comes with: %s)", path, f.acts))
		d.last().Idle = itemNumber.ReplaceAllString(path, "[]")
	}
	return f.acts
}

var itemNumber = regexp.MustCompile(`\[\d+\]`)

// setDefault is the one place where defaults come from: the default tags. They are part of the code, and a test decodes all.
func setDefault(v reflect.Value, f field) {
	n := yaml.Node{Kind: yaml.ScalarNode, Value: f.def}
	switch {
	case f.def == "{}":
		n = yaml.Node{Kind: yaml.MappingNode}
	case v.Kind() == reflect.String:
		n.Tag = "!!str"
	}
	var found Problems
	d := document{root: &n, places: map[string]span{}, found: &found}
	d.value(&n, v, f.name, f)
	if d.failed {
		panic(fmt.Sprintf("default of %s: %s", f.name, found))
	}
}

func (d *document) unknownKey(key *yaml.Node, path string, fields []field) {
	names := fieldNames(fields)
	in := ""
	if path != "" {
		in = " in " + path
	}
	hint := didYouMean(key.Value, names)
	if hint == "" {
		hint = belongs(d.kind, key.Value)
	}
	d.add(d.at(key), Error, fmt.Sprintf("unknown key %q%s%s; allowed: %s", shorten(key.Value), in, hint, strings.Join(names, ", ")))
}

// belongs tells where a key that is unknown here stands in a document of the kind, if that is one place only.
func belongs(kind, name string) string {
	var places []string
	for path := range pathsOf(kind) {
		if path == name || strings.HasSuffix(path, "."+name) {
			places = append(places, path)
		}
	}
	if len(places) != 1 {
		return ""
	}
	return fmt.Sprintf(" (it belongs at %s)", places[0])
}

func (d *document) mapping(n *yaml.Node, v reflect.Value, path string, f field) {
	if n.Kind != yaml.MappingNode {
		d.errorf(path, "found %s; allowed: a mapping", describe(n))
		return
	}
	v.Set(reflect.MakeMap(v.Type()))
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, node := n.Content[i], n.Content[i+1]
		if key.Kind != yaml.ScalarNode || key.ShortTag() == "!!merge" || v.MapIndex(reflect.ValueOf(key.Value)).IsValid() {
			continue // reported by checkPlain
		}
		if tag := key.ShortTag(); tag != "!!str" && tag != "!!timestamp" {
			d.add(d.at(key), Error, fmt.Sprintf("%sfound %s as a key; allowed: a text, so quote it", label(path), describe(key)))
			continue
		}
		at := join(path, key.Value)
		d.places[at] = span{key: d.at(key), value: d.at(node)}
		d.checkKey(key, path, f.keys)
		item := reflect.New(v.Type().Elem()).Elem()
		d.value(node, item, at, f)
		v.SetMapIndex(reflect.ValueOf(key.Value), item)
	}
}

func (d *document) checkKey(key *yaml.Node, path, name string) {
	if key.Value == "" {
		d.add(d.at(key), Error, label(path)+"found an empty key; allowed: a text")
		return
	}
	rule, ok := formats[name]
	if !ok {
		return
	}
	if wrong, bad := rule.problem(key.Value); bad {
		d.add(d.at(key), Error, fmt.Sprintf("%sfound the key %q%s; allowed: %s", label(path), shorten(key.Value), because(wrong), rule.want))
	}
}

func (d *document) list(n *yaml.Node, v reflect.Value, path string, f field) {
	if n.Kind != yaml.SequenceNode {
		d.errorf(path, "found %s; allowed: a list", describe(n))
		return
	}
	if f.required && len(n.Content) == 0 {
		d.errorf(path, "found an empty list; allowed: at least one item")
	}
	v.Set(reflect.MakeSlice(v.Type(), len(n.Content), len(n.Content)))
	item := f
	item.required = false
	for i, node := range n.Content {
		at := path + "[" + strconv.Itoa(i) + "]"
		d.places[at] = span{key: d.at(node), value: d.at(node)}
		d.value(node, v.Index(i), at, item)
	}
	d.checkUnique(v, path, f.unique)
}

// checkUnique refuses a text, or items with the same value at a key, that come twice.
func (d *document) checkUnique(v reflect.Value, path, unique string) {
	if unique == "" {
		return
	}
	first := map[string]string{}
	for i := range v.Len() {
		at, item := path+"["+strconv.Itoa(i)+"]", v.Index(i)
		if item.Kind() == reflect.Struct {
			at = join(at, unique)
			fields := fieldsOf(item.Type())
			item = item.Field(fields[slices.IndexFunc(fields, func(f field) bool { return f.name == unique })].index)
		}
		if !d.has(at) || item.String() == "" {
			continue // absent or of a wrong type, reported there
		}
		if other, ok := first[item.String()]; ok {
			d.errorf(at, "found %q twice; first at %s", shorten(item.String()), d.where(other))
			continue
		}
		first[item.String()] = at
	}
}

func join(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}
