// SPDX-License-Identifier: Apache-2.0

package spec

import (
	"bytes"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"
)

//nolint:gochecknoglobals // read-only patterns
var (
	oursPattern  = regexp.MustCompile(`apiVersion["']?[ \t]*:[ \t]*["']?theseus\.dev(/|["']?\s|["']?$)`)
	linePattern  = regexp.MustCompile(`^(?:yaml: )?(?:line ([0-9]+): )?`)
	aliasPattern = regexp.MustCompile(`^unknown anchor '(.*)' referenced$`)
	kindPattern  = regexp.MustCompile(`(?m)^kind:[ \t]*["']?([A-Za-z]+)`)
	namePattern  = regexp.MustCompile(`^(?: *|metadata:[ \t]*\{[ \t]*)name:[ \t]*["']?([a-z0-9](?:[-a-z0-9]{0,61}[a-z0-9])?)["']?[ \t\r]*(?:[,}\n#]|$)`)
	lineFeed     = []byte("\n")
)

// looksOurs guesses from the bytes alone whether text that can't be read as YAML was meant for us. A template of another
// tool that isn't YAML must not be our error, a cluster with a typing error must.
func looksOurs(data []byte) bool {
	return oursPattern.Match(bytes.ReplaceAll(data, []byte{0}, nil)) // without NUL: UTF-16, too
}

// guessIdentity reads kind and cluster name from text that is not YAML, so that its problem can name the cluster.
func guessIdentity(text []byte) (kind, cluster string) {
	if m := kindPattern.FindSubmatch(text); m != nil {
		kind = string(m[1])
	}
	if kind == KindCluster {
		cluster = guessName(text)
	}
	return kind, cluster
}

// guessName finds metadata.name: in braces behind metadata, or on a line of the first indentation below it.
func guessName(text []byte) string {
	indent, inside := "", false
	for line := range bytes.Lines(text) {
		body := bytes.TrimLeft(line, " ")
		if len(bytes.TrimSpace(body)) == 0 || body[0] == '#' {
			continue
		}
		m := namePattern.FindSubmatch(line)
		switch before := string(line[:len(line)-len(body)]); {
		case bytes.HasPrefix(line, []byte("metadata:")):
			if m != nil {
				return string(m[1])
			}
			inside = true
		case !inside:
		case before == "":
			return ""
		case indent == "" || indent == before:
			if indent = before; m != nil {
				return string(m[1])
			}
		}
	}
	return ""
}

// checkText looks for what no spec may contain. The characters refused here are also those about which editors and YAML
// disagree whether they end a line: positions would be wrong after them.
func checkText(data []byte) (Position, string) {
	if bytes.HasPrefix(data, []byte("\xff\xfe")) || bytes.HasPrefix(data, []byte("\xfe\xff")) {
		return Position{1, 1}, "found UTF-16 text; save the file as UTF-8"
	}
	at := Position{1, 1}
	for i := 0; i < len(data); {
		r, size := utf8.DecodeRune(data[i:])
		if wrong := badRune(r, size, data[i+size:]); wrong != "" {
			return at, wrong
		}
		if i += size; r == '\n' {
			at = Position{at.Line + 1, 1}
		} else {
			at.Column++
		}
	}
	return Position{}, ""
}

func badRune(r rune, size int, rest []byte) string {
	switch {
	case r == utf8.RuneError && size == 1:
		return "found a byte that is not UTF-8; save the file as UTF-8"
	case r == 0:
		return "found a NUL byte: this is a binary file or UTF-16 text; a spec is UTF-8 text"
	case r == '\r' && !bytes.HasPrefix(rest, lineFeed):
		return "found a carriage return without a line feed; end lines with LF or CRLF"
	case strings.ContainsRune("\t\n\r", r):
		return ""
	case unicode.IsControl(r):
		return fmt.Sprintf("found the control character U+%04X; remove it, or write it as an escape in double quotes", r)
	case strings.ContainsRune("\u2028\u2029", r):
		return fmt.Sprintf("found the Unicode line separator U+%04X; remove it, or write it as an escape in double quotes", r)
	case strings.ContainsRune("\ufeff\ufffe\uffff", r):
		return fmt.Sprintf("found the character U+%04X inside the text; remove it", r)
	}
	return ""
}

