// SPDX-License-Identifier: Apache-2.0

package spec

import (
	"path"
	"regexp"
	"strings"
	"time"

	"github.com/robfig/cron/v3"
)

// format is a named rule for texts.
type format struct {
	want    string                   // what is allowed, for messages
	pattern *regexp.Regexp           // nil: check alone decides
	check   func(text string) string // what is wrong, "" when nothing; called when pattern matches
	hint    func(text string) string // what to do about a text that does not match; may be nil
}

// problem tells what is wrong with text, and whether anything is.
func (f format) problem(text string) (string, bool) {
	if f.pattern != nil && !f.pattern.MatchString(text) {
		if f.hint != nil {
			return f.hint(text), true
		}
		return "", true
	}
	if f.check != nil {
		if wrong := f.check(text); wrong != "" {
			return wrong, true
		}
	}
	return "", false
}

const (
	dnsLabel  = `[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?`
	labelName = `[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?`
)

// formats has the rule of each name that a format or keys tag uses. Sources: DNS labels RFC 1123; labels, object names and
// Secret keys Kubernetes' apimachinery validation; tags the OCI distribution specification; branches git-check-ref-format.
//
//nolint:gochecknoglobals // read-only table
var formats = map[string]format{
	"dns-label": {
		want:    "a DNS label: at most 63 lower-case letters, digits and -, with a letter or digit at both ends",
		pattern: regexp.MustCompile(`^` + dnsLabel + `$`),
	},
	"object-name": {
		want:    "a Kubernetes object name: lower-case letters, digits, - and .",
		pattern: regexp.MustCompile(`^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$`),
		check:   atMost(253),
	},
	"secret-key": {
		want:    "a Secret key: letters, digits, -, _ and .",
		pattern: regexp.MustCompile(`^[-._a-zA-Z0-9]+$`),
		check:   checkSecretKey,
	},
	"label-key": {
		want:    "a label key: at most 63 letters, digits, -, _ and ., perhaps after a DNS name and a slash",
		pattern: regexp.MustCompile(`^(` + dnsLabel + `(\.` + dnsLabel + `)*/)?` + labelName + `$`),
		check:   atMost(253 + 1 + 63),
	},
	"label-value": {
		want:    "a label value: at most 63 letters, digits, -, _ and .",
		pattern: regexp.MustCompile(`^(` + labelName + `)?$`),
	},
	"argument-name": {
		want:    "an argument's name without leading dashes, such as node-ip",
		pattern: regexp.MustCompile(`^[a-z0-9][-a-z0-9.]*$`),
	},
	"oci-tag": {
		want:    "an image tag: at most 128 letters, digits, _, . and -",
		pattern: regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}$`),
		hint:    hintTag,
	},
	"image-repository": {
		want:    "an image repository such as registry.k8s.io or registry.example.com:5000/mirror",
		pattern: regexp.MustCompile(`^[A-Za-z0-9]([-A-Za-z0-9.]*[A-Za-z0-9])?(:[0-9]{1,5})?(/[a-z0-9]+(([._]|__|-+)[a-z0-9]+)*)*$`),
		hint:    hintRepository,
	},
	"absolute-path": {
		want:    "an absolute path without . and .. parts",
		pattern: regexp.MustCompile(`^/[^\x00-\x1f]*$`),
		check:   checkClean,
	},
	"repo-path": {
		want:    "a path relative to the repository's root, never outside it",
		pattern: regexp.MustCompile(`^[^/\x00-\x1f\\][^\x00-\x1f\\]*$`),
		check:   checkInside,
	},
	"relative-path": {
		want:    "a relative path",
		pattern: regexp.MustCompile(`^[^/\x00-\x1f\\][^\x00-\x1f\\]*$`),
	},
	"snapshot-target": {
		want:    "an absolute directory or s3://bucket/prefix",
		pattern: regexp.MustCompile(`^(/[^\x00-\x1f]*|s3://[a-z0-9][-a-z0-9.]{1,61}[a-z0-9](/[^\x00-\x1f]*)?)$`),
	},
	"git-branch": {
		want:    "a branch name without refs/heads/",
		pattern: regexp.MustCompile(`^[^\x00-\x20~^:?*\[\\\x7f]+$`),
		check:   checkBranch,
	},
	"http-url": {
		want:    "a URL that begins with http:// or https://",
		pattern: regexp.MustCompile(`^https?://[^\s/?#]+[^\s]*$`),
	},
	"file-mode": {
		want:    `a quoted octal text such as "0600"`,
		pattern: regexp.MustCompile(`^0[0-7]{3}$`),
	},
	"cron":      {want: `a cron expression of five fields such as "0 9 * * MON-THU"`, check: checkCron},
	"time-zone": {want: "an IANA time zone such as Europe/Berlin", check: checkTimeZone},
}

