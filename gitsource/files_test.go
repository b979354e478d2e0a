// SPDX-License-Identifier: Apache-2.0

package gitsource_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/theseus-gitops/theseus/gitsource"
)

func TestFilesReadsOnlyYAMLBelowPath(t *testing.T) {
	o := seeded(t, map[string]string{
		"README.md": "no", "other/x.yaml": "no", "fleet/fleet.yaml": "kind: Fleet", "fleet/eu/a.yml": "kind: Cluster",
		"fleet/main.tf": "no", "fleet/a.yaml": "a", "fleet/a/b.yaml": "b",
	})
	for _, path := range []string{"fleet", "/fleet/", "./fleet"} {
		files := headFiles(t, o.open(func(op *gitsource.Options) { op.Path = path }))
		wantSlice(t, "paths of "+path, paths(files), []string{"a.yaml", "a/b.yaml", "eu/a.yml", "fleet.yaml"})
		wantEqual(t, "content", string(files[3].Data), "kind: Fleet")
	}
	all := headFiles(t, o.open())
	wantEqual(t, "files at the root", len(all), 5)
}

func TestHeadFollowsTheBranchAndDefaultBranch(t *testing.T) {
	o := seeded(t, map[string]string{"fleet.yaml": "1"})
	repo := o.open(func(op *gitsource.Options) { op.Branch = "" })
	second := o.commit(map[string]string{"fleet.yaml": "2"})
	head, err := repo.Head(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	wantEqual(t, "head", string(head), second)
	tip, err := repo.Tip(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	wantEqual(t, "tip", tip, gitsource.Tip{Branch: "main", Default: true, Revision: head})
	o.git("branch", "other")
	tip, err = o.open(func(op *gitsource.Options) { op.Branch = "other" }).Tip(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	wantEqual(t, "tip of another branch", tip, gitsource.Tip{Branch: "other", Revision: head})
}

func TestMissingBranchNamesAtMostTen(t *testing.T) {
	o := seeded(t, map[string]string{"fleet.yaml": "1"})
	for i := range 11 {
		o.git("branch", fmt.Sprintf("b%02d", i))
	}
	_, err := o.open(func(op *gitsource.Options) { op.Branch = "prod" }).Head(t.Context())
	wantSays(t, err, "no branch prod", "b00, b01, b02, b03, b04, b05, b06, b07, b08, b09 and 2 more")
}

func TestFilesNamesSymlinksAndSubmodules(t *testing.T) {
	o := newOrigin(t)
	o.write("fleet/fleet.yaml", "x")
	if err := os.Symlink("/etc/passwd", filepath.Join(o.work, "fleet", "link.yaml")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("..", filepath.Join(o.work, "fleet", "up")); err != nil {
		t.Fatal(err)
	}
	runGit(t, o.work, "add", "-A")
	runGit(t, o.work, "update-index", "--add", "--cacheinfo", "160000,"+strings.Repeat("1", 40)+",fleet/module")
	o.commitIndex()

	var got []string
	for _, f := range headFiles(t, o.open(func(op *gitsource.Options) { op.Path = "fleet" })) {
		got = append(got, fmt.Sprintf("%s %s %d", f.Kind, f.Path, len(f.Data)))
	}
	wantSlice(t, "entries", got, []string{"file fleet.yaml 1", "symlink link.yaml 0", "submodule module 0", "symlink up 0"})

	for _, path := range []string{"fleet/up", "fleet/module", "fleet/fleet.yaml"} {
		repo := o.open(func(op *gitsource.Options) { op.Path = path })
		head, _ := repo.Head(t.Context())
		_, err := repo.Files(t.Context(), head)
		if !errors.Is(err, gitsource.ErrConfig) {
			t.Errorf("path %s: got %v, want ErrConfig", path, err)
		}
		wantSays(t, err, "not a directory")
	}
}

func TestFilesMarksBigFiles(t *testing.T) {
	for _, filter := range []string{"false", "true"} {
		t.Run("server filters "+filter, func(t *testing.T) {
			o := seeded(t, map[string]string{
				"fits.yaml": strings.Repeat("x", 1<<20), "big.yaml": strings.Repeat("y", 1<<20+1), "big.bin": strings.Repeat("z", 1<<21),
			})
			o.git("config", "uploadpack.allowFilter", filter)
			files := headFiles(t, o.open())
			wantSlice(t, "paths", paths(files), []string{"big.yaml", "fits.yaml"})
			wantEqual(t, "big.yaml too large", files[0].TooLarge && files[0].Data == nil, true)
			wantEqual(t, "fits.yaml", len(files[1].Data), 1<<20)
		})
	}
}

func TestFilesTakesOddNames(t *testing.T) {
	names := []string{" space .yaml", "-dash.yaml", "quote'\".yaml", "ünïcode-日本.yaml", "a/b c/d.yaml", "~.yml"}
	contents := map[string]string{"line\nbreak.txt": "ignored", "odd\x01dir/readme": "ignored"}
	for _, name := range names {
		contents[name] = name
	}
	o := seeded(t, contents)
	got := map[string]string{}
	for _, f := range headFiles(t, o.open()) {
		got[f.Path] = string(f.Data)
	}
	for _, name := range names {
		wantEqual(t, fmt.Sprintf("content of %q", name), got[name], name)
	}
	wantEqual(t, "count", len(got), len(names))
}

func TestFilesRefusesNamesThatCannotBeShown(t *testing.T) {
	for _, name := range []string{"red\x1b[31m.yaml", "line\nbreak.yaml", "latin\xe9.yaml", "rtl\u202e.yaml"} {
		o := seeded(t, map[string]string{name: "x"})
		repo := o.open()
		head, _ := repo.Head(t.Context())
		_, err := repo.Files(t.Context(), head)
		if !errors.Is(err, gitsource.ErrUnsupported) {
			t.Errorf("%q: got %v, want ErrUnsupported", name, err)
		}
		if err != nil && (strings.ContainsAny(err.Error(), "\x1b\n\u202e") || strings.Contains(err.Error(), "\xe9")) {
			t.Errorf("%q: the message repeats the raw name: %q", name, err)
		}
	}
}

func TestFilesLimits(t *testing.T) {
	o := seeded(t, map[string]string{
		"1.yaml": "x", "2.yaml": "x", "3.yaml": "x", strings.Repeat("d/", 10) + "deep.yaml": "x",
		"noise.yaml": strings.Repeat("0123456789abcdef", 1<<12),
	})
	for name, limit := range map[string]gitsource.Limits{
		"files": {Files: 3}, "depth": {Depth: 9}, "bytes unpacked": {RepoBytes: 60_000}, "bytes sent": {RepoBytes: 300},
	} {
		repo := o.open(func(op *gitsource.Options) { op.Limits = limit })
		head, err := repo.Head(t.Context())
		if err == nil {
			_, err = repo.Files(t.Context(), head)
		}
		if !errors.Is(err, gitsource.ErrLimit) {
			t.Errorf("%s: got %v, want ErrLimit", name, err)
		}
	}
	ok := headFiles(t, o.open(func(op *gitsource.Options) { op.Limits = gitsource.Limits{Files: 5, Depth: 10} }))
	wantEqual(t, "files at the limits", len(ok), 5)
}

// A few hundred bytes of trees that each name the next one ten times stand for 10^30 paths.
func TestFilesEndsOnATreeBomb(t *testing.T) {
	o := newOrigin(t)
	blob := runGitInput(t, o.bare, "x", "hash-object", "-w", "--stdin")
	id, kind, mode := blob, "blob", "100644"
	for range 30 {
		var tree strings.Builder
		for i := range 10 {
			fmt.Fprintf(&tree, "%s %s %s\tn%d\n", mode, kind, id, i)
		}
		id, kind, mode = runGitInput(t, o.bare, tree.String(), "mktree"), "tree", "040000"
	}
	commit := o.git("commit-tree", "-m", "bomb", id)
	o.git("update-ref", "refs/heads/main", commit)
	repo := o.open(func(op *gitsource.Options) { op.Limits.Files = 100 })
	if _, err := repo.Files(t.Context(), gitsource.Revision(commit)); !errors.Is(err, gitsource.ErrLimit) {
		t.Errorf("got %v, want ErrLimit", err)
	}
}

func TestFilesReadsDeltas(t *testing.T) {
	base := strings.Repeat("a line that repeats and packs well\n", 2000)
	o := newOrigin(t)
	for i := range 5 {
		o.commit(map[string]string{fmt.Sprintf("f%d.yaml", i): base + fmt.Sprint(i)})
	}
	o.git("repack", "-adfq", "--depth=10", "--window=10")
	for i, f := range headFiles(t, o.open()) {
		wantEqual(t, f.Path+" intact", string(f.Data), base+fmt.Sprint(i))
	}
}

func TestNotFound(t *testing.T) {
	full := seeded(t, map[string]string{"a.yaml": "x"})
	empty := newOrigin(t)
	for name, c := range map[string]struct {
		repo *gitsource.Repo
		says []string
	}{
		"empty repository": {empty.open(), []string{"is empty", "push a first commit"}},
		"missing branch":   {full.open(func(o *gitsource.Options) { o.Branch = "release" }), []string{"no branch release", "there are: main"}},
		"missing repository": {full.open(func(o *gitsource.Options) { o.URL += "-not" }),
			[]string{"no such directory"}},
		"not a repository": {full.open(func(o *gitsource.Options) { o.URL = full.work + "/.git/hooks" }),
			[]string{"without listing a repository", "does not appear to be a git repository"}},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := c.repo.Head(t.Context())
			if !errors.Is(err, gitsource.ErrNotFound) {
				t.Errorf("got %v, want ErrNotFound", err)
			}
			wantSays(t, err, c.says...)
		})
	}
	t.Run("missing path", func(t *testing.T) {
		repo := full.open(func(o *gitsource.Options) { o.Path = "fleets/eu" })
		head, _ := repo.Head(t.Context())
		_, err := repo.Files(t.Context(), head)
		if !errors.Is(err, gitsource.ErrNotFound) {
			t.Errorf("got %v, want ErrNotFound", err)
		}
		wantSays(t, err, "path fleets/eu", "no fleets in the branch", "directories there: none")
		other := seeded(t, map[string]string{"fleets/us/a.yaml": "x", "fleets/asia/a.yaml": "x", "fleets/b.yaml": "x"})
		repo = other.open(func(o *gitsource.Options) { o.Path = "fleets/eu" })
		head, _ = repo.Head(t.Context())
		_, err = repo.Files(t.Context(), head)
		wantSays(t, err, "no fleets/eu in the branch", "directories there: fleets/asia, fleets/us")
	})
}

func TestFilesOfAnOldRevision(t *testing.T) {
	o := seeded(t, map[string]string{"a.yaml": "1"})
	repo := o.open()
	old, err := repo.Head(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	o.commit(map[string]string{"a.yaml": "2"})
	if _, err := repo.Files(t.Context(), old); !errors.Is(err, gitsource.ErrMoved) {
		t.Errorf("server gives heads only: got %v, want ErrMoved", err)
	}
	o.git("config", "uploadpack.allowReachableSHA1InWant", "true")
	files, err := repo.Files(t.Context(), old)
	if err != nil || string(files[0].Data) != "1" {
		t.Errorf("server gives old commits: got %v, %v", files, err)
	}
}

func TestSHA256RepositoryIsNamed(t *testing.T) {
	o := newOrigin(t, "--object-format=sha256")
	o.commit(map[string]string{"a.yaml": "x"})
	_, err := o.open().Head(t.Context())
	if !errors.Is(err, gitsource.ErrUnsupported) {
		t.Errorf("got %v, want ErrUnsupported", err)
	}
	wantSays(t, err, "SHA-256")
}
