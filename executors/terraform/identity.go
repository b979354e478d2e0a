// SPDX-License-Identifier: Apache-2.0

package terraform

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
)

// shortestIdentity is the length below which a text names no machine: a provider id like "7" is in every weight and port.
const shortestIdentity = 3

// identities are the texts by which a shared resource may name a machine: its name, host name, addresses, provider id
// and that one's last part (openstack:///UUID).
func (g *guard) identities() map[string][]string {
	all := map[string][]string{}
	hosts := maps.Clone(g.before.Machines)
	if c := g.plan.OutputChanges[outputName]; c != nil {
		if planned, err := json.Marshal(c.After); err == nil {
			// A new machine's addresses, where they are known already.
			if host, ok := readOutput(planned).Machines[g.step.Machine]; ok && hosts[g.step.Machine].Hostname == "" {
				if hosts == nil {
					hosts = map[string]Host{}
				}
				hosts[g.step.Machine] = host
			}
		}
	}
	for name := range g.machines {
		h := hosts[name]
		texts := append([]string{name, h.Hostname, h.ProviderID, h.ProviderID[strings.LastIndex(h.ProviderID, "/")+1:]}, h.Addresses...)
		all[name] = slices.DeleteFunc(texts, func(t string) bool { return len(t) < shortestIdentity })
	}
	return all
}

// named are the machines that a value names, in its keys or texts, sorted.
func (c comparison) named(v any) []string {
	found := map[string]bool{}
	eachText(v, func(text string) {
		for name, identities := range c.identities {
			if slices.ContainsFunc(identities, func(i string) bool { return mentions(text, i) }) {
				found[name] = true
			}
		}
	})
	return slices.Sorted(maps.Keys(found))
}

func eachText(v any, visit func(string)) {
	switch v := v.(type) {
	case string:
		visit(v)
	case json.Number:
		visit(v.String())
	case []any:
		for _, inner := range v {
			eachText(inner, visit)
		}
	case map[string]any:
		for key, inner := range v {
			visit(key)
			eachText(inner, visit)
		}
	}
}

// mentions reports whether text holds the identity as a word: 10.0.0.1 is in "https://10.0.0.1:6443", not in "10.0.0.11".
func mentions(text, identity string) bool {
	for from := 0; ; {
		i := strings.Index(text[from:], identity)
		if i < 0 {
			return false
		}
		start, end := from+i, from+i+len(identity)
		if (start == 0 || !inWord(text[start-1])) && (end == len(text) || !inWord(text[end])) {
			return true
		}
		from = start + 1
	}
}

func inWord(b byte) bool {
	return b >= '0' && b <= '9' || b >= 'a' && b <= 'z' || b >= 'A' && b <= 'Z' || b == '.' || b == '-' || b == '_'
}
