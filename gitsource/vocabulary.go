// SPDX-License-Identifier: Apache-2.0

package gitsource

// Revision is the full hexadecimal id of a commit.
type Revision string

// Kind says what a tree entry is, as far as a reader of specs must know.
type Kind int

const (
	// Regular is a file with content.
	Regular Kind = iota
	// Symlink is a symbolic link. It is named, never followed, and has no Data.
	Symlink
	// Submodule is a commit of another repository. It is named, never fetched, and has no Data.
	Submodule
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
	}
	return "unknown"
}

// File is one entry under Options.Path.
type File struct {
	Path     string // relative to Options.Path, with slashes
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
	// Files gives all regular files at or below prefix, by full path; "" is all of them.
	Files(prefix string) (map[string][]byte, error)
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
