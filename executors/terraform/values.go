// SPDX-License-Identifier: Apache-2.0

package terraform

import (
	"encoding/json"
	"maps"
	"slices"
)

// Terraform's JSON gives a planned value in two parts: the value, and a mask of the same shape that is true where the
// value will be known only after the apply.

// object and list are v if it is one, and nil for everything else.
func object(v any) map[string]any {
	m, _ := v.(map[string]any)
	return m
}

func list(v any) []any {
	l, _ := v.([]any)
	return l
}

func at(l []any, i int) any {
	if i < len(l) {
		return l[i]
	}
	return nil
}

func union(objects ...map[string]any) []string {
	all := map[string]bool{}
	for _, o := range objects {
		for key := range o {
			all[key] = true
		}
	}
	return slices.Sorted(maps.Keys(all))
}

func same(a, b any) bool { return canonical(a) == canonical(b) }

// canonical is a value as text, with sorted keys. Empty and absent are not the same.
func canonical(v any) string {
	data, err := json.Marshal(v)
	if err != nil { // can't be: v came from JSON
		return err.Error()
	}
	return string(data)
}

// hasUnknown reports whether a mask marks anything.
func hasUnknown(mask any) bool {
	switch m := mask.(type) {
	case bool:
		return m
	case map[string]any:
		for _, inner := range m {
			if hasUnknown(inner) {
				return true
			}
		}
	case []any:
		return slices.ContainsFunc(m, hasUnknown)
	}
	return false
}
