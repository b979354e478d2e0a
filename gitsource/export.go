// SPDX-License-Identifier: Apache-2.0

package gitsource

import (
	"context"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
)

// Export writes the whole tree of one revision into a folder, as a checkout would, and gives the paths that it left out:
// submodules, files above Limits.FileBytes, and symlinks that lead out of the tree. Files are readable by nobody else.
// Nothing in the tree can make it write outside of the folder. ErrMoved is as in Files.
func (r *Repo) Export(ctx context.Context, revision Revision, folder string) (leftOut []string, err error) {
	root, err := os.OpenRoot(folder)
	if err != nil {
		return nil, fmt.Errorf("export: %w", err)
	}
	defer root.Close() //nolint:errcheck // a handle of a folder
	err = r.at(ctx, revision, func(o *objects, commit plumbing.Hash) error {
		top, err := o.root(commit)
		if err != nil {
			return err
		}
		x := &export{objects: o, root: root, limit: r.opts.Limits.FileBytes}
		walk := &walker{objects: o, limits: r.opts.Limits, wants: x.wants, take: x.write}
		err = walk.dir("", top, 0)
		leftOut = x.leftOut
		return err
	})
	return leftOut, err
}

type export struct {
	objects *objects
	root    *os.Root
	limit   int64
	// entry is the one that is walked: a File does not say mode and id.
	entry   entry
	leftOut []string
}

func (x *export) wants(e entry) bool {
	x.entry = e
	return true
}

func (x *export) write(f File) error {
	name := filepath.FromSlash(f.Path)
	if err := x.root.MkdirAll(filepath.Dir(name), 0o700); err != nil {
		return fmt.Errorf("export %s: %w", f.Path, err)
	}
	switch {
	case f.Kind == Symlink:
		return x.link(f.Path)
	case f.Kind != Regular || f.TooLarge:
		x.leftOut = append(x.leftOut, f.Path)
		return nil
	}
	mode := os.FileMode(0o600)
	if strings.HasSuffix(x.entry.mode, "755") {
		mode = 0o700
	}
	if err := x.root.WriteFile(name, f.Data, mode); err != nil {
		return fmt.Errorf("export %s: %w", f.Path, err)
	}
	return nil
}

// link makes a symlink whose target is in the tree. One that leads out would show the reader a file of this machine.
func (x *export) link(at string) error {
	target, tooLarge, err := x.objects.blob(x.entry.id, x.limit)
	if err != nil {
		return err
	}
	text := string(target)
	inside := path.Join(path.Dir(at), text)
	if tooLarge || text == "" || path.IsAbs(text) || inside == ".." || strings.HasPrefix(inside, "../") || strings.ContainsRune(text, 0) {
		x.leftOut = append(x.leftOut, at)
		return nil
	}
	if err := x.root.Symlink(filepath.FromSlash(text), filepath.FromSlash(at)); err != nil {
		return fmt.Errorf("export %s: %w", at, err)
	}
	return nil
}
