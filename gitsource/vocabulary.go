// SPDX-License-Identifier: Apache-2.0

package gitsource

// Revision is the full hexadecimal id of a commit.
type Revision string

// Tip is the newest commit of the branch that holds the specs.
type Tip struct {
	// Branch is the branch's name.
	Branch string
	// Default tells that it is the repository's default branch; in a working copy, the one that is checked out.
	Default  bool
	Revision Revision
}

// Kind says what a tree entry is, as far as a reader of specs must know.
type Kind int

const (
	// Regular is a file with content.
	Regular Kind = iota
	// Symlink is a symbolic link. It is named, never followed, and has no Data.
	Symlink
	// Submodule is a commit of another repository. It is named, never fetched, and has no Data.
	Submodule
	// Directory is named where one directory alone is listed, and has no Data.
	Directory
)

// String gives the word used in messages.
func (k Kind) String() string {
	switch k {
	case Regular:
		return "file"
	case Symlink:
		return "symlink"
	case Submodule:
		return "submodule"
	case Directory:
		return "directory"
	}
	return "unknown"
}

// File is one entry of a tree.
type File struct {
	Path     string // with slashes, relative to Options.Path (Repo.Files) or to the repository's root (Tree.List, Repo.Read)
	Data     []byte // content; nil when Kind is not Regular or TooLarge is set
	Kind     Kind
	TooLarge bool // the content is larger than Limits.FileBytes and was not read
}

// Trailer is one "Key: value" line at the end of a commit message.
type Trailer struct {
	Key   string
	Value string
}

// Tree is what a branch holds at the moment a change is computed. Paths are relative to the repository's root.
// It is valid only inside the Change function that received it.
type Tree interface {
	// File gives the content of one file; false when there is none.
	// A path that is not a regular file, and a file above Limits.FileBytes, are errors.
	File(path string) ([]byte, bool, error)
	// List gives what stands directly in each of these directories, sorted by path; "" is the root. Regular files come
	// with their content, everything else by name. A directory that does not exist gives nothing; one that can't be
	// reached, because something on the way to it is no directory, gives that. Names that can't be shown are left out.
	List(dirs ...string) ([]File, error)
}

// CommitRequest asks for one commit on one branch.
type CommitRequest struct {
	// Branch receives the commit. A missing branch is created without a parent.
	Branch string
	// Message is the subject and body. Trailers follow it after an empty line.
	Message  string
	Trailers []Trailer
	// Change maps the branch's present files to new contents: path → content, nil content deletes the file.
	// Files that are not in the map stay as they are. It must depend on present only and have no effect, because it
	// runs again after a lost race, and after a push whose answer was lost. It must not call Repo.Commit or Repo.Read.
	Change func(present Tree) (map[string][]byte, error)
	// Owned is a directory that is all ours, "." for the root. At and below it, whatever stands where one of our files or
	// their directories belongs is replaced. Elsewhere, and everywhere when it is "", that is an error.
	Owned string
}

// CommitResult says what became of a CommitRequest.
type CommitResult struct {
	// Revision is the new commit, or the branch's head when nothing changed ("" when there is no such branch).
	Revision Revision
	// Changed is false when the branch already held these contents; nothing was pushed then.
	Changed bool
	// Attempts is how often Change ran.
	Attempts int
}
