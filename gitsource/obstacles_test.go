// SPDX-License-Identifier: Apache-2.0

package gitsource_test

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/theseus-gitops/theseus/gitsource"
)

const (
	aFile      = "100644"
	aProgram   = "100755"
	aSymlink   = "120000"
	aSubmodule = "160000"
	aBigFile   = "big" // a regular file above the limit
)

// stand puts entries on the status branch, by path and mode, whatever git's commands think of them.
func (o *origin) stand(entries map[string]string) {
	o.t.Helper()
	file := runGitInput(o.t, o.work, "what is there", "hash-object", "-w", "--stdin")
	var index strings.Builder
	for path, mode := range entries {
		id := file
		switch mode {
		case aSubmodule:
			id = strings.Repeat("1", 40)
		case aBigFile:
			mode, id = aFile, runGitInput(o.t, o.work, strings.Repeat("x", 1<<20+1), "hash-object", "-w", "--stdin")
		}
		fmt.Fprintf(&index, "%s %s\t%s\x00", mode, id, path)
	}
	runGit(o.t, o.work, "read-tree", "--empty")
	runGitInput(o.t, o.work, index.String(), "update-index", "-z", "--index-info")
	commit := runGit(o.t, o.work, "commit-tree", "-m", "stand", runGit(o.t, o.work, "write-tree"))
	runGit(o.t, o.work, "push", "-q", "-f", "origin", commit+":refs/heads/"+statusBranch)
}

func ours(change func(gitsource.Tree) (map[string][]byte, error)) gitsource.CommitRequest {
	req := request(change)
	req.Owned = "status"
	return req
}

func TestWhatStandsInTheWayIsReplaced(t *testing.T) {
	const document = "status/clusters/a.yaml"
	for name, way := range map[string]map[string]string{
		"a directory":           {document + "/x": aFile, document + "/y/z": aSymlink},
		"a symlink":             {document: aSymlink},
		"a submodule":           {document: aSubmodule},
		"a file too large":      {document: aBigFile},
		"folder is a file":      {"status/clusters": aProgram},
		"folder is a symlink":   {"status/clusters": aSymlink},
		"folder is a submodule": {"status/clusters": aSubmodule},
		"folder is a big file":  {"status/clusters": aBigFile},
		"status is a file":      {"status": aFile},
		"status is a symlink":   {"status": aSymlink},
		"status is a submodule": {"status": aSubmodule},
		"nothing":               {},
	} {
		t.Run(name, func(t *testing.T) { replaces(t, document, way) })
	}
}

// replaces commits a document where something stands in its way, on a server that keeps big files to itself.
func replaces(t *testing.T, document string, way map[string]string) {
	t.Helper()
	o := newOrigin(t)
	o.git("config", "uploadpack.allowFilter", "true")
	// What is not ours: it stays, as far as the way leaves room for it.
	others := map[string]string{"README.md": aProgram, "link": aSymlink, "module": aSubmodule, "status.yaml": aFile}
	if _, taken := way["status"]; !taken {
		maps.Copy(others, map[string]string{"status/notes.txt": aFile, "status/huge": aBigFile, "status/link": aSymlink, "status/clusterse": aSubmodule})
		if _, taken := way["status/clusters"]; !taken {
			maps.Copy(others, map[string]string{"status/clusters/other.yaml/x": aFile, "status/clusters/big.yaml": aBigFile, "status/clusters/b.yaml": aFile})
		}
	}
	all := maps.Clone(others)
	maps.Copy(all, way)
	o.stand(all)
	before := o.git("ls-tree", "-r", statusBranch)

	repo := o.open()
	wantEqual(t, "attempts", mustCommit(t, repo, ours(set(document, "ours"))).Attempts, 1)
	wantEqual(t, "content", o.git("show", statusBranch+":"+document), "ours")
	after := o.git("ls-tree", "-r", statusBranch)
	for line := range strings.Lines(before) {
		line = strings.TrimSpace(line)
		if _, path, _ := strings.Cut(line, "\t"); others[path] != "" && !strings.Contains(after, line) {
			t.Errorf("lost or changed: %s", line)
		}
	}
	wantEqual(t, "files beside ours", strings.Count(after, "\n"), len(others))
	wantEqual(t, "our mode", strings.Fields(o.git("ls-tree", statusBranch, document))[0], aFile)
	o.git("fsck", "--strict", "--no-dangling")
	wantEqual(t, "changed again", mustCommit(t, repo, ours(set(document, "ours"))).Changed, false)
}

