// SPDX-License-Identifier: Apache-2.0

package corefile

import (
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
)

// mountFolder is where kubeadm's CoreDNS Deployment mounts the ConfigMap; relative imports are resolved against it.
const mountFolder = "/etc/coredns"

// place is where in a Corefile an import stands, and so what the imported text is made of.
type place int

const (
	betweenBlocks place = iota + 1 // whole server blocks
	inBlock                        // plugins
	inPlugin                       // options of the named plugin
)

// importLine is one import that names files.
type importLine struct {
	where  string // "" for the Corefile, else the key that holds the import
	line   int
	path   string
	place  place
	plugin string   // for inPlugin
	keys   []string // of the ConfigMap, sorted
}

// source resolves imports: snippets of the Corefile and the other keys of its ConfigMap.
type source struct {
	snippets map[string][]directive
	keys     map[string]string
}

func newSource(blocks []block, keys map[string]string) source {
	s := source{snippets: map[string][]directive{}, keys: keys}
	for _, b := range blocks {
		if name, ok := b.snippet(); ok {
			s.snippets[name] = b.body
		}
	}
	return s
}

// files lists the imports that name files, in the order of the text.
func (s source) files(blocks []block) []importLine {
	var list []importLine
	for _, b := range blocks {
		if target, ok := b.imported(); ok {
			list = s.appendFile(list, importLine{line: b.line, path: target, place: betweenBlocks})
		}
		for _, d := range b.body {
			if d.name == importName && len(d.args) == 1 {
				list = s.appendFile(list, importLine{line: d.line, path: d.args[0], place: inBlock})
			}
			for _, o := range d.body {
				if o.name == importName && len(o.args) == 1 {
					list = s.appendFile(list, importLine{line: o.line, path: o.args[0], place: inPlugin, plugin: d.name})
				}
			}
		}
	}
	return list
}

func (s source) appendFile(list []importLine, i importLine) []importLine {
	if _, ok := s.snippets[i.path]; ok {
		return list
	}
	i.keys = s.matching(i.path)
	return append(list, i)
}

// matching returns the keys that a file name or pattern means, as far as they lie in the ConfigMap.
func (s source) matching(pattern string) []string {
	folder, name := path.Split(pattern)
	if folder != "" && path.Clean(folder) != mountFolder && path.Clean(folder) != "." {
		return nil
	}
	var keys []string
	for _, key := range slices.Sorted(maps.Keys(s.keys)) {
		if ok, err := path.Match(name, key); err == nil && ok {
			keys = append(keys, key)
		}
	}
	return keys
}

// wrap makes a Corefile of a key's text, so that it can be judged alone. Line numbers stay those of the key.
func (i importLine) wrap(text string) string {
	switch i.place {
	case inBlock:
		return "imported { " + text + "\n}\n"
	case inPlugin:
		return "imported { " + i.plugin + " { " + text + "\n}\n}\n"
	case betweenBlocks:
	}
	return text
}

func (i importLine) warning() Notice {
	text := "which is not a key of the ConfigMap: what it holds was not checked"
	if len(i.keys) > 0 {
		text = fmt.Sprintf("ConfigMap keys %s: imported text is checked, but never migrated", strings.Join(i.keys, ", "))
	}
	return Notice{Severity: SeverityWarning, Message: fmt.Sprintf("%sline %d imports %q, %s", i.where, i.line, i.path, text)}
}

// effective returns the plugins of a block with its imports replaced by what they bring, as far as that is known.
func (s source) effective(b block) []directive {
	return s.expand(b.body, map[string]bool{})
}

func (s source) expand(body []directive, open map[string]bool) []directive {
	var list []directive
	for _, d := range body {
		if d.name != importName || len(d.args) != 1 {
			list = append(list, d)
			continue
		}
		target := d.args[0]
		if open[target] {
			continue // an import of itself, which CoreDNS refuses
		}
		open[target] = true
		list = append(list, s.expand(s.plugins(target), open)...)
		delete(open, target)
	}
	return list
}

// plugins returns what an import inside a server block brings.
func (s source) plugins(target string) []directive {
	if body, ok := s.snippets[target]; ok {
		return body
	}
	var list []directive
	for _, key := range s.matching(target) {
		blocks, err := parse(importLine{place: inBlock}.wrap(s.keys[key]))
		if err == nil && len(blocks) == 1 {
			list = append(list, blocks[0].body...)
		}
	}
	return list
}
