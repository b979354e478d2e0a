// SPDX-License-Identifier: Apache-2.0

package gitsource

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"path"
	"strings"
	"time"

	"github.com/go-git/go-git/v5/plumbing"
)

// Options says which repository, as whom, and within which bounds.
type Options struct {
	// URL is https://…, ssh://…, user@host:path, file://… or a local path. A URL with a password is refused.
	URL string
	// Branch holds the specs; "" is the repository's default branch.
	Branch string
	// Path is the directory that Files reads; "" is the repository's root.
	Path string
	// Auth comes from AuthFromSecret; the zero value is anonymous.
	Auth Auth
	// AllowInsecureHTTP admits http:// URLs. Anyone on the way can then read the credentials and change the specs.
	AllowInsecureHTTP bool

	Limits Limits
	Retry  Retry
	// Timeout bounds one exchange with the server. Default: 2 minutes.
	Timeout time.Duration

	// Author and Committer sign the commits; Committer defaults to Author.
	Author    Identity
	Committer Identity
	// Now gives commit times. Default: time.Now.
	Now func() time.Time
	// Jitter gives values in [0, 1) that spread the waits between tries. Default: math/rand/v2.
	Jitter func() float64
}

// Identity is a name and an e-mail address in a commit.
type Identity struct {
	Name  string
	Email string
}

// Limits bound what is read. Zero fields get the defaults.
type Limits struct {
	FileBytes int64 // one file; default 1 MiB
	Files     int   // files under Path (or a prefix of a branch); default 20,000
	Depth     int   // directories inside directories below Path; default 64
	// RepoBytes bounds what the server sends in one exchange, and what that unpacks to. Default: 256 MiB.
	RepoBytes int64
}

// Retry bounds the tries of one Commit. Zero fields get the defaults.
type Retry struct {
	Attempts int           // default 10
	Min      time.Duration // shortest wait between two tries; default 200 ms
	Max      time.Duration // longest; default 5 s
}

// delay is the wait after the given attempt (from 1): random between Min and a bound that doubles up to Max.
func (r Retry) delay(attempt int, jitter float64) time.Duration {
	bound := r.Min
	for i := 0; i < attempt && bound < r.Max; i++ {
		bound *= 2
	}
	bound = min(bound, r.Max)
	return r.Min + time.Duration(jitter*float64(bound-r.Min))
}

func (o Options) withDefaults() Options {
	o.Limits.FileBytes = cmp.Or(o.Limits.FileBytes, 1<<20)
	o.Limits.Files = cmp.Or(o.Limits.Files, 20_000)
	o.Limits.Depth = cmp.Or(o.Limits.Depth, 64)
	o.Limits.RepoBytes = cmp.Or(o.Limits.RepoBytes, 256<<20)
	o.Retry.Attempts = cmp.Or(o.Retry.Attempts, 10)
	o.Retry.Min = cmp.Or(o.Retry.Min, 200*time.Millisecond)
	o.Retry.Max = max(cmp.Or(o.Retry.Max, 5*time.Second), o.Retry.Min)
	o.Timeout = cmp.Or(o.Timeout, 2*time.Minute)
	o.Author.Name = cmp.Or(o.Author.Name, "Theseus")
	o.Author.Email = cmp.Or(o.Author.Email, "theseus@invalid")
	o.Committer.Name = cmp.Or(o.Committer.Name, o.Author.Name)
	o.Committer.Email = cmp.Or(o.Committer.Email, o.Author.Email)
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Jitter == nil {
		o.Jitter = rand.Float64
	}
	return o
}

// validate checks what does not depend on the URL.
func (o Options) validate() error {
	if o.Limits.FileBytes < 0 || o.Limits.Files < 0 || o.Limits.Depth < 0 || o.Limits.RepoBytes < 0 {
		return badOption("limits: a limit can't be negative")
	}
	if o.Retry.Attempts < 0 || o.Retry.Min < 0 || o.Retry.Max < 0 || o.Timeout < 0 {
		return badOption("retry and timeout: a bound can't be negative")
	}
	for _, id := range []Identity{o.Author, o.Committer} {
		// These characters delimit the fields of a commit header; git fsck rejects a commit that has them.
		if strings.ContainsAny(id.Name+id.Email, "<>\n\x00") {
			return badOption("author %q <%q>: no <, > or line break is allowed in a name or an address", id.Name, id.Email)
		}
	}
	return nil
}

// cleanDir turns a configured path into a slash path without leading or trailing slash; "" is the root.
func cleanDir(dir string) (string, error) {
	for part := range strings.SplitSeq(dir, "/") {
		if part == ".." {
			return "", badOption("path %q: .. is not allowed; name a directory inside the repository", dir)
		}
	}
	return strings.TrimPrefix(path.Clean("/"+dir), "/"), nil
}

// branchRef turns a branch name into a full ref name; "" stays "".
func branchRef(branch string) (plumbing.ReferenceName, error) {
	if branch == "" {
		return "", nil
	}
	ref := plumbing.NewBranchReferenceName(strings.TrimPrefix(branch, "refs/heads/"))
	if err := ref.Validate(); err != nil {
		return "", badOption("branch %q is not a valid branch name (see git check-ref-format)", branch)
	}
	return ref, nil
}

func badOption(format string, args ...any) error {
	return &Error{Kind: ErrConfig, Why: fmt.Sprintf(format, args...)}
}
