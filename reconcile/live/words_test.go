// SPDX-License-Identifier: Apache-2.0

package live_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/theseus-gitops/theseus/reconcile/live"
)

func TestLastWords(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ log, want string }{
		"nothing":            {"", ""},
		"blank lines":        {"\n \t\n\r\n", ""},
		"one line":           {"Corefile:3 - unknown directive\n", "Corefile:3 - unknown directive"},
		"the last five":      {"1\n2\n\n3\n4\n5\n6\n7\n", "3 | 4 | 5 | 6 | 7"},
		"control characters": {"\x1b[31mred\x1b[0m\x00 a\r\tb\u202ec\u2028d\n", "[31mred [0m a b c d"},
		"no UTF-8":           {"a\xffb", "a?b"},
		"only the end fits":  {strings.Repeat("x", 600) + " end", "…" + strings.Repeat("x", 493) + " end"},
	} {
		if got := live.LastWords(c.log); got != c.want {
			t.Errorf("%s: got %q, want %q", name, got, c.want)
		}
	}
	for shift := range 4 { // wherever the cut lies within a character
		got := live.LastWords(strings.Repeat("é世", 200) + strings.Repeat("x", shift))
		if len(got) > 500 || !utf8.ValidString(got) || !strings.HasPrefix(got, "…") {
			t.Errorf("%d bytes, valid %t: %q", len(got), utf8.ValidString(got), got)
		}
	}
}
