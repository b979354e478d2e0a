// SPDX-License-Identifier: Apache-2.0

package gitsource

import (
	"maps"
	"slices"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
)

// node is a wanted change of one directory entry: either a file's content, or changes below a directory.
type node struct {
	isFile   bool
	data     []byte // nil deletes the file
	children map[string]*node
}

// plantChanges turns path → content into a tree of nodes, checking each path.
func plantChanges(changes map[string][]byte) (*node, error) {
	root := &node{children: map[string]*node{}}
	for _, path := range slices.Sorted(maps.Keys(changes)) {
		at := root
		parts := strings.Split(path, "/")
		for i, part := range parts {
			if why := badName(part); why != "" {
				return nil, badOption("can't commit a file at %q: %s", path, why)
			}
			next := at.children[part]
			if next == nil {
				next = &node{children: map[string]*node{}}
				at.children[part] = next
			}
			if next.isFile {
				return nil, badOption("can't commit a file at %q: %s is a file in the same commit", path, strings.Join(parts[:i+1], "/"))
			}
			at = next
		}
		if len(at.children) > 0 {
			return nil, badOption("can't commit a file at %q: it is a directory in the same commit", path)
		}
		at.isFile, at.data = true, changes[path]
	}
	return root, nil
}

// badName says why git fsck --strict or a checkout somewhere would refuse a name; "" when fine.
func badName(name string) string {
	folded := strings.ToLower(strings.TrimRight(name, " ."))
	switch {
	case name == "":
		return "a part of the path is empty"
	case folded == "":
		return "a part of the path consists of dots or spaces"
	case strings.HasPrefix(folded, ".git"), strings.HasPrefix(folded, "git~"):
		return "names that begin with .git belong to git"
	case strings.ContainsAny(name, `\:`), !printable(name):
		return "it has a backslash, colon or control character, or is not UTF-8"
	case len(name) > 255:
		return "a part of the path is longer than 255 bytes"
	}
	return ""
}

// editor builds the objects of one change on top of a snapshot.
type editor struct {
	snap  *snapshot
	owns  func(path string) bool // whether what stands in the way at a path is replaced
	fresh []plumbing.EncodedObject
}

// below tells the paths at and below a directory from others; "" is no directory, "." is the root.
func below(dir string) (func(path string) bool, error) {
	if dir == "" {
		return func(string) bool { return false }, nil
	}
	clean, err := cleanDir(dir)
	return func(path string) bool {
		return clean == "" || path == clean || strings.HasPrefix(path, clean+"/")
	}, err
}

// apply gives the id of the changed directory: the same id when nothing differs, zero when nothing is left in it.
func (ed *editor) apply(at string, id plumbing.Hash, want *node) (plumbing.Hash, error) {
	entries, err := ed.snap.objects.tree(id)
	if err != nil {
		return id, err
	}
	changed := false
	for _, name := range slices.Sorted(maps.Keys(want.children)) {
		child := want.children[name]
		path := strings.TrimPrefix(at+"/"+name, "/")
		i := slices.IndexFunc(entries, func(e entry) bool { return e.name == name })
		var old entry
		if i >= 0 {
			old = entries[i]
		}
		next, err := ed.entry(path, name, old, child)
		if err != nil {
			return id, err
		}
		switch {
		case next == old:
			continue
		case next.id.IsZero():
			entries = slices.Delete(entries, i, i+1)
		case i < 0:
			entries = append(entries, next)
		default:
			entries[i] = next
		}
		changed = true
	}
	if !changed {
		return id, nil
	}
	if len(entries) == 0 {
		return plumbing.ZeroHash, nil
	}
	return ed.add(plumbing.TreeObject, encodeTree(entries)), nil
}

// entry gives what an entry becomes; the zero entry means none.
func (ed *editor) entry(path, name string, old entry, want *node) (entry, error) {
	if want.isFile {
		return ed.file(path, name, old, want.data)
	}
	inside := old.id
	if !old.id.IsZero() && !old.isDir() {
		if !ed.owns(path) {
			return old, ed.snap.refuse(path, "is a "+old.kind().String()+" where a directory is needed")
		}
		inside = plumbing.ZeroHash
	}
	id, err := ed.apply(path, inside, want)
	switch {
	case err != nil || id == inside: // nothing is written below it, so it is in nobody's way
		return old, err
	case id.IsZero():
		return entry{}, nil
	}
	return entry{mode: modeDir, name: name, id: id}, nil
}

func (ed *editor) file(path, name string, old entry, data []byte) (entry, error) {
	isFile := old.kind() == Regular // or nothing
	switch {
	case !isFile && !ed.owns(path):
		return old, ed.snap.refuse(path, "is a "+old.kind().String()+" where a file is needed")
	case !isFile && data == nil:
		return old, nil // it is no file of ours, so it is not ours to remove
	case data == nil:
		return entry{}, nil
	case int64(len(data)) > ed.snap.limits.FileBytes:
		return old, ed.snap.tooLarge(path) // we could not read it again
	}
	next := entry{mode: modeRegular, name: name, id: plumbing.ComputeHash(plumbing.BlobObject, data)}
	if isFile && !old.id.IsZero() {
		next.mode = old.mode // an executable bit that somebody set is theirs
	}
	if next.id != old.id {
		ed.add(plumbing.BlobObject, data)
	}
	return next, nil
}

func (ed *editor) add(kind plumbing.ObjectType, data []byte) plumbing.Hash {
	object := newObject(kind, data)
	ed.fresh = append(ed.fresh, object)
	return object.Hash()
}