// chunk is the text of one YAML document and the number of lines before it.
type chunk struct {
	text   []byte
	before int
}

// splitDocuments cuts a stream at its document markers, so that a syntax error in one document does not hide the next.
// A marker at the beginning of a line is one even inside a block scalar or quotes (YAML 1.2, c-forbidden).
func splitDocuments(data []byte) []chunk {
	var chunks []chunk
	start, before, line := 0, 0, 0
	begun := false // the current document has its marker or some content
	cut := func(end int) {
		if begun {
			chunks = append(chunks, chunk{text: data[start:end], before: before})
		}
		begun = false
	}
	for i := 0; i < len(data); line++ {
		end := len(data)
		if n := bytes.IndexByte(data[i:], '\n'); n >= 0 {
			end = i + n + 1
		}
		text := data[i:end]
		switch {
		case isMarker(text, "---"):
			if begun {
				cut(i)
				start, before = i, line
			}
			begun = true
		case isMarker(text, "..."):
			cut(end)
			start, before = end, line+1
		case hasContent(text):
			begun = true
		}
		i = end
	}
	cut(len(data))
	return chunks
}

func isMarker(line []byte, marker string) bool {
	rest, ok := bytes.CutPrefix(line, []byte(marker))
	return ok && (len(rest) == 0 || bytes.IndexByte([]byte(" \t\r\n"), rest[0]) >= 0)
}

// hasContent tells whether a line has more than blanks, a comment or a YAML directive.
func hasContent(line []byte) bool {
	text := bytes.TrimSpace(line)
	return len(text) > 0 && text[0] != '#' && line[0] != '%'
}

// syntaxProblem turns an error of the YAML library into a position in the file and a message. The library reports a line
// only inside its text; nothing else is decided by it.
func syntaxProblem(c chunk, err error) (Position, string) {
	text := err.Error()
	m := linePattern.FindStringSubmatch(text)
	message := text[len(m[0]):]
	lines := bytes.Split(c.text, []byte("\n"))
	line := errorLine(c.text, lines, m[1])
	if alias := aliasPattern.FindStringSubmatch(message); alias != nil {
		for i, l := range lines {
			if col := bytes.Index(l, []byte("*"+alias[1])); col >= 0 {
				return Position{c.before + i + 1, utf8.RuneCount(l[:col]) + 1},
					fmt.Sprintf("found the alias *%s; %s", alias[1], whyNoAliases)
			}
		}
	}
	for i, l := range lines[:min(line+1, len(lines))] {
		indent := l[:len(l)-len(bytes.TrimLeft(l, " \t"))]
		if col := bytes.IndexByte(indent, '\t'); col >= 0 && len(bytes.TrimSpace(l)) > 0 {
			return Position{c.before + i + 1, col + 1}, "found a tab in the indentation; YAML allows only spaces there"
		}
	}
	l := lines[line-1]
	col := len(l) - len(bytes.TrimLeft(l, " \t"))
	return Position{c.before + line, col + 1}, "not YAML: " + strings.TrimSpace(message)
}

// maxSearch bounds the search of errorLine, in bytes that are read again.
const maxSearch = 4 << 20

// errorLine finds the line of a syntax error. The library often reports the line on which the enclosing block begins, so
// the longest prefix that is YAML is looked for: what follows it is the line that breaks it.
func errorLine(text []byte, lines [][]byte, reported string) int {
	if len(lines)*len(text) <= maxSearch {
		end := len(text)
		for n := len(lines) - 1; n > 0; n-- {
			end -= len(lines[n])
			var ignored yaml.Node
			if yaml.Unmarshal(text[:end], &ignored) == nil {
				return n + 1
			}
			end-- // the line feed
		}
		return 1
	}
	line, err := strconv.Atoi(reported)
	if err != nil {
		return 1 // the library gives no line for the first one
	}
	return min(max(line, 1), len(lines))
}
