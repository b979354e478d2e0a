// SPDX-License-Identifier: Apache-2.0

package status

import (
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
)

// Tree is what the status branch holds directly in each of Folders, by path from the repository's root.
type Tree struct {
	// Files are the files that can be read.
	Files map[string][]byte
	// Other is everything else.
	Other map[string]Thing
	// NoBranch says that there is no such branch yet.
	NoBranch bool
}

// Thing is what something on the branch is that is no file to read.
type Thing int

const (
	// Directory is a folder. It is in the way only where a document or the page belongs.
	Directory Thing = iota
	// Symlink is a symbolic link; none is ever followed.
	Symlink
	// Submodule is a commit of another repository.
	Submodule
	// TooLarge is a file that is larger than what is read.
	TooLarge
)

// String is what a thing is, "a symlink".
func (t Thing) String() string {
	switch t {
	case Directory:
		return "a directory"
	case Symlink:
		return "a symlink"
	case Submodule:
		return "a submodule"
	case TooLarge:
		return "a file too large to be read"
	}
	return "something unknown"
}

// Folders are those of the branch that a Tree must list when status is kept in folder dir.
func Folders(dir string) []string { return []string{dir, path.Join(dir, "clusters")} }

// inTheWay names what stands where a file, or a folder that it is in, belongs: "status/clusters (a symlink)".
func (t Tree) inTheWay(file string) []string {
	out := t.NoFolders(path.Dir(file))
	if thing, odd := t.Other[file]; odd {
		out = append(out, fmt.Sprintf("%s (%s)", file, thing))
	}
	return out
}

// NoFolders names what stands where a folder, or one that it is in, belongs and is no folder.
func (t Tree) NoFolders(dir string) []string {
	var out []string
	for at := dir; at != "." && at != "/"; at = path.Dir(at) {
		if thing, odd := t.Other[at]; odd && thing != Directory {
			out = append(out, fmt.Sprintf("%s (%s)", at, thing))
		}
		if _, isFile := t.Files[at]; isFile {
			out = append(out, at+" (a file)")
		}
	}
	return out
}

// Found is what stands where the document of a cluster belongs: the document, or what is wrong with it.
type Found struct {
	Cluster  string
	Document *Document // nil when Damage is set
	Damage   string
}

// Documents finds the documents in folder dir of status, by cluster. What is no file at all counts as one, a damaged one,
// when it stands in the place of a known cluster's; otherwise it is somebody else's.
func Documents(t Tree, dir string, known func(cluster string) bool) []Found {
	var out []Found
	for _, file := range slices.Sorted(maps.Keys(t.Files)) {
		if name, ok := clusterOf(file, dir); ok {
			out = append(out, read(name, t.Files[file]))
		}
	}
	for _, file := range slices.Sorted(maps.Keys(t.Other)) {
		thing := t.Other[file]
		if name, ok := clusterOf(file, dir); ok && (thing == TooLarge || known(name)) {
			out = append(out, Found{Cluster: name, Damage: "it is " + thing.String()})
		}
	}
	slices.SortFunc(out, func(a, b Found) int { return strings.Compare(a.Cluster, b.Cluster) })
	return out
}

func read(name string, data []byte) Found {
	doc, err := Parse(data)
	switch {
	case err != nil:
		return Found{Cluster: name, Damage: line(err.Error())}
	case doc.Metadata.Name != name:
		return Found{Cluster: name, Damage: line(fmt.Sprintf("it is about cluster %q", doc.Metadata.Name))}
	}
	return Found{Cluster: name, Document: doc}
}

// clusterOf is the cluster whose document belongs at a path.
func clusterOf(file, dir string) (name string, ok bool) {
	base, isYAML := strings.CutSuffix(path.Base(file), ".yaml")
	name = unescapeName(base)
	return name, isYAML && path.Dir(file) == path.Join(dir, "clusters") && escapeName(name) == base && name != ""
}
