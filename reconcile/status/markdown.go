// SPDX-License-Identifier: Apache-2.0

package status

import (
	"regexp"
	"strings"
)

// What forges make of plain text in a page or a commit message: people and teams are called (@name), issues and merge
// requests are linked or even closed (#1, !1), and ":100:" becomes a picture. A zero-width space undoes it.
var (
	calls     = regexp.MustCompile(`(^|[^\w])(@)(\w)`)
	refs      = regexp.MustCompile(`([#!])(\d)`)
	pictures  = regexp.MustCompile(`:(100:|1234:|[a-z_]+:)`)
	lineStart = regexp.MustCompile(`^([-+=#]|\d+[.)])`)
	webLink   = regexp.MustCompile(`^https?://[^\s]+$`)
)

const zeroWidthSpace = "\u200b"

// defuse takes from a text what a forge would act on.
func defuse(text string) string {
	text = calls.ReplaceAllString(text, "$1$2"+zeroWidthSpace+"$3")
	text = refs.ReplaceAllString(text, "$1"+zeroWidthSpace+"$2")
	return pictures.ReplaceAllString(text, ":"+zeroWidthSpace+"$1")
}

// inline is a text as one line of Markdown, in a table cell or elsewhere: what it says and nothing else. URLs stay links,
// and what stands between backticks stays code, so that commands can be copied.
func inline(text string) string {
	parts := strings.Split(line(text), "`")
	if len(parts)%2 == 0 { // a backtick without its partner
		return prose(line(text))
	}
	var b strings.Builder
	for i, part := range parts {
		switch {
		case i%2 == 0:
			b.WriteString(prose(part))
		case strings.TrimSpace(part) == "" || strings.Contains(part, "|"): // a table's cell would end inside the code
			b.WriteString("\\`" + prose(part) + "\\`")
		default:
			b.WriteString("`" + part + "`")
		}
	}
	return b.String()
}

func prose(text string) string {
	words := strings.Split(text, " ")
	for i, w := range words {
		bare := strings.TrimRight(w, `.,;:!?)'"`)
		if webLink.MatchString(bare) {
			words[i] = autolink(bare) + escape(w[len(bare):])
		} else {
			words[i] = escape(defuse(w))
		}
	}
	return strings.Join(words, " ")
}

// paragraph is inline where a line begins.
func paragraph(text string) string {
	return lineStart.ReplaceAllStringFunc(inline(text), func(start string) string {
		return start[:len(start)-1] + `\` + start[len(start)-1:]
	})
}

// quote is a message as a block of its own: one line as a quotation, several as they are.
func quote(text string) string {
	text = clean(text)
	if !strings.Contains(text, "\n") {
		return "> " + paragraph(text) + "\n"
	}
	fence := "```"
	for strings.Contains(text, fence) {
		fence += "`"
	}
	return fence + "text\n" + text + "\n" + fence + "\n"
}

func link(text, target string) string { return "[" + inline(text) + "](" + target + ")" }

func autolink(url string) string {
	return "<" + strings.NewReplacer("<", "%3C", ">", "%3E", "|", "%7C", "`", "%60", `\`, "%5C").Replace(url) + ">"
}

func escape(text string) string {
	var b strings.Builder
	for _, r := range text {
		if strings.ContainsRune("\\`*_[]<>|~&$", r) {
			b.WriteByte('\\')
		}
		b.WriteRune(r)
	}
	return b.String()
}
