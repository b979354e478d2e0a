// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"strings"

	"github.com/theseus-gitops/theseus/gitsource"
	"github.com/theseus-gitops/theseus/reconcile"
	"github.com/theseus-gitops/theseus/reconcile/spec"
	"github.com/theseus-gitops/theseus/reconcile/status"
)

// repository is the fleet repository behind the ports that package reconcile asks for.
type repository struct {
	*gitsource.Repo
	// path is the spec path; hasSecret tells that credentials were given.
	path      string
	hasSecret bool
	// stop, when it is closed, ends a read of the specs: nothing has begun then that would have to be finished.
	stop <-chan struct{}
	// warn tells what is surprising about what is read; nil tells nobody.
	warn func(format string, args ...any)
	// tip is what Head has found.
	tip gitsource.Tip
}

var (
	_ reconcile.Source       = (*repository)(nil)
	_ reconcile.StatusBranch = (*repository)(nil)
)

// open opens the repository that the flags name.
func (f *fleetFlags) open(ctx context.Context, secrets secretSource) (*repository, error) {
	if f.repo == "" {
		return nil, usage("--repo is missing: name the fleet repository, for example --repo https://git.example.com/fleet.git or --repo ./fleet")
	}
	// The caller's mistake, and no trouble of any cluster.
	if info, err := os.Stat(f.secrets); f.secrets != "" && (err != nil || !info.IsDir()) {
		return nil, usage("--secrets %s: there is no such folder; it holds secrets as DIR/NAME/KEY", f.secrets)
	}
	options := gitsource.Options{URL: f.repo, Branch: f.branch, Path: f.path, AllowInsecureHTTP: f.insecureHTTP}
	if f.repoSecret != "" {
		data, err := secrets.all(ctx, "", f.repoSecret)
		var missing *secretError
		if errors.As(err, &missing) {
			return nil, usage("--repo-secret: %w", err)
		}
		if err != nil {
			return nil, fmt.Errorf("--repo-secret: %w", err)
		}
		if options.Auth, err = gitsource.AuthFromSecret(f.repo, data); err != nil {
			return nil, usage("--repo-secret %s: %w", f.repoSecret, err)
		}
	}
	repo, err := gitsource.Open(options)
	if err != nil {
		return nil, usage("--repo: %w", err)
	}
	return &repository{Repo: repo, path: strings.Trim(path.Clean("/"+f.path), "/"), hasSecret: f.repoSecret != ""}, nil
}

// explain makes an error of usage of what no other try will mend: no such repository, branch or path, or no credentials.
func (r *repository) explain(err error) error {
	anonymous := errors.Is(err, gitsource.ErrAuth) && !r.hasSecret
	if anonymous || errors.Is(err, gitsource.ErrNotFound) || errors.Is(err, gitsource.ErrConfig) {
		return &exitError{code: exitUsage, err: err}
	}
	return err
}

// Head implements reconcile.Source.
func (r *repository) Head(ctx context.Context) (string, error) {
	ctx, cancel := until(ctx, r.stop)
	defer cancel()
	tip, err := r.Tip(ctx)
	if err != nil {
		return "", r.explain(err)
	}
	r.tip = tip
	if tip.Default && r.warn != nil {
		r.warnUncommitted(ctx)
	}
	return string(tip.Revision), nil
}

// Newest implements reconcile.Source.
func (r *repository) Newest(ctx context.Context) (string, error) {
	ctx, cancel := until(ctx, r.stop)
	defer cancel()
	tip, err := r.Tip(ctx)
	if err != nil {
		return "", r.explain(err)
	}
	return string(tip.Revision), nil
}

// warnUncommitted names the edits in a working copy that are not read. That they can't be asked for is no reason to stop.
func (r *repository) warnUncommitted(ctx context.Context) {
	if files, err := r.Uncommitted(ctx); err == nil && len(files) > 0 {
		r.warn("uncommitted edits are not read: %s: commit them first (`theseus validate` reads the folder as it is)", some(files))
	}
}

// origin says what was read.
func (r *repository) origin() origin {
	return origin{repo: r.URL(), path: r.path, branch: r.tip.Branch, commit: string(r.tip.Revision)}
}

// export writes the whole commit into a folder, for programs that need files.
func (r *repository) export(ctx context.Context, revision, folder string) error {
	leftOut, err := r.Export(ctx, gitsource.Revision(revision), folder)
	if err != nil {
		return r.explain(err)
	}
	if len(leftOut) > 0 && r.warn != nil {
		r.warn("left out of the module's files: %s (submodules, large files, symlinks that lead out of the repository)", some(leftOut))
	}
	return nil
}

// Files implements reconcile.Source.
func (r *repository) Files(ctx context.Context, revision string) ([]spec.File, error) {
	ctx, cancel := until(ctx, r.stop)
	defer cancel()
	files, err := r.Repo.Files(ctx, gitsource.Revision(revision))
	if err != nil {
		return nil, r.explain(err)
	}
	out := make([]spec.File, 0, len(files))
	for _, f := range files {
		out = append(out, spec.File{Path: f.Path, Data: f.Data, Kind: kindOf(f)})
	}
	return out, nil
}

func kindOf(f gitsource.File) spec.FileKind {
	switch f.Kind {
	case gitsource.Symlink:
		return spec.Symlink
	case gitsource.Submodule:
		return spec.Submodule
	case gitsource.Regular, gitsource.Directory: // directories are never among the files
	}
	if f.TooLarge {
		return spec.TooLarge
	}
	return spec.Regular
}

// Read implements reconcile.StatusBranch.
func (r repository) Read(ctx context.Context, branch, prefix string) (status.Tree, error) {
	entries, found, err := r.Repo.Read(ctx, branch, status.Folders(prefix)...)
	if err != nil {
		return status.Tree{}, err
	}
	tree := treeOf(entries)
	tree.NoBranch = !found
	return tree, nil
}

func treeOf(entries []gitsource.File) status.Tree {
	tree := status.Tree{Files: map[string][]byte{}, Other: map[string]status.Thing{}}
	for _, e := range entries {
		switch e.Kind {
		case gitsource.Directory:
			tree.Other[e.Path] = status.Directory
		case gitsource.Symlink:
			tree.Other[e.Path] = status.Symlink
		case gitsource.Submodule:
			tree.Other[e.Path] = status.Submodule
		case gitsource.Regular:
			if e.TooLarge {
				tree.Other[e.Path] = status.TooLarge
			} else {
				tree.Files[e.Path] = e.Data
			}
		}
	}
	return tree
}

// Commit implements reconcile.StatusBranch.
func (r *repository) Commit(ctx context.Context, c reconcile.Commit) error {
	_, err := r.Repo.Commit(ctx, gitsource.CommitRequest{
		Branch: c.Branch, Message: c.Message, Owned: c.Prefix,
		Change: func(present gitsource.Tree) (map[string][]byte, error) {
			entries, err := present.List(status.Folders(c.Prefix)...)
			if err != nil {
				return nil, err
			}
			return c.Change(treeOf(entries))
		},
	})
	var refused *gitsource.PushRefusedError
	if errors.As(err, &refused) {
		return refusedPush{err}
	}
	return err
}

// refusedPush is reconcile.ErrPushRefused in the repository's own words.
type refusedPush struct{ error }

// Unwrap gives both.
func (e refusedPush) Unwrap() []error { return []error{reconcile.ErrPushRefused, e.error} }
