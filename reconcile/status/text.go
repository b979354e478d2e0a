// SPDX-License-Identifier: Apache-2.0

package status

import (
	"regexp"
	"strings"
	"unicode"
)

const textLimit = 4000 // characters of a message; the rest is in the log

var (
	userInfo = regexp.MustCompile(`://[^/\s@]+@`)
	colours  = regexp.MustCompile(`\x1b\[[0-9;]*[A-Za-z]`)
	digits   = regexp.MustCompile(`[0-9]+`)
	reasons  = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9]{0,99}$`)
)

// clean makes a text fit to be kept in Git for ever: valid UTF-8, printable, without credentials in URLs, of bounded length.
// Line ends stay, as "\n".
func clean(text string) string {
	text = strings.ReplaceAll(strings.ToValidUTF8(text, "\uFFFD"), "\r\n", "\n")
	text = colours.ReplaceAllString(text, "")
	text = userInfo.ReplaceAllString(text, "://")
	text = strings.Map(func(r rune) rune {
		switch {
		case r == '\n':
			return r
		case unicode.IsSpace(r):
			return ' '
		case !unicode.IsGraphic(r):
			return -1 // control and direction characters
		}
		return r
	}, text)
	lines := strings.Split(text, "\n")
	for i, l := range lines {
		lines[i] = strings.TrimRight(l, " ")
	}
	return cut(strings.TrimSpace(strings.Join(lines, "\n")), textLimit)
}

// line is clean on one line.
func line(text string) string { return strings.Join(strings.Fields(clean(text)), " ") }

// cut shortens a text to a number of characters, the last of them "…" when something was left out. It cuts between words,
// except within a word that is half of the text.
func cut(text string, limit int) string {
	runes := []rune(text)
	if len(runes) <= limit {
		return text
	}
	kept := runes[:limit-1]
	if !unicode.IsSpace(runes[limit-1]) {
		for i := len(kept) - 1; i > limit/2; i-- {
			if unicode.IsSpace(kept[i]) {
				kept = kept[:i]
				break
			}
		}
	}
	left := func(r rune) bool { return unicode.IsSpace(r) || strings.ContainsRune(",;:", r) }
	return strings.TrimRightFunc(string(kept), left) + "…"
}

// similar reports whether two messages differ in numbers only: local ports, durations, attempts.
func similar(a, b string) bool {
	return digits.ReplaceAllString(a, "0") == digits.ReplaceAllString(b, "0")
}
