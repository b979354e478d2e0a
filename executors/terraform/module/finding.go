// SPDX-License-Identifier: Apache-2.0

package module

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"

	"github.com/theseus-gitops/theseus/reconcile/spec"
)

// Finding is one place where a module breaks the contract, or may.
type Finding struct {
	File     string        `json:"file"` // relative to the checked folder
	Line     int           `json:"line"`
	Column   int           `json:"column"`
	Severity spec.Severity `json:"severity"`
	Code     Code          `json:"code"`
	// Message says what was found, what the contract wants and how to change it.
	Message string `json:"message"`
}

// String is the line that people read, in the form that editors and CI systems turn into links.
func (f Finding) String() string {
	return fmt.Sprintf("%s:%d:%d: %s: %s [%s]", f.File, f.Line, f.Column, f.Severity, f.Message, f.Code)
}

// Findings are sorted by file, line, column, then code.
type Findings []Finding

// Errors counts the findings with which a roll fails.
func (fs Findings) Errors() int {
	n := 0
	for _, f := range fs {
		if f.Severity == spec.Error {
			n++
		}
	}
	return n
}

// String is one line a finding, each with a line end.
func (fs Findings) String() string {
	var b strings.Builder
	for _, f := range fs {
		b.WriteString(f.String())
		b.WriteByte('\n')
	}
	return b.String()
}

func (fs Findings) sorted() Findings {
	slices.SortFunc(fs, func(a, b Finding) int {
		return cmp.Or(cmp.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column),
			cmp.Compare(a.Code, b.Code), cmp.Compare(a.Message, b.Message))
	})
	return slices.Compact(fs) // a child module that is called twice has its faults once
}

// report adds a finding of the rule; the rule's own words say what to do.
func (c *checker) report(code Code, at hcl.Range, format string, args ...any) {
	rule := ruleOf(code)
	c.findings = append(c.findings, Finding{
		File: at.Filename, Line: max(at.Start.Line, 1), Column: max(at.Start.Column, 1),
		Severity: rule.Severity, Code: code,
		Message: fmt.Sprintf(format, args...) + "; " + rule.Want + ": " + rule.Change,
	})
}
