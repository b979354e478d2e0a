// SPDX-License-Identifier: Apache-2.0

package gitsource_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/theseus-gitops/theseus/gitsource"
)

func TestCommitCreatesAnOrphanBranch(t *testing.T) {
	o := seeded(t, map[string]string{"fleet.yaml": "x"})
	repo := o.open()
	req := request(set("clusters/a.yaml", "Ready"))
	req.Message = "status: a is ready\n\nLonger text.\n"
	req.Trailers = []gitsource.Trailer{{Key: "Cluster", Value: "a"}, {Key: "Roll", Value: "r-1"}}
	result := mustCommit(t, repo, req)

	wantEqual(t, "changed", result.Changed, true)
	wantEqual(t, "attempts", result.Attempts, 1)
	wantEqual(t, "head of the branch", o.git("rev-parse", "refs/heads/"+statusBranch), string(result.Revision))
	wantEqual(t, "commits", o.git("rev-list", "--count", statusBranch), "1")
	wantEqual(t, "files", o.git("ls-tree", "-r", "--name-only", statusBranch), "clusters/a.yaml")
	wantEqual(t, "content", o.git("show", statusBranch+":clusters/a.yaml"), "Ready")
	wantEqual(t, "message", o.git("log", "-1", "--format=%B", statusBranch), "status: a is ready\n\nLonger text.\n\nCluster: a\nRoll: r-1")
	wantEqual(t, "trailer", o.git("log", "-1", "--format=%(trailers:key=Roll,valueonly)", statusBranch), "r-1")
	wantEqual(t, "who and when", o.git("log", "-1", "--format=%an <%ae> %at %cn", statusBranch),
		fmt.Sprintf("Theseus <theseus@example.com> %d Theseus", time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC).Unix()))
	o.git("fsck", "--strict", "--no-dangling")
}

func TestCommitIntoAnEmptyRepository(t *testing.T) {
	o := newOrigin(t)
	result := mustCommit(t, o.open(), request(set("a", "1")))
	wantEqual(t, "head", o.git("rev-parse", statusBranch), string(result.Revision))
}

func TestCommitOfEqualContentsPushesNothing(t *testing.T) {
	o := seeded(t, map[string]string{"fleet.yaml": "x"})
	repo := o.open()
	first := mustCommit(t, repo, request(set("a", "1")))
	for name, repo := range map[string]*gitsource.Repo{"same process": repo, "new process": o.open()} {
		again := mustCommit(t, repo, request(set("a", "1")))
		wantEqual(t, name+": changed", again.Changed, false)
		wantEqual(t, name+": revision", again.Revision, first.Revision)
	}
	for name, change := range map[string]map[string][]byte{
		"no files": {}, "deleting what is not there": {"b": nil, "c/d": nil},
	} {
		result := mustCommit(t, repo, request(func(gitsource.Tree) (map[string][]byte, error) { return change, nil }))
		wantEqual(t, name+": changed", result.Changed, false)
	}
	wantEqual(t, "commits", o.git("rev-list", "--count", statusBranch), "1")

	other := request(func(gitsource.Tree) (map[string][]byte, error) { return nil, nil })
	other.Branch = "never"
	result := mustCommit(t, repo, other)
	wantEqual(t, "missing branch, no files", result, gitsource.CommitResult{Attempts: 1})
}

func TestCommitKeepsUnrelatedFiles(t *testing.T) {
	o := newOrigin(t)
	for _, name := range []string{"README.md", "a.b/x", "a/x", "a-b", "clusters/keep.yaml", "clusters/gone.yaml", "deep/er/gone"} {
		o.write(name, name)
	}
	runGit(t, o.work, "add", "-A")
	runGit(t, o.work, "update-index", "--chmod=+x", "README.md")
	runGit(t, o.work, "update-index", "--add", "--cacheinfo", "160000,"+strings.Repeat("1", 40)+",module")
	o.commitIndex()
	before := o.git("ls-tree", "-r", "main")

	req := request(func(gitsource.Tree) (map[string][]byte, error) {
		return map[string][]byte{
			"clusters/new.yaml": []byte("new"), "clusters/gone.yaml": nil, "deep/er/gone": nil, "README.md": []byte("ours"),
			"a0": []byte("sorts after a/"), "same": []byte("new"), "empty": {},
		}, nil
	})
	req.Branch = "main"
	mustCommit(t, o.open(), req)

	var want []string
	for line := range strings.Lines(before) {
		line = strings.TrimSpace(line)
		if !strings.Contains(line, "gone") && !strings.Contains(line, "README") {
			want = append(want, line)
		}
	}
	after := o.git("ls-tree", "-r", "main")
	for _, line := range want {
		if !strings.Contains(after, line) {
			t.Errorf("lost or changed: %s", line)
		}
	}
	wantEqual(t, "number of files", len(strings.Split(after, "\n")), len(want)+5)
	wantEqual(t, "README keeps its mode", strings.Contains(after, "100755 blob"), true)
	wantEqual(t, "emptied directories go", o.git("ls-tree", "--name-only", "main", "deep"), "")
	wantEqual(t, "parent", o.git("rev-parse", "main^"), runGit(t, o.work, "rev-parse", "HEAD"))
	o.git("fsck", "--strict", "--no-dangling")
}

