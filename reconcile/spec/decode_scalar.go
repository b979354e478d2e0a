// SPDX-License-Identifier: Apache-2.0

package spec

import (
	"fmt"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// isText tells whether YAML reads the node as a text. A bare date counts as one, because JSON knows no dates.
func isText(n *yaml.Node) bool {
	return n.Kind == yaml.ScalarNode && (n.ShortTag() == "!!str" || n.ShortTag() == "!!timestamp")
}

func because(wrong string) string {
	if wrong == "" {
		return ""
	}
	return ": " + wrong
}

func (d *document) text(n *yaml.Node, v reflect.Value, path string, f field) {
	if !isText(n) {
		quote := ""
		if n.Kind == yaml.ScalarNode {
			quote = fmt.Sprintf(", so quote it: %q", shorten(n.Value))
		}
		d.errorf(path, "found %s; allowed: a text%s", describe(n), quote)
		return
	}
	v.SetString(n.Value)
	switch {
	case n.Value == "" && !f.empty:
		d.errorf(path, "found an empty text; allowed: %s", wantText(f))
	case len(f.enum) > 0:
		if !slices.Contains(f.enum, n.Value) {
			d.errorf(path, "found %q%s; allowed: %s", shorten(n.Value), didYouMean(n.Value, f.enum), strings.Join(f.enum, ", "))
		}
	case f.format != "":
		rule := formats[f.format]
		if wrong, bad := rule.problem(n.Value); bad {
			d.errorf(path, "found %q%s; allowed: %s", shorten(n.Value), because(wrong), rule.want)
		}
	}
}

func wantText(f field) string {
	switch {
	case len(f.enum) > 0:
		return strings.Join(f.enum, ", ")
	case f.format != "":
		return formats[f.format].want
	default:
		return "a text"
	}
}

func (d *document) scalar(n *yaml.Node, s scalar, path string) {
	form := s.form()
	if n.Kind != yaml.ScalarNode || (!isText(n) && n.ShortTag() != "!!int") {
		d.errorf(path, "found %s; allowed: %s", describe(n), form.want)
		return
	}
	if err := s.parse(n.Value); err != nil {
		d.errorf(path, "found %q%s; allowed: %s", shorten(n.Value), because(err.Error()), form.want)
	}
}

func (d *document) whole(n *yaml.Node, v reflect.Value, path string, f field) {
	want := wantWhole(f)
	if n.Kind != yaml.ScalarNode || n.ShortTag() != "!!int" {
		d.errorf(path, "found %s; allowed: %s", describe(n), want)
		return
	}
	i, err := parseWhole(n.Value)
	if err != nil {
		d.errorf(path, "found %q; allowed: %s, in plain decimal digits", shorten(n.Value), want)
		return
	}
	v.SetInt(int64(i))
	if (f.min != nil && i < *f.min) || (f.max != nil && i > *f.max) {
		d.errorf(path, "found %d; allowed: %s", i, want)
	}
}

func wantWhole(f field) string {
	switch {
	case f.min != nil && f.max != nil:
		return fmt.Sprintf("a whole number from %d to %d", *f.min, *f.max)
	case f.min != nil:
		return fmt.Sprintf("a whole number, %d or more", *f.min)
	default:
		return "a whole number"
	}
}

func (d *document) truth(n *yaml.Node, v reflect.Value, path string) {
	if n.Kind != yaml.ScalarNode || n.ShortTag() != "!!bool" || (n.Value != "true" && n.Value != "false") {
		d.errorf(path, "found %s; allowed: true or false", describe(n))
		return
	}
	v.SetBool(n.Value == "true")
}

// object takes over content that another program defines. Only what JSON can't hold is refused.
func (d *document) object(n *yaml.Node, v reflect.Value, path string) {
	if n.Kind != yaml.MappingNode {
		d.errorf(path, "found %s; allowed: a mapping", describe(n))
		return
	}
	content, ok := d.free(n, path).(map[string]any)
	if ok {
		v.Set(reflect.ValueOf(Object(content)))
	}
}

func (d *document) free(n *yaml.Node, path string) any {
	switch n.Kind { //nolint:exhaustive // a document node has no value, an alias is reported by checkPlain
	case yaml.MappingNode:
		m := make(map[string]any, len(n.Content)/2)
		for i := 0; i+1 < len(n.Content); i += 2 {
			if key := n.Content[i]; key.Kind == yaml.ScalarNode {
				m[key.Value] = d.free(n.Content[i+1], path)
			}
		}
		return m
	case yaml.SequenceNode:
		items := make([]any, 0, len(n.Content))
		for _, item := range n.Content {
			items = append(items, d.free(item, path))
		}
		return items
	case yaml.ScalarNode:
		return d.freeScalar(n, path)
	default:
		return nil
	}
}

func (d *document) freeScalar(n *yaml.Node, path string) any {
	switch n.ShortTag() {
	case "!!null":
		return nil
	case "!!bool":
		return strings.EqualFold(n.Value, "true")
	case "!!int":
		if i, err := parseWhole(n.Value); err == nil {
			return i
		}
		if i, err := strconv.ParseInt(n.Value, 10, 64); err == nil && strconv.FormatInt(i, 10) == n.Value {
			return i
		}
	case "!!float":
		if x, err := strconv.ParseFloat(n.Value, 64); err == nil && !math.IsInf(x, 0) && !math.IsNaN(x) {
			return x + 0 // -0 becomes 0
		}
	default:
		return n.Value
	}
	d.add(d.at(n), Error, fmt.Sprintf("%sfound %s; allowed: a number in plain decimal digits, or a quoted text", label(path), describe(n)))
	return nil
}
