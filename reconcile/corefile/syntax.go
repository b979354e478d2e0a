// SPDX-License-Identifier: Apache-2.0

package corefile

import (
	"fmt"
	"slices"
	"strings"

	"github.com/coredns/caddy/caddyfile"
)

// SyntaxError reports text that CoreDNS itself could not load.
type SyntaxError struct {
	Line int    // 1-based; 0 when the end of the text is meant
	Text string // what was found and what was expected
}

// Error names the line.
func (e *SyntaxError) Error() string {
	if e.Line == 0 {
		return "end of the Corefile: " + e.Text
	}
	return fmt.Sprintf("Corefile line %d: %s", e.Line, e.Text)
}

// block is a server block, a snippet, or (with addresses "import", PATH) an import between blocks.
type block struct {
	line      int
	addresses []string // as written, trailing commas included
	braces    bool
	body      []directive
}

// directive is a plugin in a server block, an option in a plugin, or deeper.
type directive struct {
	line   int
	name   string
	args   []string
	braces bool
	body   []directive
}

const importName = "import"

// snippet returns the name of a block that is a snippet.
func (b block) snippet() (string, bool) {
	if len(b.addresses) != 1 || !b.braces {
		return "", false
	}
	name, opened := strings.CutPrefix(b.addresses[0], "(")
	name, closed := strings.CutSuffix(name, ")")
	return name, opened && closed
}

// imported returns the path of an import between blocks.
func (b block) imported() (string, bool) {
	if len(b.addresses) != 2 || b.addresses[0] != importName || b.braces || len(b.body) > 0 {
		return "", false
	}
	return b.addresses[1], true
}

// maxNesting bounds the recursion on hostile input; no plugin of CoreDNS nests deeper than three.
const maxNesting = 64

type token struct {
	text    string
	line    int
	newline bool // first on its line
}

type parser struct {
	tokens []token
	next   int
}

// parse reads a Corefile with CoreDNS's own lexer and by the grammar of its parser (github.com/coredns/caddy, package
// caddyfile), but never opens a file for an import and never expands a variable. Every error is a *SyntaxError.
func parse(text string) ([]block, error) {
	p := parser{tokens: lex(text)}
	var blocks []block
	for p.more() {
		b, err := p.block()
		if err != nil {
			return nil, err
		}
		blocks = append(blocks, b)
	}
	return blocks, nil
}

func lex(text string) []token {
	d := caddyfile.NewDispenser("Corefile", strings.NewReader(text))
	var tokens []token
	end := 0 // the line on which the token before ends
	for d.Next() {
		t := token{text: d.Val(), line: d.Line(), newline: d.Line() > end}
		tokens = append(tokens, t)
		end = t.line + strings.Count(t.text, "\n")
	}
	return tokens
}

// hasComments says whether a text has a # outside of what the lexer keeps.
func hasComments(text string) bool {
	kept := 0
	for _, t := range lex(text) {
		kept += strings.Count(t.text, "#")
	}
	return strings.Count(text, "#") > kept
}

func (p *parser) more() bool  { return p.next < len(p.tokens) }
func (p *parser) peek() token { return p.tokens[p.next] }

func (p *parser) take() token {
	t := p.tokens[p.next]
	p.next++
	return t
}

func fail(t token, format string, args ...any) error {
	return &SyntaxError{Line: t.line, Text: fmt.Sprintf(format, args...)}
}

func (p *parser) block() (block, error) {
	first := p.peek()
	if first.text == importName && first.newline {
		return p.topImport()
	}
	b := block{line: first.line}
	var err error
	if b.addresses, err = p.addresses(); err != nil {
		return block{}, err
	}
	if p.more() && p.peek().text == "{" {
		b.braces = true
		b.body, err = p.body(p.take(), 1)
		return b, err
	}
	b.body, err = p.bareBody()
	if name, looks := strings.CutPrefix(b.addresses[0], "("); err == nil && looks && len(b.addresses) == 1 {
		return block{}, fail(first, "snippet %q has no braces", "("+name)
	}
	return b, err
}

