// SPDX-License-Identifier: Apache-2.0

package spec

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/theseus-gitops/theseus/reconcile/skew"
)

// scalar is a value that a document writes as one text or number.
type scalar interface {
	// parse reads the text as it stands in the file; its error says what is wrong, without repeating the text.
	parse(text string) error
	// form describes the allowed texts; it does not depend on the value.
	form() scalarForm
}

// scalarForm describes the texts of a scalar to people (want) and to a JSON Schema (types, pattern).
type scalarForm struct {
	want    string
	pattern string
	number  bool // a bare whole number is allowed too
}

var errForm = errors.New("") // the form alone says what is wrong

// Duration is a span of time, written as Go writes it, with d for days of 24 hours. It is never negative.
type Duration time.Duration

// Std gives the duration to Go's own functions.
func (d Duration) Std() time.Duration { return time.Duration(d) }

// String writes the duration as Go does, without days.
func (d Duration) String() string { return time.Duration(d).String() }

// MarshalText writes the one canonical text of the duration, so that 3d and 72h give the same revision.
func (d Duration) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

func (*Duration) form() scalarForm {
	return scalarForm{
		want:    "a duration such as 90s, 1h30m or 14d",
		pattern: `^(0|([0-9]+(\.[0-9]+)?(ns|us|µs|μs|ms|s|m|h|d))+)$`,
	}
}

var (
	durationPattern = regexp.MustCompile((*Duration)(nil).form().pattern)
	dayPattern      = regexp.MustCompile(`[0-9]+(\.[0-9]+)?d`)
)

func (d *Duration) parse(text string) error {
	if !durationPattern.MatchString(text) {
		switch {
		case strings.HasPrefix(text, "-"):
			return errors.New("it must not be negative")
		case strings.Trim(text, "0123456789.") == "":
			return errors.New("the unit is missing")
		}
		return errForm
	}
	var total time.Duration
	for _, days := range dayPattern.FindAllString(text, -1) {
		part, err := time.ParseDuration(strings.TrimSuffix(days, "d") + "h")
		if err != nil || part > math.MaxInt64/24 || 24*part > math.MaxInt64-total {
			return errors.New("it is longer than 292 years")
		}
		total += 24 * part
	}
	if rest := dayPattern.ReplaceAllString(text, ""); rest != "" {
		part, err := time.ParseDuration(rest)
		if err != nil || part > math.MaxInt64-total {
			return errors.New("it is longer than 292 years")
		}
		total += part
	}
	*d = Duration(total)
	return nil
}

// Version is a Kubernetes version as text, vX.Y.Z with an optional pre-release. Package skew orders versions.
type Version string

func (*Version) form() scalarForm {
	return scalarForm{
		want:    "a version vX.Y.Z such as v1.37.2 or v1.38.0-beta.0",
		pattern: `^v(0|[1-9][0-9]*)\.(0|[1-9][0-9]*)\.(0|[1-9][0-9]*)(-[0-9A-Za-z.-]+)?$`,
	}
}

func (v *Version) parse(text string) error {
	if _, err := skew.Parse(text); err != nil {
		if _, err := skew.Parse("v" + text); err == nil {
			return fmt.Errorf("the leading v is missing: v%s", text)
		}
		return errForm
	}
	*v = Version(text)
	return nil
}

// Time is an instant, in UTC whatever zone it was written in. The zero value means absent.
type Time struct{ time.Time }

func (*Time) form() scalarForm {
	return scalarForm{
		want:    "a time by RFC 3339 such as 2026-11-30T08:00:00Z",
		pattern: `^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]+)?(Z|[+-][0-9]{2}:[0-9]{2})$`,
	}
}

var timePattern = regexp.MustCompile((*Time)(nil).form().pattern)

func (t *Time) parse(text string) error {
	parsed, err := time.Parse(time.RFC3339, text)
	if err != nil || !timePattern.MatchString(text) {
		return errForm
	}
	parsed = parsed.UTC()
	if parsed.IsZero() || parsed.Year() < 1 || parsed.Year() > 9999 {
		return errors.New("it is not between the years 1 and 9999")
	}
	t.Time = parsed
	return nil
}

// IntOrPercent is a number of machines, or a percentage of a pool's replicas.
type IntOrPercent struct {
	Value   int
	Percent bool
}

// String writes it as a spec does.
func (p IntOrPercent) String() string {
	if p.Percent {
		return strconv.Itoa(p.Value) + "%"
	}
	return strconv.Itoa(p.Value)
}

// MarshalJSON writes a number, or a text that ends in a percent sign.
func (p IntOrPercent) MarshalJSON() ([]byte, error) {
	if p.Percent {
		return json.Marshal(p.String())
	}
	return json.Marshal(p.Value)
}

func (*IntOrPercent) form() scalarForm {
	return scalarForm{want: "a whole number such as 1, or a percentage such as 25%", pattern: `^(100|[1-9]?[0-9])%$`, number: true}
}

func (p *IntOrPercent) parse(text string) error {
	digits, percent := strings.CutSuffix(text, "%")
	n, err := parseWhole(digits)
	switch {
	case err != nil:
		return err
	case n < 0:
		return errors.New("it must not be negative")
	case percent && n > 100:
		return errors.New("it must not be above 100%")
	}
	*p = IntOrPercent{Value: n, Percent: percent}
	return nil
}

var wholePattern = regexp.MustCompile(`^(0|-?[1-9][0-9]{0,8})$`)

// parseWhole reads a plain decimal number. YAML's other spellings (0x10, 010, 1_000) are refused, because YAML 1.1 and 1.2
// disagree about their value.
func parseWhole(text string) (int, error) {
	if !wholePattern.MatchString(text) {
		return 0, errForm
	}
	return strconv.Atoi(text)
}
