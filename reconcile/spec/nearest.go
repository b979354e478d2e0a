// SPDX-License-Identifier: Apache-2.0

package spec

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// didYouMean gives the remark in brackets that names the candidate nearest to text, or gives "" when none is near.
func didYouMean(text string, candidates []string) string {
	if near := nearest(text, candidates); near != "" {
		return fmt.Sprintf(" (did you mean %q?)", near)
	}
	return ""
}

// nearest returns the candidate with the fewest edits to text, case aside, if they are few for its length.
func nearest(text string, candidates []string) string {
	if utf8.RuneCountInString(text) > 64 {
		return ""
	}
	best, bestDistance := "", 0
	for _, candidate := range candidates {
		d := distance(strings.ToLower(text), strings.ToLower(candidate))
		limit := max(1, len(candidate)/3)
		if d <= limit && (best == "" || d < bestDistance) {
			best, bestDistance = candidate, d
		}
	}
	return best
}

// distance counts insertions, deletions, substitutions and swaps of neighbours between a and b (optimal string alignment).
func distance(a, b string) int {
	x, y := []rune(a), []rune(b)
	before, last, row := make([]int, len(y)+1), make([]int, len(y)+1), make([]int, len(y)+1)
	for j := range last {
		last[j] = j
	}
	for i := 1; i <= len(x); i++ {
		row[0] = i
		for j := 1; j <= len(y); j++ {
			cost := 1
			if x[i-1] == y[j-1] {
				cost = 0
			}
			row[j] = min(last[j]+1, row[j-1]+1, last[j-1]+cost)
			if i > 1 && j > 1 && x[i-1] == y[j-2] && x[i-2] == y[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
		before, last, row = last, row, before
	}
	return last[len(y)]
}
