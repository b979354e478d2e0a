// SPDX-License-Identifier: Apache-2.0

package terraform

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// problem is an error that Terraform reported: a diagnostic of its machine-readable output
// (https://developer.hashicorp.com/terraform/internals/machine-readable-ui), without the snippet of code, which quotes values.
type problem struct {
	Summary, Detail, Address string
}

// longest is how much of one problem's text an error shows.
const longest = 700

func (p problem) String() string {
	text := p.Summary
	if p.Address != "" {
		text += " (" + p.Address + ")"
	}
	if p.Detail != "" {
		text += ": " + p.Detail
	}
	text = strings.Join(strings.Fields(text), " ")
	if runes := []rune(text); len(runes) > longest {
		text = string(runes[:longest]) + "…"
	}
	return text
}

// diagnosed are the errors among the JSON lines that a command printed. Lines may be of any length, and other text
// may stand between them.
func diagnosed(stdout []byte) []problem {
	var all []problem
	for line := range bytes.Lines(stdout) {
		var message struct {
			Type       string `json:"type"`
			Diagnostic struct {
				Severity string `json:"severity"`
				problem
			} `json:"diagnostic"`
		}
		if json.Unmarshal(line, &message) == nil && message.Type == "diagnostic" && message.Diagnostic.Severity == "error" {
			all = append(all, message.Diagnostic.problem)
		}
	}
	return all
}

// spoken is the first error in text for people: state pull, show and workspace list have no other. It is shown, and
// nothing is decided by it.
func spoken(stderr []byte) []problem {
	var words []string
	for line := range strings.Lines(string(stderr)) {
		if line = strings.TrimSpace(strings.Trim(plain(line), "╷│╵ \t\n")); line != "" {
			words = append(words, line)
		}
	}
	first := max(0, slices.IndexFunc(words, func(w string) bool { return strings.HasPrefix(w, "Error: ") }))
	if len(words) == 0 {
		return nil
	}
	return []problem{{Summary: strings.TrimPrefix(words[first], "Error: "), Detail: strings.Join(words[first+1:], " ")}}
}

// plain is text without the sequences that colour it.
func plain(text string) string {
	parts := strings.Split(text, "\x1b[")
	for i, part := range parts[1:] {
		_, parts[i+1], _ = strings.Cut(part, "m")
	}
	return strings.Join(parts, "")
}

// commandError says that a command of Terraform's failed.
type commandError struct {
	command     string
	problems    []problem
	interrupted error
	failure     error
}

// Error implements error.
func (e *commandError) Error() string {
	var parts []string
	if e.interrupted != nil {
		parts = append(parts, fmt.Sprintf("interrupted (%v)", e.interrupted))
	}
	if e.failure != nil {
		parts = append(parts, e.failure.Error())
	}
	switch n := len(e.problems); {
	case n == 1:
		parts = append(parts, e.problems[0].String())
	case n > 1:
		parts = append(parts, fmt.Sprintf("%s; and %d more errors", e.problems[0], n-1))
	case len(parts) == 0:
		parts = append(parts, "it failed and did not say why; run it by hand in the module's folder")
	}
	return e.command + ": " + strings.Join(parts, ": ")
}

// Unwrap is why it was interrupted, and why it could not be run.
func (e *commandError) Unwrap() []error {
	var causes []error
	for _, err := range []error{e.interrupted, e.failure} {
		if err != nil {
			causes = append(causes, err)
		}
	}
	return causes
}

// said reports whether err is a failed command with a problem whose summary begins like that. Terraform gives its errors no other
// name; an unknown one stays an ordinary error, which is tried again from the start.
func said(err error, summaries ...string) (problem, bool) {
	var failed *commandError
	if !errors.As(err, &failed) {
		return problem{}, false
	}
	for _, p := range failed.problems {
		for _, s := range summaries {
			if strings.HasPrefix(p.Summary, s) {
				return p, true
			}
		}
	}
	return problem{}, false
}
