// SPDX-License-Identifier: Apache-2.0

package gitsource

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/storage/memory"
)

// objects are what one fetch brought. Not safe for concurrent use.
type objects struct {
	store    *memory.Storage
	filtered bool   // blobs above the limit were left at the server
	where    string // for messages
}

// Entry modes as trees write them. Others (100664, 100755) are regular files too.
const (
	modeDir       = "40000"
	modeRegular   = "100644"
	modeSymlink   = "120000"
	modeSubmodule = "160000"
)

// entry is one line of a tree. Modes stay as written, so that rebuilding a tree changes nothing else in it, which
// go-git's own codec doesn't promise: it turns 100664 into 100644.
type entry struct {
	mode string
	name string
	id   plumbing.Hash
}

func (e entry) isDir() bool { return strings.TrimLeft(e.mode, "0") == modeDir }

func (e entry) kind() Kind {
	switch {
	case e.isDir():
		return Directory
	case e.mode == modeSymlink:
		return Symlink
	case e.mode == modeSubmodule:
		return Submodule
	}
	return Regular
}

// sortKey is git's order: directories compare as name + "/" (gitformat-index, base_name_compare).
func (e entry) sortKey() string {
	if e.isDir() {
		return e.name + "/"
	}
	return e.name
}

func (o *objects) broken(format string, args ...any) error {
	return &Error{Kind: ErrUnsupported, Where: o.where, Why: fmt.Sprintf(format, args...), Hint: "run git fsck on the repository"}
}

func (o *objects) content(kind plumbing.ObjectType, id plumbing.Hash) ([]byte, error) {
	object, err := o.store.EncodedObject(kind, id)
	if err != nil {
		return nil, err
	}
	reader, err := object.Reader()
	if err != nil {
		return nil, err
	}
	defer reader.Close() //nolint:errcheck // memory
	return io.ReadAll(reader)
}

// root gives the tree of a commit.
func (o *objects) root(commit plumbing.Hash) (plumbing.Hash, error) {
	data, err := o.content(plumbing.CommitObject, commit)
	if err != nil {
		return plumbing.ZeroHash, o.broken("the server did not send commit %s", commit)
	}
	line, _, _ := strings.Cut(string(data), "\n")
	id, ok := strings.CutPrefix(line, "tree ")
	if !ok || !plumbing.IsHash(id) {
		return plumbing.ZeroHash, o.broken("commit %s names no tree", commit)
	}
	return plumbing.NewHash(id), nil
}

// tree gives a directory's entries; the zero id is an empty one.
func (o *objects) tree(id plumbing.Hash) ([]entry, error) {
	if id.IsZero() {
		return nil, nil
	}
	data, err := o.content(plumbing.TreeObject, id)
	if err != nil {
		return nil, o.broken("tree %s is missing", id)
	}
	var entries []entry
	for len(data) > 0 {
		header, rest, found := bytes.Cut(data, []byte{0})
		mode, name, spaced := strings.Cut(string(header), " ")
		if !found || !spaced || len(rest) < len(plumbing.ZeroHash) {
			return nil, o.broken("tree %s is malformed", id)
		}
		if name == "" || name == "." || name == ".." || strings.Contains(name, "/") {
			return nil, o.broken("tree %s has an entry named %q", id, name)
		}
		e := entry{mode: mode, name: name}
		copy(e.id[:], rest)
		entries = append(entries, e)
		data = rest[len(e.id):]
	}
	return entries, nil
}

// blob gives a file's content, or true when it is larger than limit.
func (o *objects) blob(id plumbing.Hash, limit int64) ([]byte, bool, error) {
	size, err := o.store.EncodedObjectSize(id)
	if errors.Is(err, plumbing.ErrObjectNotFound) && o.filtered {
		return nil, true, nil
	}
	if err != nil {
		return nil, false, o.broken("blob %s is missing", id)
	}
	if size > limit {
		return nil, true, nil
	}
	data, err := o.content(plumbing.BlobObject, id)
	if err != nil {
		return nil, false, o.broken("object %s is no blob", id)
	}
	return data, false, nil
}

// find looks a path up; false when there is none. The root is a directory entry without name.
func (o *objects) find(root plumbing.Hash, path string) (entry, bool, error) {
	e, at, found, err := o.reach(root, path)
	return e, found && at == path, err
}

// reach follows a path as far as it leads: to its end, or to the first entry on it that is no directory. False when a
// part of it is missing.
func (o *objects) reach(root plumbing.Hash, path string) (e entry, at string, found bool, err error) {
	e = entry{mode: modeDir, id: root}
	for at != path && e.isDir() {
		name, _, _ := strings.Cut(strings.TrimPrefix(path[len(at):], "/"), "/")
		entries, err := o.tree(e.id)
		if err != nil {
			return entry{}, at, false, err
		}
		i := slices.IndexFunc(entries, func(e entry) bool { return e.name == name })
		if i < 0 {
			return entry{}, at, false, nil
		}
		e, at = entries[i], strings.TrimPrefix(at+"/"+name, "/")
	}
	return e, at, true, nil
}

// newObject makes an object that is not in any store yet.
func newObject(kind plumbing.ObjectType, data []byte) *plumbing.MemoryObject {
	object := &plumbing.MemoryObject{}
	object.SetType(kind)
	object.SetSize(int64(len(data)))
	_, _ = object.Write(data) // memory; never fails
	return object
}

// encodeTree writes entries in git's order.
func encodeTree(entries []entry) []byte {
	entries = slices.Clone(entries)
	slices.SortFunc(entries, func(a, b entry) int { return strings.Compare(a.sortKey(), b.sortKey()) })
	var b bytes.Buffer
	for _, e := range entries {
		b.WriteString(e.mode + " " + e.name + "\x00")
		b.Write(e.id[:])
	}
	return b.Bytes()
}
