// SPDX-License-Identifier: Apache-2.0

package gitsource

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"slices"
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
			Hint: "use https, or accept that with --allow-insecure-http"}
	case loc.scheme == schemeSSH && (o.Auth.signer == nil || o.Auth.hosts == nil):
		return nil, &Error{Kind: ErrConfig, Where: loc.display, Why: "an ssh URL needs a key and the host's key",
			Hint: "name a secret with identity and known_hosts: --repo-secret"}
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
	tip, err := r.Tip(ctx)
	return tip.Revision, err
}

// Tip is Head, with the name of the branch.
func (r *Repo) Tip(ctx context.Context) (Tip, error) {
	var tip Tip
	err := r.exchange(ctx, uploadPack, func(_ context.Context, _ wire, adv *packp.AdvRefs) error {
		head, err := r.specHead(adv)
		ref := cmp.Or(r.ref, defaultBranch(adv))
		tip = Tip{Branch: ref.Short(), Default: ref == defaultBranch(adv), Revision: Revision(head.String())}
		return err
	})
	if err != nil {
		return Tip{}, err
	}
	return tip, nil
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
	ref := cmp.Or(r.ref, defaultBranch(adv))
	if ref == "" {
		return plumbing.ZeroHash, &Error{Kind: ErrNotFound, Where: r.loc.display, Why: "the server names no default branch",
			Hint: "name the branch with --branch; there are: " + some(branches(adv))}
	}
	id, ok := adv.References[ref.String()]
	if !ok {
		return plumbing.ZeroHash, &Error{Kind: ErrNotFound, Where: r.loc.display, Why: "there is no branch " + ref.Short(),
			Hint: "there are: " + some(branches(adv))}
	}
	return id, nil
}

func branches(adv *packp.AdvRefs) []string {
	var names []string
	for name := range adv.References {
		if branch, ok := strings.CutPrefix(name, "refs/heads/"); ok && printable(branch) {
			names = append(names, branch)
		}
	}
	return names
}

// some lists names for a message: the first ten, and how many more there are.
func some(names []string) string {
	const most = 10
	slices.Sort(names)
	switch {
	case len(names) == 0:
		return "none"
	case len(names) > most:
		return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), len(names)-most)
	}
	return strings.Join(names, ", ")
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
