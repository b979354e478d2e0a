// SPDX-License-Identifier: Apache-2.0

package parts

import (
	"maps"
	"slices"
)

// sortedKeys gives a map's keys in the one order that keeps recipes the same.
func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
