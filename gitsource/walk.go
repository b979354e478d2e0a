// SPDX-License-Identifier: Apache-2.0

package gitsource

import (
	"fmt"
	"path"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/go-git/go-git/v5/plumbing"
)

// walker reads the wanted non-directories below a tree, in the order of their paths, within limits.
type walker struct {
	objects *objects
	limits  Limits
	flat    bool // directories are taken by name, not entered
	wants   func(entry) bool
	take    func(File) error

	files   int
	entries int
	loaded  int64
}

// entriesPerFile bounds all entries of all directories by a multiple of Limits.Files. Few bytes of nested trees that
// repeat each other can stand for a number of paths that no walk ends.
const entriesPerFile = 50

func (w *walker) dir(at string, id plumbing.Hash, depth int) error {
	if depth > w.limits.Depth {
		return w.tooMuch(fmt.Sprintf("directory %s is nested deeper than %d", shortPath(at), w.limits.Depth), "flatten the directories")
	}
	entries, err := w.objects.tree(id)
	if err != nil {
		return err
	}
	if w.entries += len(entries); w.entries > entriesPerFile*w.limits.Files {
		return w.tooMuch(fmt.Sprintf("more than %d directory entries", entriesPerFile*w.limits.Files), "point the path at the fleet's own directory")
	}
	for _, e := range entries {
		below := path.Join(at, e.name)
		if e.isDir() && !w.flat {
			err = w.dir(below, e.id, depth+1)
		} else if w.wants(e) {
			err = w.file(below, e)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (w *walker) file(at string, e entry) error {
	if w.files++; w.files > w.limits.Files {
		return w.tooMuch(fmt.Sprintf("more than %d files", w.limits.Files), "point the path at the fleet's own directory")
	}
	if !printable(at) {
		return &Error{Kind: ErrUnsupported, Where: w.objects.where, Why: fmt.Sprintf("the name %q has control characters or is not UTF-8", at),
			Hint: "rename it; such a name can't be shown safely"}
	}
	f := File{Path: at, Kind: e.kind()}
	if f.Kind == Regular {
		var err error
		if f.Data, f.TooLarge, err = w.objects.blob(e.id, w.limits.FileBytes); err != nil {
			return err
		}
		// Many paths can share one blob, so the bound on what was fetched doesn't bound this.
		if w.loaded += int64(len(f.Data)); w.loaded > w.limits.RepoBytes {
			return w.tooMuch(fmt.Sprintf("the files hold more than %d bytes", w.limits.RepoBytes), "point the path at the fleet's own directory")
		}
	}
	return w.take(f)
}

func (w *walker) tooMuch(why, hint string) error {
	return &Error{Kind: ErrLimit, Where: w.objects.where, Why: why, Hint: hint}
}

// printable says whether a path can go into messages and documents as it is.
func printable(at string) bool {
	return utf8.ValidString(at) && !strings.ContainsFunc(at, func(r rune) bool { return unicode.IsControl(r) || unicode.Is(unicode.Cf, r) })
}

// shortPath keeps a deep path readable in a message.
func shortPath(at string) string {
	const keep = 120
	if len(at) > keep {
		at = at[:keep] + "…"
	}
	return fmt.Sprintf("%q", at)
}
