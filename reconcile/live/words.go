// SPDX-License-Identifier: Apache-2.0

package live

import (
	"strings"
	"unicode"
)

// Bounds of a quotation from a log: enough to see why something ended, and short in a status or a commit message.
const (
	quotedLines = 5
	quotedBytes = 500
)

// LastWords is the end of a log on one line, for a message: at most five lines and 500 bytes of it, without control
// characters. Lines are parted by " | ".
func LastWords(log string) string {
	var lines []string
	for line := range strings.SplitSeq(strings.ToValidUTF8(log, "?"), "\n") {
		if line = strings.Join(strings.FieldsFunc(line, blank), " "); line != "" {
			lines = append(lines, line)
		}
	}
	text := strings.Join(lines[max(0, len(lines)-quotedLines):], " | ")
	if len(text) <= quotedBytes {
		return text
	}
	const mark = "…"
	// The cut may lie within a character, of which the rest goes too.
	return mark + strings.ToValidUTF8(text[len(text)-quotedBytes+len(mark):], "")
}

func blank(r rune) bool {
	return unicode.IsSpace(r) || unicode.IsControl(r) || unicode.Is(unicode.Cf, r)
}