func TestCommitDeletesTheLastFile(t *testing.T) {
	o := newOrigin(t)
	repo := o.open()
	mustCommit(t, repo, request(set("a/b", "1")))
	gone := func(gitsource.Tree) (map[string][]byte, error) { return map[string][]byte{"a/b": nil}, nil }
	wantEqual(t, "changed", mustCommit(t, repo, request(gone)).Changed, true)
	wantEqual(t, "changed again", mustCommit(t, repo, request(gone)).Changed, false)
	wantEqual(t, "refilled", mustCommit(t, o.open(), request(set("a/b", "2"))).Changed, true)
	o.git("fsck", "--strict", "--no-dangling")
}

func TestCommitRefusesBadPathsAndObstacles(t *testing.T) {
	o := newOrigin(t)
	repo := o.open()
	mustCommit(t, repo, request(set("dir/file", "x")))
	for _, path := range []string{"", "/abs", "a//b", "a/", "../x", "a/./b", ".git/config", "x/.GIT/hooks", ".gitmodules", "git~1", "a\\b", "a\nb", "a\xff", ".. "} {
		_, err := repo.Commit(t.Context(), request(set(path, "x")))
		if !errors.Is(err, gitsource.ErrConfig) {
			t.Errorf("%q: got %v, want ErrConfig", path, err)
		}
	}
	for _, path := range []string{"dir", "dir/file/x"} {
		_, err := repo.Commit(t.Context(), request(set(path, "x")))
		if !errors.Is(err, gitsource.ErrUnsupported) {
			t.Errorf("%q: got %v, want ErrUnsupported", path, err)
		}
	}
	_, err := repo.Commit(t.Context(), request(func(gitsource.Tree) (map[string][]byte, error) {
		return map[string][]byte{"n": []byte("x"), "n/m": []byte("x")}, nil
	}))
	wantSays(t, err, "in the same commit")
	_, err = repo.Commit(t.Context(), request(set("big", strings.Repeat("x", 1<<20+1))))
	if !errors.Is(err, gitsource.ErrLimit) {
		t.Errorf("big file: got %v, want ErrLimit", err)
	}
	wantEqual(t, "commits", o.git("rev-list", "--count", statusBranch), "1")
}

func TestChangeSeesThePresentTree(t *testing.T) {
	o := newOrigin(t)
	repo := o.open()
	mustCommit(t, repo, request(func(present gitsource.Tree) (map[string][]byte, error) {
		files, err := present.List("", "clusters")
		wantEqual(t, "files of a missing branch", len(files), 0)
		return map[string][]byte{"clusters/a": []byte("1"), "clusters/b": []byte("2"), "x": []byte("3")}, err
	}))
	mustCommit(t, repo, request(func(present gitsource.Tree) (map[string][]byte, error) {
		data, found, err := present.File("clusters/a")
		wantEqual(t, "a", fmt.Sprintf("%s %v %v", data, found, err), "1 true <nil>")
		_, found, err = present.File("clusters/none")
		wantEqual(t, "none", fmt.Sprint(found, err), "false <nil>")
		if _, _, err = present.File("clusters"); err == nil {
			t.Error("a directory was given as a file")
		}
		files, err := present.List("clusters")
		wantSlice(t, "in clusters", paths(files), []string{"clusters/a", "clusters/b"})
		return nil, err
	}))
	sentinel := errors.New("no")
	_, err := repo.Commit(t.Context(), request(func(gitsource.Tree) (map[string][]byte, error) { return nil, sentinel }))
	if !errors.Is(err, sentinel) {
		t.Errorf("the function's own error got lost: %v", err)
	}
}

