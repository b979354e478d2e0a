// SPDX-License-Identifier: Apache-2.0

// Package corefile judges what a CoreDNS version change means for a Corefile, and migrates the Corefile where it must.
// It does not touch a cluster, and hides corefile-migration, whose output it never trusts without a check.
// Start with Assess.
package corefile

import (
	"cmp"
	"fmt"
	"slices"
)

// Outcome says what happens to the Corefile.
type Outcome int

const (
	// Unchanged means that the Corefile stays byte for byte as it is; only the image changes.
	Unchanged Outcome = iota + 1
	// Migrated means that the Corefile must be replaced together with the image.
	Migrated
	// Refused means that the image must not change either; Reason says why and what to do.
	Refused
)

// String gives the word used in output for programs.
func (o Outcome) String() string {
	switch o {
	case Unchanged:
		return "unchanged"
	case Migrated:
		return "migrated"
	case Refused:
		return "refused"
	}
	return fmt.Sprintf("Outcome(%d)", int(o))
}

// MarshalText writes the word of String.
func (o Outcome) MarshalText() ([]byte, error) { return []byte(o.String()), nil }

// Severity says how much a notice matters.
type Severity int

const (
	// SeverityDeprecated things still work as before.
	SeverityDeprecated Severity = iota + 1
	// SeverityIgnored things stay in the Corefile without effect.
	SeverityIgnored
	// SeverityRemoved things stop CoreDNS from starting.
	SeverityRemoved
	// SeverityNewDefault things are added, because CoreDNS may not work properly without them.
	SeverityNewDefault
	// SeverityUnsupported things are unknown to the migration library, which says nothing about CoreDNS; they are left alone.
	SeverityUnsupported
	// SeverityWarning is for a person to read and check.
	SeverityWarning
)

// String gives the word used in output for programs.
func (s Severity) String() string {
	switch s {
	case SeverityDeprecated:
		return "deprecated"
	case SeverityIgnored:
		return "ignored"
	case SeverityRemoved:
		return "removed"
	case SeverityNewDefault:
		return "newdefault"
	case SeverityUnsupported:
		return "unsupported"
	case SeverityWarning:
		return "warning"
	}
	return fmt.Sprintf("Severity(%d)", int(s))
}

// MarshalText writes the word of String.
func (s Severity) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// Notice is one thing to know about the version change.
type Notice struct {
	Plugin   string   `json:"plugin"`
	Option   string   `json:"option"`
	Severity Severity `json:"severity"`
	Message  string   `json:"message"`
}

// Request is what Assess judges.
type Request struct {
	From, To string // image tags: live and wanted
	Corefile string
	// OtherKeys are the other keys of the Corefile's ConfigMap, where imports look for files.
	OtherKeys map[string]string
	// SkipMigration keeps the Corefile as it is, whatever the migration library thinks. A downgrade stays refused.
	SkipMigration bool
}

// Assessment is the judgement.
type Assessment struct {
	Outcome Outcome
	Reason  string // why, and for Refused what to do
	// Notices are sorted, and hold one entry for each plugin, option and severity (warnings: for each message).
	Notices  []Notice
	Corefile string // the text to run with: the input, byte for byte, unless Migrated
	// Err is a *TagError when a tag could not be read, and nil in every other case, Refused included.
	Err error
}

// TagError reports an image tag whose CoreDNS version can't be read.
type TagError struct {
	Field string // "from" or "to"
	Tag   string
	Err   error // a *skew.SyntaxError
}

// Error names the tag's role.
func (e *TagError) Error() string { return fmt.Sprintf("CoreDNS tag (%s): %v", e.Field, e.Err) }

// Unwrap returns the version's syntax error.
func (e *TagError) Unwrap() error { return e.Err }

// tidy sorts notices and drops repetitions: the library reports the same thing once for each version on the way.
func tidy(notices []Notice) []Notice {
	type key struct {
		plugin, option string
		severity       Severity
		warning        string
	}
	seen := map[key]bool{}
	var list []Notice
	for _, n := range notices {
		k := key{plugin: n.Plugin, option: n.Option, severity: n.Severity}
		if n.Severity == SeverityWarning {
			k.warning = n.Message
		}
		if !seen[k] {
			seen[k] = true
			list = append(list, n)
		}
	}
	slices.SortStableFunc(list, func(a, b Notice) int {
		return cmp.Or(
			cmp.Compare(a.Plugin, b.Plugin),
			cmp.Compare(a.Option, b.Option),
			cmp.Compare(a.Severity, b.Severity),
			cmp.Compare(a.Message, b.Message),
		)
	})
	return list
}