func atMost(n int) func(string) string {
	return func(text string) string {
		if len(text) > n {
			return "it is too long"
		}
		return ""
	}
}

// checkSecretKey refuses keys that would leave the Secret's directory when Secrets are files.
func checkSecretKey(text string) string {
	if text == "." || strings.HasPrefix(text, "..") {
		return "it must not be . and not begin with .."
	}
	return atMost(253)(text)
}

func hintTag(text string) string {
	switch {
	case strings.Contains(text, "@") || strings.HasPrefix(text, "sha256:"):
		return "a digest is not a tag"
	case strings.Contains(text, "+"):
		return "a tag can't hold +; registries use _ in its place: " + strings.ReplaceAll(text, "+", "_")
	case strings.ContainsAny(text, "/:"):
		return "leave the image's name out"
	default:
		return ""
	}
}

func hintRepository(text string) string {
	last := text[strings.LastIndex(text, "/")+1:]
	switch {
	case strings.Contains(text, "://"):
		return "leave the scheme out"
	case strings.HasSuffix(text, "/"):
		return "leave the slash at its end out"
	case strings.ContainsAny(last, ":@"):
		return "leave tag and digest out"
	default:
		return ""
	}
}

func checkClean(text string) string {
	if clean := path.Clean(text); clean != text {
		return "write " + clean
	}
	return ""
}

func checkInside(text string) string {
	clean := path.Clean(text)
	if clean == ".." || strings.HasPrefix(clean, "../") {
		return "it leads out of the repository"
	}
	if clean == ".git" || strings.HasPrefix(clean, ".git/") {
		return "it leads into Git's own folder"
	}
	return ""
}

func checkBranch(text string) string {
	switch {
	case strings.HasPrefix(text, "refs/"):
		return "leave refs/heads/ out"
	case strings.HasPrefix(text, "-"):
		return "it must not begin with -"
	case strings.Contains(text, "..") || strings.Contains(text, "@{") || text == "@":
		return "it must not be @ and not contain .. or @{"
	}
	for part := range strings.SplitSeq(text, "/") {
		if part == "" || strings.HasPrefix(part, ".") || strings.HasSuffix(part, ".") || strings.HasSuffix(part, ".lock") {
			return "no part between slashes may be empty, begin or end with a dot, or end with .lock"
		}
	}
	return ""
}

// parseCron reads five fields. A zone in the expression is refused, because the zone has a key of its own.
func parseCron(text string) (cron.Schedule, string) {
	if strings.HasPrefix(text, "TZ=") || strings.HasPrefix(text, "CRON_TZ=") {
		return nil, "give the zone in timeZone"
	}
	parser := cron.NewParser(cron.Minute | cron.Hour | cron.Dom | cron.Month | cron.Dow)
	schedule, err := parser.Parse(text)
	if err != nil {
		return nil, err.Error()
	}
	return schedule, ""
}

func checkCron(text string) string {
	schedule, wrong := parseCron(text)
	if wrong != "" {
		return wrong
	}
	// The library gives up after five years; from this day on a 29 February lies within them.
	if schedule.Next(time.Date(2026, time.January, 1, 0, 0, 0, 0, time.UTC)).IsZero() {
		return "that day never comes"
	}
	return ""
}

// checkTimeZone looks the zone up in Go's zone data, which may lie in the operating system's files or in the program: the
// one place where this package's answer depends on more than its arguments. The command embeds the data (time/tzdata).
func checkTimeZone(text string) string {
	if text == "Local" {
		return "the machine's own zone differs from machine to machine"
	}
	if _, err := time.LoadLocation(text); err != nil {
		return "no such zone"
	}
	return ""
}
