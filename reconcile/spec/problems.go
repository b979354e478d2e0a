// SPDX-License-Identifier: Apache-2.0

package spec

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Severity tells whether a problem makes its document unusable.
type Severity int

const (
	// Error means that the document is not acted on.
	Error Severity = iota + 1
	// Warning means that the document works, but not as its author may think.
	Warning
)

// String is the word used in text and JSON output.
func (s Severity) String() string {
	if s == Warning {
		return "warning"
	}
	return "error"
}

// MarshalText makes JSON and YAML output use the word.
func (s Severity) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText reads the word back, for programs that consume our output in Go.
func (s *Severity) UnmarshalText(text []byte) error {
	switch string(text) {
	case "error":
		*s = Error
	case "warning":
		*s = Warning
	default:
		return fmt.Errorf("severity %q is neither error nor warning", text)
	}
	return nil
}

// Position is a place in a file; both numbers count from 1, columns in characters. A problem of a file as a whole stands at 1:1.
type Position struct {
	Line, Column int
}

// Problem is one thing that is wrong or surprising in the specs.
type Problem struct {
	File     string   `json:"file"`
	Line     int      `json:"line"`
	Column   int      `json:"column"`
	Severity Severity `json:"severity"`
	Message  string   `json:"message"`

	// Kind and Cluster tell what the problem holds up: the fleet, a release, or the named cluster. Both are empty when the
	// document could not be read far enough; Cluster is empty for other kinds.
	Kind    string `json:"-"`
	Cluster string `json:"-"`
	// Idle is set in the warning that a key is not acted on yet: its path, without the numbers of items.
	Idle string `json:"-"`
	// Ignored is set in the warning that a document, though it looks like one of ours, is not read at all.
	Ignored bool `json:"-"`
}

// String is the line that validate prints, in the form that editors and CI systems turn into links.
func (p Problem) String() string {
	return fmt.Sprintf("%s:%d:%d: %s: %s", p.File, p.Line, p.Column, p.Severity, p.Message)
}

// Problems are sorted by file, line, column, then message when Parse returns them.
type Problems []Problem

// HasErrors tells whether at least one is an error: exit 20 of validate.
func (ps Problems) HasErrors() bool {
	return slices.ContainsFunc(ps, func(p Problem) bool { return p.Severity == Error })
}

// ForCluster returns the problems that belong to the named cluster.
func (ps Problems) ForCluster(name string) Problems {
	return ps.filter(func(p Problem) bool { return p.Cluster == name && name != "" })
}

// ForFleet returns the problems of the fleet itself. With an error among them no cluster may start a change, because
// stages, windows and a freeze are unknown.
func (ps Problems) ForFleet() Problems {
	return ps.filter(func(p Problem) bool { return p.Kind == KindFleet })
}

// BrokenClusters returns the sorted names of clusters that have errors, so that their status can say so.
func (ps Problems) BrokenClusters() []string {
	var names []string
	for _, p := range ps {
		if p.Severity == Error && p.Cluster != "" {
			names = append(names, p.Cluster)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// String is one line a problem, each with a line end.
func (ps Problems) String() string {
	var b strings.Builder
	for _, p := range ps {
		b.WriteString(p.String())
		b.WriteByte('\n')
	}
	return b.String()
}

// Errors returns the errors among them.
func (ps Problems) Errors() Problems {
	return ps.filter(func(p Problem) bool { return p.Severity == Error })
}

func (ps Problems) filter(keep func(Problem) bool) Problems {
	var out Problems
	for _, p := range ps {
		if keep(p) {
			out = append(out, p)
		}
	}
	return out
}

func (ps Problems) sorted() Problems {
	slices.SortFunc(ps, func(a, b Problem) int {
		return cmp.Or(cmp.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column),
			cmp.Compare(a.Severity, b.Severity), cmp.Compare(a.Message, b.Message))
	})
	return slices.Compact(ps)
}
