// SPDX-License-Identifier: Apache-2.0

package gitsource

import (
	"encoding/base64"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// Kinds of failure, for errors.Is. An error of none of these kinds is transient: try again later.
var (
	// ErrConfig: the URL, path, branch name or Secret can't be used as given.
	ErrConfig = errors.New("git settings can't be used")
	// ErrAuth: the server refused the credentials, or grants them too little.
	ErrAuth = errors.New("git credentials refused")
	// ErrHostKey: the SSH server's key is not the one in known_hosts.
	ErrHostKey = errors.New("ssh host key not trusted")
	// ErrNotFound: no such repository, branch, path, or no commit yet.
	ErrNotFound = errors.New("not found in git")
	// ErrMoved: the branch has another head by now; poll again.
	ErrMoved = errors.New("git branch moved")
	// ErrLimit: more data than Limits allow.
	ErrLimit = errors.New("git limit exceeded")
	// ErrUnsupported: a repository or tree that this program can't read.
	ErrUnsupported = errors.New("unsupported git repository")
)

// Error is a failure told in one sentence that is safe to publish: no secret, no control character, bounded length.
type Error struct {
	Where string // scrubbed URL, with branch when known; may be empty
	Why   string
	Hint  string // what to do; may be empty
	// Kind is one of the kinds above, a context error, or nil (transient).
	Kind error
	// RetryAfter is how long the server asked us to stay away; 0 when it did not say.
	RetryAfter time.Duration

	late string // how long was waited for an answer that did not come, "within 2m0s"; "" for all else
}

// Error joins where, why and what to do.
func (e *Error) Error() string {
	var b strings.Builder
	b.WriteString("git")
	if e.Where != "" {
		b.WriteString(" " + e.Where)
	}
	b.WriteString(": " + e.Why)
	if e.Hint != "" {
		b.WriteString("; " + e.Hint)
	}
	return b.String()
}

// Unwrap gives the kind only: the cause's own text may hold what must not be published.
func (e *Error) Unwrap() error { return e.Kind }

// PushRefusedError means that the server refused a push although the branch had not moved: a rule, not a race.
// Pushing the same again is useless until a person changes the rule, the rights or the branch.
type PushRefusedError struct {
	Where string // scrubbed URL
	// Branch that refused.
	Branch string
	// Words of the server, for people only: scrubbed, shortened, never to be matched on.
	Words string
}

// Error names the branch, the server's words and the ways out.
func (e *PushRefusedError) Error() string {
	return fmt.Sprintf("git %s: the server refused the push to branch %s, and nobody else moved it, so this is a rule there; %s; "+
		"let this committer push to the branch, or choose another branch for status", e.Where, e.Branch, said(e.Words))
}

// said marks words as the server's: in quotes, so that they can't pass for ours.
func said(words string) string {
	if words == "" {
		return "the server gave no reason"
	}
	return fmt.Sprintf("the server said %q", words)
}

// maxWords bounds foreign text inside our messages.
const maxWords = 600

// escapes are what terminals act on: colours, cursor moves, titles, links (ECMA-48, CSI and OSC).
var escapes = regexp.MustCompile(`\x1b\[[0-?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(\x07|\x1b\\)`)

// scrubber removes secrets and control characters from foreign text.
type scrubber struct{ secrets []string }

func newScrubber(a Auth) scrubber {
	s := scrubber{}
	for _, secret := range []string{a.password, a.bearer, a.passphrase} {
		if secret != "" {
			s.secrets = append(s.secrets, secret)
		}
	}
	if a.password != "" {
		s.secrets = append(s.secrets, base64.StdEncoding.EncodeToString([]byte(a.username+":"+a.password)))
	}
	return s
}

func (s scrubber) clean(text string) string {
	for _, secret := range s.secrets {
		text = strings.ReplaceAll(text, secret, "[redacted]")
	}
	text = dropUserinfo(escapes.ReplaceAllString(text, ""))
	text = strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\t' || r == '\r':
			return ' '
		case r == utf8.RuneError || unicode.IsControl(r) || unicode.Is(unicode.Cf, r):
			return -1
		}
		return r
	}, text)
	text = strings.Join(strings.Fields(text), " ")
	if len(text) <= maxWords {
		return text
	}
	cut := maxWords
	for !utf8.RuneStart(text[cut]) {
		cut--
	}
	return text[:cut] + "…"
}

// dropUserinfo removes user and password from each URL in text.
func dropUserinfo(text string) string {
	var b strings.Builder
	for {
		i := strings.Index(text, "://")
		if i < 0 {
			b.WriteString(text)
			return b.String()
		}
		b.WriteString(text[:i+3])
		text = text[i+3:]
		end := strings.IndexAny(text, "/ \t\r\n\"'")
		if end < 0 {
			end = len(text)
		}
		if at := strings.LastIndexByte(text[:end], '@'); at >= 0 {
			text = text[at+1:]
		}
	}
}
