// SPDX-License-Identifier: Apache-2.0

// Package skew reads and orders the versions of Kubernetes and CoreDNS.
// It does not ask a registry or a cluster, and knows nothing about images beyond their tag.
// Start with Parse for versions people write, and ParseTag for tags found on images.
package skew

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
)

// Version is a semantic version without build metadata. The zero value is v0.0.0.
type Version struct {
	Major, Minor, Patch uint64
	// Pre is the pre-release without its leading dash ("beta.0"), or a vendor's suffix when the version was read from a
	// tag ("eksbuild.4"). Compare treats both as a pre-release; use Core where a vendor's suffix must not count.
	Pre string
}

// SyntaxError reports text that is not a version.
type SyntaxError struct {
	Text string // what was found
	Want string // what is allowed
}

// Error names the text and what is allowed in its place.
func (e *SyntaxError) Error() string {
	return fmt.Sprintf("%q is not a version: want %s", e.Text, e.Want)
}

const (
	wantVersion = "vX.Y.Z or vX.Y.Z-PRERELEASE, for example v1.37.2"
	wantTag     = "a tag that begins with X.Y.Z or vX.Y.Z and may go on with -SUFFIX or _SUFFIX, for example v1.14.6"
)

// maxTag is the longest tag that the OCI distribution specification allows ("Pulling manifests", reference as a tag).
const maxTag = 128

// Parse reads vX.Y.Z or vX.Y.Z-PRERELEASE by the rules of semver.org, with the leading v that Kubernetes writes.
// Build metadata is refused. Every error is a *SyntaxError.
func Parse(text string) (Version, error) {
	fail := func() (Version, error) { return Version{}, &SyntaxError{Text: text, Want: wantVersion} }
	rest, ok := strings.CutPrefix(text, "v")
	if !ok {
		return fail()
	}
	core, pre, dashed := strings.Cut(rest, "-")
	v, parts, ok := parseCore(core)
	if !ok || parts != 3 {
		return fail()
	}
	if dashed && !validPre(pre) {
		return fail()
	}
	v.Pre = pre
	return v, nil
}

// ParseTag reads the version in an image tag as Cluster API's control plane does: the v is optional, a missing patch
// counts as 0, and vendors may add -SUFFIX (kept in Pre) and _SUFFIX (build metadata, dropped; an OCI tag can't hold the
// plus sign). Beyond Cluster API it accepts several underscores, as in v1.8.6_vmware.1_b2. A single number is refused,
// because it is a build number or a date, and so is a suffix after a shortened version ("1-7"). Every error is a
// *SyntaxError.
func ParseTag(tag string) (Version, error) {
	fail := func() (Version, error) { return Version{}, &SyntaxError{Text: tag, Want: wantTag} }
	if len(tag) > maxTag || !onlyTagCharacters(tag) {
		return fail()
	}
	rest := strings.TrimPrefix(tag, "v")
	core, suffix := rest, ""
	if end := strings.IndexAny(rest, "-_"); end >= 0 {
		core, suffix = rest[:end], rest[end:]
	}
	v, parts, ok := parseCore(core)
	if !ok || parts < 2 || (parts == 2 && suffix != "") {
		return fail()
	}
	beforeBuild, build, hasBuild := strings.Cut(suffix, "_")
	pre, dashed := strings.CutPrefix(beforeBuild, "-")
	if (dashed && pre == "") || (hasBuild && build == "") {
		return fail()
	}
	v.Pre = pre
	return v, nil
}

// parseCore reads up to three dot-separated numbers and says how many there were.
func parseCore(text string) (Version, int, bool) {
	fields := strings.Split(text, ".")
	if len(fields) > 3 {
		return Version{}, 0, false
	}
	var numbers [3]uint64
	for i, field := range fields {
		n, ok := parseNumber(field)
		if !ok {
			return Version{}, 0, false
		}
		numbers[i] = n
	}
	return Version{Major: numbers[0], Minor: numbers[1], Patch: numbers[2]}, len(fields), true
}

// parseNumber reads a decimal number without sign or leading zeros.
func parseNumber(text string) (uint64, bool) {
	if !onlyDigits(text) || (len(text) > 1 && text[0] == '0') {
		return 0, false
	}
	n, err := strconv.ParseUint(text, 10, 64)
	return n, err == nil
}

// validPre checks semver.org rule 9: dot-separated, non-empty, alphanumerics and dashes, numbers without leading zeros.
func validPre(text string) bool {
	for id := range strings.SplitSeq(text, ".") {
		if id == "" || !onlyIn(id, isAlphanumericOrDash) {
			return false
		}
		if onlyDigits(id) && len(id) > 1 && id[0] == '0' {
			return false
		}
	}
	return true
}

func onlyDigits(text string) bool {
	return text != "" && onlyIn(text, func(c byte) bool { return '0' <= c && c <= '9' })
}

func onlyTagCharacters(text string) bool {
	return onlyIn(text, func(c byte) bool { return isAlphanumericOrDash(c) || c == '.' || c == '_' })
}

func isAlphanumericOrDash(c byte) bool {
	return '0' <= c && c <= '9' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || c == '-'
}

func onlyIn(text string, allowed func(byte) bool) bool {
	for i := range len(text) {
		if !allowed(text[i]) {
			return false
		}
	}
	return true
}

// String gives the version as Kubernetes writes it, with a leading v.
func (v Version) String() string {
	s := fmt.Sprintf("v%d.%d.%d", v.Major, v.Minor, v.Patch)
	if v.Pre != "" {
		s += "-" + v.Pre
	}
	return s
}

// Core returns the version without pre-release or vendor suffix.
func (v Version) Core() Version {
	return Version{Major: v.Major, Minor: v.Minor, Patch: v.Patch}
}

// Compare returns -1, 0 or 1 as v is lower than, equal to or higher than other, by semver.org rule 11: a version with a
// pre-release is lower than the same one without.
func (v Version) Compare(other Version) int {
	if c := cmp.Or(
		cmp.Compare(v.Major, other.Major),
		cmp.Compare(v.Minor, other.Minor),
		cmp.Compare(v.Patch, other.Patch),
	); c != 0 {
		return c
	}
	switch {
	case v.Pre == other.Pre:
		return 0
	case v.Pre == "":
		return 1
	case other.Pre == "":
		return -1
	}
	return comparePre(strings.Split(v.Pre, "."), strings.Split(other.Pre, "."))
}

func comparePre(a, b []string) int {
	for i := range min(len(a), len(b)) {
		if c := compareIdentifier(a[i], b[i]); c != 0 {
			return c
		}
	}
	return cmp.Compare(len(a), len(b))
}

// compareIdentifier compares numbers by value, everything else as text; a number is lower than text.
func compareIdentifier(a, b string) int {
	aNumber, bNumber := onlyDigits(a), onlyDigits(b)
	switch {
	case aNumber && bNumber:
		a, b = strings.TrimLeft(a, "0"), strings.TrimLeft(b, "0")
		return cmp.Or(cmp.Compare(len(a), len(b)), strings.Compare(a, b))
	case aNumber:
		return -1
	case bNumber:
		return 1
	}
	return strings.Compare(a, b)
}
