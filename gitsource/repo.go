// SPDX-License-Identifier: Apache-2.0

package gitsource

import (
	"context"
	"fmt"
	"net/http"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp/capability"
)

// Repo is one remote repository. It holds no checkout and no connection between calls, and is safe for concurrent use;
// calls of Read and Commit wait for each other, because they would only race for the same branch.
type Repo struct {
	opts  Options
	loc   location
	ref   plumbing.ReferenceName // of Options.Branch; "" is the server's default branch
	dir   string                 // cleaned Options.Path
	scrub scrubber
	base  http.RoundTripper

	writing chan struct{} // one token; guards last
	last    *snapshot     // the write branch as last fetched; reused while its head stays
}

// Open checks the options and connects to nothing. All its errors are ErrConfig.
func Open(o Options) (*Repo, error) {
	loc, err := parseLocation(o.URL)
	if err != nil {
		return nil, err
	}
	if err := o.validate(); err != nil {
		return nil, err
	}
	switch {
	case loc.scheme == schemeHTTP && !o.AllowInsecureHTTP:
		return nil, &Error{Kind: ErrConfig, Where: loc.display, Why: "plain http shows credentials and lets anyone on the way change the specs",
			Hint: "use https, or set AllowInsecureHTTP"}
	case loc.scheme == schemeSSH && (o.Auth.signer == nil || o.Auth.hosts == nil):
		return nil, &Error{Kind: ErrConfig, Where: loc.display, Why: "an ssh URL needs a Secret with identity and known_hosts"}
	case loc.scheme != schemeSSH && o.Auth.signer != nil:
		return nil, &Error{Kind: ErrConfig, Where: loc.display, Why: "an SSH key can't be used with this URL", Hint: "use an ssh:// URL"}
	}
	r := &Repo{opts: o.withDefaults(), loc: loc, scrub: newScrubber(o.Auth), writing: make(chan struct{}, 1), base: httpBase(o.Auth)}
	if r.ref, err = branchRef(o.Branch); err != nil {
		return nil, err
	}
	if r.dir, err = cleanDir(o.Path); err != nil {
		return nil, err
	}
	return r, nil
}

// URL is the repository's address, without user names or secrets.
func (r *Repo) URL() string { return r.loc.display }

// Head polls the branch: one exchange, no objects. ErrNotFound means no repository, no commit yet, or no such branch.
func (r *Repo) Head(ctx context.Context) (Revision, error) {
	var head plumbing.Hash
	err := r.exchange(ctx, uploadPack, func(_ context.Context, _ wire, adv *packp.AdvRefs) error {
		var err error
		head, err = r.specHead(adv)
		return err
	})
	if err != nil {
		return "", err
	}
	return Revision(head.String()), nil
}

// exchange runs one conversation within Options.Timeout and explains its failure.
func (r *Repo) exchange(ctx context.Context, s service, talk func(context.Context, wire, *packp.AdvRefs) error) error {
	run := ctx
	ctx, cancel := context.WithTimeout(run, r.opts.Timeout)
	defer cancel()
	w, err := r.dial(ctx, s)
	if err != nil {
		return r.explain(run, ctx, s, err, facts{})
	}
	defer w.Close() //nolint:errcheck // what matters was read or reported before; the program's exit status adds nothing
	adv, err := w.advertise(ctx)
	if err == nil {
		err = talk(ctx, w, adv)
	}
	if err != nil {
		return r.explain(run, ctx, s, err, w.facts())
	}
	return nil
}

// specHead finds the head of the configured branch in an advertisement.
func (r *Repo) specHead(adv *packp.AdvRefs) (plumbing.Hash, error) {
	if len(adv.References) == 0 {
		return plumbing.ZeroHash, &Error{Kind: ErrNotFound, Where: r.loc.display, Why: "the repository is empty",
			Hint: "push a first commit with fleet.yaml"}
	}
	ref := r.ref
	if ref == "" {
		if ref = defaultBranch(adv); ref == "" {
			return plumbing.ZeroHash, &Error{Kind: ErrNotFound, Where: r.loc.display, Why: "the server names no default branch",
				Hint: "name the branch"}
		}
	}
	id, ok := adv.References[ref.String()]
	if !ok {
		return plumbing.ZeroHash, &Error{Kind: ErrNotFound, Where: r.loc.display,
			Why:  fmt.Sprintf("there is no branch %s (the repository has %d branches)", ref.Short(), countBranches(adv)),
			Hint: "check the branch name, or push the branch"}
	}
	return id, nil
}

func countBranches(adv *packp.AdvRefs) int {
	n := 0
	for name := range adv.References {
		if strings.HasPrefix(name, "refs/heads/") {
			n++
		}
	}
	return n
}

// defaultBranch is where the server's HEAD points, from the symref capability (gitprotocol-capabilities).
func defaultBranch(adv *packp.AdvRefs) plumbing.ReferenceName {
	for _, value := range adv.Capabilities.Get(capability.SymRef) {
		if target, ok := strings.CutPrefix(value, "HEAD:"); ok {
			return plumbing.ReferenceName(target)
		}
	}
	return ""
}