func TestRead(t *testing.T) {
	o := newOrigin(t)
	repo := o.open()
	for _, branch := range []string{"", statusBranch} {
		files, found, err := repo.Read(t.Context(), branch, "")
		if err != nil || found || len(files) != 0 {
			t.Errorf("branch %q: got %v, %v, %v; want none", branch, files, found, err)
		}
	}
	mustCommit(t, o.open(), request(set("clusters/a.yaml", "1")))
	mustCommit(t, o.open(), request(set("README.md", "2")))
	files, found, err := repo.Read(t.Context(), statusBranch, "", "clusters")
	wantEqual(t, "found", fmt.Sprint(found, err), "true <nil>")
	wantSlice(t, "entries", paths(files), []string{"README.md", "clusters", "clusters/a.yaml"})
	wantEqual(t, "content", string(files[2].Data), "1")
}

func TestStatusCommitsDoNotMoveTheSpecBranch(t *testing.T) {
	o := seeded(t, map[string]string{"fleet.yaml": "x"})
	repo := o.open()
	before, err := repo.Head(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	mustCommit(t, repo, request(set("a", "1")))
	after, err := repo.Head(t.Context())
	wantEqual(t, "head", fmt.Sprint(after, err), fmt.Sprint(before, nil))
}

// row adds one row to a shared file: the shape of our README, where a lost update would show.
func row(name string) func(gitsource.Tree) (map[string][]byte, error) {
	return func(present gitsource.Tree) (map[string][]byte, error) {
		data, _, err := present.File("rows")
		if strings.Contains(string(data), name+"\n") {
			return nil, err
		}
		return map[string][]byte{"rows": append(data, name+"\n"...)}, err
	}
}

func TestCommitAfterALostRace(t *testing.T) {
	for name, first := range map[string]bool{"branch exists": false, "branch is created by both": true} {
		t.Run(name, func(t *testing.T) {
			o := seeded(t, map[string]string{"fleet.yaml": "x"})
			if !first {
				mustCommit(t, o.open(), request(row("zero")))
			}
			runs := 0
			result := mustCommit(t, o.open(), request(func(present gitsource.Tree) (map[string][]byte, error) {
				if runs++; runs == 1 {
					mustCommit(t, o.open(), request(row("theirs")))
				}
				return row("ours")(present)
			}))
			wantEqual(t, "runs", runs, 2)
			wantEqual(t, "attempts", result.Attempts, 2)
			rows := o.git("show", statusBranch+":rows")
			wantEqual(t, "rows", strings.TrimPrefix(rows, "zero\n"), "theirs\nours")
			wantEqual(t, "merges", o.git("rev-list", "--count", "--min-parents=2", statusBranch), "0")
			wantEqual(t, "roots", o.git("rev-list", "--count", "--max-parents=0", statusBranch), "1")
			o.git("fsck", "--strict", "--no-dangling")
		})
	}
}

// The branch moves between the server's advertisement and its update, so the server itself refuses.
func TestCommitRefusedByCompareAndSet(t *testing.T) {
	o := newOrigin(t)
	mustCommit(t, o.open(), request(row("zero")))
	tree := o.git("rev-parse", statusBranch+"^{tree}")
	o.hook("pre-receive", `[ -e raced ] && exit 0; touch raced; unset GIT_QUARANTINE_PATH
new=$(GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@b GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@b \
  GIT_OBJECT_DIRECTORY=objects git commit-tree -m theirs -p refs/heads/theseus/status `+tree+`)
git update-ref refs/heads/theseus/status $new`)
	result := mustCommit(t, o.open(), request(row("ours")))
	wantEqual(t, "attempts", result.Attempts, 2)
	wantEqual(t, "history", o.git("log", "--format=%s", statusBranch), "status\ntheirs\nstatus")
}

func TestEightWritersAllLand(t *testing.T) {
	o := seeded(t, map[string]string{"fleet.yaml": "x"})
	var wg sync.WaitGroup
	for writer := range 8 {
		repo := o.open(func(op *gitsource.Options) {
			op.Retry = gitsource.Retry{Attempts: 200, Min: 20 * time.Millisecond, Max: 500 * time.Millisecond}
			op.Jitter = rand.New(rand.NewPCG(1, uint64(writer))).Float64 // spreads waits
		})
		wg.Go(func() {
			for i := range 5 {
				name := fmt.Sprintf("writer %d commit %d", writer, i)
				if _, err := repo.Commit(t.Context(), request(row(name))); err != nil {
					t.Errorf("%s: %v", name, err)
				}
			}
		})
	}
	wg.Wait()
	rows := strings.Split(o.git("show", statusBranch+":rows"), "\n")
	wantEqual(t, "rows", len(rows), 40)
	wantEqual(t, "commits", o.git("rev-list", "--count", statusBranch), strconv.Itoa(40))
	wantEqual(t, "merges", o.git("rev-list", "--count", "--min-parents=2", statusBranch), "0")
	o.git("fsck", "--strict", "--no-dangling")
}

func TestOneRepoIsSafeForConcurrentUse(t *testing.T) {
	o := seeded(t, map[string]string{"fleet.yaml": "x"})
	repo := o.open()
	var wg sync.WaitGroup
	for i := range 4 {
		wg.Go(func() {
			result, err := repo.Commit(t.Context(), request(row(fmt.Sprint(i))))
			if err != nil || result.Attempts != 1 {
				t.Errorf("got %+v, %v; want no race inside one process", result, err)
			}
		})
		wg.Go(func() { headFiles(t, repo) })
	}
	wg.Wait()
	wantEqual(t, "commits", o.git("rev-list", "--count", statusBranch), "4")
}

func TestProtectedBranchIsNotRetried(t *testing.T) {
	for _, hook := range []string{"pre-receive", "update"} {
		t.Run(hook, func(t *testing.T) {
			o := seeded(t, map[string]string{"fleet.yaml": "x"})
			o.hook(hook, `cat >/dev/null; echo >> called; printf '\033[31mGH006: protected branch, see https://bot:s3cret@host/x\n' >&2; exit 1`)
			runs := 0
			result, err := o.open().Commit(t.Context(), request(func(gitsource.Tree) (map[string][]byte, error) {
				runs++
				return map[string][]byte{"a": []byte("1")}, nil
			}))
			var refused *gitsource.PushRefusedError
			if !errors.As(err, &refused) {
				t.Fatalf("got %v, want *PushRefusedError", err)
			}
			wantEqual(t, "branch", refused.Branch, statusBranch)
			wantEqual(t, "runs and attempts", fmt.Sprint(runs, result.Attempts), "1 1")
			wantSays(t, err, "protected branch", statusBranch, "https://host/x")
			if strings.Contains(err.Error(), "s3cret") || strings.Contains(err.Error(), "\x1b") {
				t.Errorf("the words are not scrubbed: %q", err)
			}
		})
	}
}

func TestCommitGivesUpAfterAllTries(t *testing.T) {
	o := newOrigin(t)
	n := 0
	result, err := o.open(func(op *gitsource.Options) { op.Retry.Attempts = 3 }).Commit(t.Context(),
		request(func(gitsource.Tree) (map[string][]byte, error) {
			n++
			mustCommit(t, o.open(), request(set("a", strconv.Itoa(n))))
			return map[string][]byte{"b": []byte("x")}, nil
		}))
	if !errors.Is(err, gitsource.ErrMoved) {
		t.Errorf("got %v, want ErrMoved", err)
	}
	wantEqual(t, "attempts", result.Attempts, 3)
}

func TestCommitValidatesItsRequest(t *testing.T) {
	repo := newOrigin(t).open()
	for name, change := range map[string]func(*gitsource.CommitRequest){
		"no branch":       func(r *gitsource.CommitRequest) { r.Branch = "" },
		"bad branch":      func(r *gitsource.CommitRequest) { r.Branch = "a..b" },
		"no message":      func(r *gitsource.CommitRequest) { r.Message = " \n" },
		"trailer newline": func(r *gitsource.CommitRequest) { r.Trailers = []gitsource.Trailer{{Key: "A", Value: "b\nC: d"}} },
		"trailer key":     func(r *gitsource.CommitRequest) { r.Trailers = []gitsource.Trailer{{Key: "A b", Value: "c"}} },
	} {
		req := request(set("a", "1"))
		change(&req)
		if _, err := repo.Commit(t.Context(), req); !errors.Is(err, gitsource.ErrConfig) {
			t.Errorf("%s: got %v, want ErrConfig", name, err)
		}
	}
}