func TestWhatIsNotOursIsNotReplaced(t *testing.T) {
	o := newOrigin(t)
	o.stand(map[string]string{"docs": aSymlink, "a/b": aSubmodule, "statuses": aFile})
	for _, tc := range []struct{ owned, path, says string }{
		{"docs/status", "docs/status/README.md", "docs is a symlink where a directory is needed"},
		{"a/b/c", "a/b/c/README.md", "a/b is a submodule where a directory is needed"},
		{"status", "statuses/README.md", "statuses is a file where a directory is needed"},
		{"", "docs", "docs is a symlink where a file is needed"},
	} {
		req := request(set(tc.path, "ours"))
		req.Owned = tc.owned
		_, err := o.open().Commit(t.Context(), req)
		if !errors.Is(err, gitsource.ErrUnsupported) {
			t.Errorf("%s: got %v, want ErrUnsupported", tc.path, err)
		}
		wantSays(t, err, tc.says, "choose another path")
	}
	req := request(set("docs", "ours"))
	req.Owned = "../x"
	if _, err := o.open().Commit(t.Context(), req); !errors.Is(err, gitsource.ErrConfig) {
		t.Errorf("got %v, want ErrConfig", err)
	}
	req.Owned = "."
	wantEqual(t, "the whole branch is ours", mustCommit(t, o.open(), req).Changed, true)
}

// To remove a file that is none is no change: what stands there was not made by us.
func TestRemovingTakesFilesOnly(t *testing.T) {
	for name, entries := range map[string]map[string]string{
		"directory": {"status/clusters/a.yaml/x": aFile}, "symlink": {"status/clusters/a.yaml": aSymlink},
		"submodule": {"status/clusters/a.yaml": aSubmodule}, "folder": {"status/clusters": aSymlink}, "root": {"status": aFile},
	} {
		o := newOrigin(t)
		o.stand(entries)
		gone := ours(func(gitsource.Tree) (map[string][]byte, error) {
			return map[string][]byte{"status/clusters/a.yaml": nil}, nil
		})
		wantEqual(t, name+": changed", mustCommit(t, o.open(), gone).Changed, false)
	}
	o := newOrigin(t)
	o.stand(map[string]string{"status/clusters/a.yaml": aBigFile, "x": aFile})
	mustCommit(t, o.open(), ours(func(gitsource.Tree) (map[string][]byte, error) {
		return map[string][]byte{"status/clusters/a.yaml": nil}, nil
	}))
	wantEqual(t, "a big file is a file", o.git("ls-tree", "-r", "--name-only", statusBranch), "x")
}

func TestListNamesWhatStandsThere(t *testing.T) {
	o := newOrigin(t)
	entries := map[string]string{
		"README.md": aFile, "status/README.md": aFile, "status/link": aSymlink, "status/module": aSubmodule, "status/big": aBigFile,
		"status/clusters/a.yaml": aProgram, "status/clusters/b.yaml/deep/er": aFile, "status/clusters/red\x1b[31m.yaml": aFile, "way": aSymlink,
	}
	for i := range 40 { // more than the limit below, but not where we look
		entries[fmt.Sprintf("status/clusters/b.yaml/%d", i)] = aFile
	}
	o.stand(entries)
	repo := o.open(func(op *gitsource.Options) { op.Limits.Files = 20 })
	for dirs, want := range map[string][]string{
		"status,status/clusters": {
			"file status/README.md 13", "file status/big too large", "directory status/clusters 0", "file status/clusters/a.yaml 13",
			"directory status/clusters/b.yaml 0", "symlink status/link 0", "submodule status/module 0",
		},
		".":           {"file README.md 13", "directory status 0", "symlink way 0"},
		"way/a,way/b": {"symlink way 0"}, "README.md/x": {"file README.md 13"}, "none,status/none": nil,
	} {
		files, found, err := repo.Read(t.Context(), statusBranch, strings.Split(dirs, ",")...)
		if err != nil || !found {
			t.Fatalf("%s: found %v, %v", dirs, found, err)
		}
		var got []string
		for _, f := range files {
			size := fmt.Sprint(len(f.Data))
			if f.TooLarge {
				size = "too large"
			}
			got = append(got, fmt.Sprintf("%s %s %s", f.Kind, f.Path, size))
		}
		slices.Sort(got)
		slices.Sort(want)
		wantSlice(t, dirs, got, want)
	}
	if _, _, err := repo.Read(t.Context(), statusBranch, "../x"); !errors.Is(err, gitsource.ErrConfig) {
		t.Errorf("got %v, want ErrConfig", err)
	}
}