func (p *parser) topImport() (block, error) {
	t := p.take()
	b := block{line: t.line, addresses: []string{importName}}
	for p.more() && !p.peek().newline {
		b.addresses = append(b.addresses, p.take().text)
	}
	if len(b.addresses) != 2 || b.addresses[1] == "{" {
		return block{}, fail(t, "import takes exactly one file, pattern or snippet")
	}
	return b, nil
}

// addresses reads the addresses of a server block: up to an opening brace or, after an address without a trailing comma,
// to the end of the line.
func (p *parser) addresses() ([]string, error) {
	var list []string
	another := false
	for p.more() {
		t := p.peek()
		switch {
		case t.text == "}":
			return nil, fail(t, "unexpected }: no block is open")
		case t.text == "{" && another:
			return nil, fail(t, "unexpected {: another address must follow the comma")
		case t.text == "{" && len(list) == 0:
			return nil, fail(t, "unexpected {: a server block needs an address before it, for example .:53")
		case t.text == "{", len(list) > 0 && t.newline && !another:
			return list, nil
		}
		list = append(list, p.take().text)
		another = strings.HasSuffix(t.text, ",")
	}
	if another {
		return nil, &SyntaxError{Text: "another address must follow the comma"}
	}
	return list, nil
}

// bareBody reads the directives of a single server block without braces: everything to the end of the text.
func (p *parser) bareBody() ([]directive, error) {
	var list []directive
	for p.more() {
		if t := p.peek(); t.text == "}" {
			return nil, fail(t, "unexpected }: no block is open")
		}
		d, err := p.directive(1)
		if err != nil {
			return nil, err
		}
		list = append(list, d)
	}
	return list, nil
}

// body reads directives up to the brace that closes open.
func (p *parser) body(open token, depth int) ([]directive, error) {
	if depth > maxNesting {
		return nil, fail(open, "blocks are nested more than %d deep", maxNesting)
	}
	var list []directive
	for p.more() {
		if p.peek().text == "}" {
			p.take()
			return list, nil
		}
		d, err := p.directive(depth)
		if err != nil {
			return nil, err
		}
		list = append(list, d)
	}
	return nil, &SyntaxError{Text: fmt.Sprintf("the { in line %d is never closed", open.line)}
}

// directive reads a name, its arguments on the same line and its block. At depth 1 it is a plugin, where a closing brace
// on the plugin's own line is an error; deeper, that brace closes the block around it.
func (p *parser) directive(depth int) (directive, error) {
	first := p.take()
	if first.text == "{" {
		return directive{}, fail(first, "unexpected {: a plugin or option must come before it")
	}
	d := directive{line: first.line, name: first.text}
	for p.more() {
		t := p.peek()
		switch {
		case t.text == "{" && !d.braces:
			var err error
			d.braces = true
			if d.body, err = p.body(p.take(), depth+1); err != nil {
				return directive{}, err
			}
		case t.newline, t.text == "}" && depth > 1:
			return d, nil
		case t.text == "}":
			return directive{}, fail(t, "unexpected } on the line of %q: it must stand on its own line", d.name)
		case d.braces:
			return directive{}, fail(t, "unexpected %q after the block of %q", t.text, d.name)
		default:
			d.args = append(d.args, p.take().text)
		}
	}
	return d, nil
}

// equal compares what CoreDNS reads: names, arguments and structure, not lines, spacing or comments. A directive with an
// empty block is the same as one without.
func (d directive) equal(other directive) bool {
	return d.name == other.name && slices.Equal(d.args, other.args) &&
		slices.EqualFunc(d.body, other.body, directive.equal)
}

func (b block) equal(other block) bool {
	return slices.Equal(b.addresses, other.addresses) && b.braces == other.braces &&
		slices.EqualFunc(b.body, other.body, directive.equal)
}

// String shows a directive in a message.
func (d directive) String() string {
	return strings.Join(append([]string{d.name}, d.args...), " ")
}
