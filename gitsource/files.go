// SPDX-License-Identifier: Apache-2.0

package gitsource

import (
	"context"
	"errors"
	"fmt"
	"path"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp"
)

// Files fetches one revision and gives what a reader of specs must see below Options.Path, sorted by path: *.yaml and
// *.yml files, and all symlinks and submodules. Other files are not even loaded.
// ErrMoved means that the branch has moved on and the server no longer gives that revision.
func (r *Repo) Files(ctx context.Context, revision Revision) ([]File, error) {
	var files []File
	err := r.at(ctx, revision, func(objects *objects, id plumbing.Hash) error {
		var err error
		files, err = r.readSpecs(objects, id)
		return err
	})
	return files, err
}

// at fetches one revision of the branch and hands its objects on.
func (r *Repo) at(ctx context.Context, revision Revision, use func(o *objects, commit plumbing.Hash) error) error {
	if !plumbing.IsHash(string(revision)) {
		return badOption("revision %q is not a full commit id", revision)
	}
	id := plumbing.NewHash(string(revision))
	return r.exchange(ctx, uploadPack, func(ctx context.Context, w wire, adv *packp.AdvRefs) error {
		head, err := r.specHead(adv)
		if err != nil {
			return err
		}
		if head != id && !r.mayAsk(adv, id) {
			return r.movedOn(id, head)
		}
		objects, err := r.fetch(ctx, w, adv, id)
		var own *Error
		if err != nil && head != id && !errors.As(err, &own) {
			return r.movedOn(id, head)
		}
		if err != nil {
			return err
		}
		return use(objects, id)
	})
}

func (r *Repo) movedOn(from, to plumbing.Hash) error {
	return &Error{Kind: ErrMoved, Where: r.loc.display, Why: fmt.Sprintf("the branch moved from %s to %s meanwhile", from, to),
		Hint: "the next poll reads the new head"}
}

// mayAsk says whether the server may give a commit that is no branch's head: when it says so (git-config,
// uploadpack.allow…SHA1InWant), and over HTTP, where git allows for the branch moving between two requests.
func (r *Repo) mayAsk(adv *packp.AdvRefs, id plumbing.Hash) bool {
	if r.loc.scheme == schemeHTTP || r.loc.scheme == schemeHTTPS ||
		adv.Capabilities.Supports("allow-reachable-sha1-in-want") || adv.Capabilities.Supports("allow-any-sha1-in-want") {
		return true
	}
	for _, tip := range adv.References {
		if tip == id {
			return true
		}
	}
	return false
}

func (r *Repo) readSpecs(o *objects, commit plumbing.Hash) ([]File, error) {
	root, err := o.root(commit)
	if err != nil {
		return nil, err
	}
	top, err := r.specDir(o, root)
	if err != nil {
		return nil, err
	}
	var files []File
	walk := &walker{objects: o, limits: r.opts.Limits, wants: wantsSpec, take: func(f File) error {
		files = append(files, f)
		return nil
	}}
	err = walk.dir("", top, 0)
	return files, err
}

// specDir finds Options.Path, naming the part of it that is not a directory.
func (r *Repo) specDir(o *objects, root plumbing.Hash) (plumbing.Hash, error) {
	at := ""
	id := root
	if r.dir == "" {
		return id, nil
	}
	for part := range strings.SplitSeq(r.dir, "/") {
		at = path.Join(at, part)
		e, found, err := o.find(root, at)
		if err != nil {
			return id, err
		}
		if !found {
			return id, r.noSuchDir(o, id, at)
		}
		if !e.isDir() {
			return id, &Error{Kind: ErrConfig, Where: r.loc.display, Why: fmt.Sprintf("path %s: %s is a %s, not a directory", r.dir, at, e.kind()),
				Hint: "name a directory of this repository"}
		}
		id = e.id
	}
	return id, nil
}

// noSuchDir names the directories that are where the missing one was looked for.
func (r *Repo) noSuchDir(o *objects, parent plumbing.Hash, missing string) error {
	entries, err := o.tree(parent)
	if err != nil {
		return err
	}
	var dirs []string
	for _, e := range entries {
		if e.isDir() && printable(e.name) {
			dirs = append(dirs, path.Join(path.Dir(missing), e.name))
		}
	}
	return &Error{Kind: ErrNotFound, Where: r.loc.display, Why: fmt.Sprintf("path %s: there is no %s in the branch", r.dir, missing),
		Hint: "the path is relative to the repository's root; directories there: " + some(dirs)}
}

// wantsSpec picks what Files reports.
func wantsSpec(e entry) bool {
	if e.kind() != Regular {
		return true
	}
	return strings.HasSuffix(e.name, ".yaml") || strings.HasSuffix(e.name, ".yml")
}
