// SPDX-License-Identifier: Apache-2.0

package parts_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/theseus-gitops/theseus/test/lab/parts"
)

func openCache(t *testing.T, root, source string) *parts.Cache {
	t.Helper()
	cache, err := parts.Open(root, source, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	return cache
}

// hello is a part that writes one file, and counts how often it was built.
func hello(builds *atomic.Int32) parts.Part {
	return parts.Part{
		Name: "hello", Version: "v1", Recipe: []string{"loud"},
		Build: func(_ context.Context, job *parts.Job) error {
			builds.Add(1)
			return os.WriteFile(filepath.Join(job.Dir, "hello"), []byte("hello"), 0o644)
		},
	}
}

func mustGet(t *testing.T, cache *parts.Cache, p parts.Part) string {
	t.Helper()
	dir, err := cache.Get(t.Context(), p)
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

func TestGetBuildsOnce(t *testing.T) {
	root := t.TempDir()
	var builds atomic.Int32
	first := mustGet(t, openCache(t, root, ""), hello(&builds))
	second := mustGet(t, openCache(t, root, ""), hello(&builds))
	if first != second || builds.Load() != 1 {
		t.Errorf("built %d times, into %s and %s; want once, into one", builds.Load(), first, second)
	}
	if data, err := os.ReadFile(filepath.Join(first, "hello")); err != nil || string(data) != "hello" {
		t.Errorf("content %q, %v", data, err)
	}
}

// The folder's name changes with all that decides what is in it, and with nothing else.
func TestKeyFollowsTheRecipe(t *testing.T) {
	source := t.TempDir()
	write(t, filepath.Join(source, "a.mod"), "require x v1")
	write(t, filepath.Join(source, "b.mod"), "require x v2")
	base := func() parts.Part {
		var builds atomic.Int32
		p := hello(&builds)
		p.Files = []string{"a.mod"}
		p.Needs = []parts.Part{{Name: "need", Version: "v1", Build: p.Build}}
		return p
	}
	for name, test := range map[string]struct {
		change func(*parts.Part)
		moved  bool
	}{
		"nothing":         {func(*parts.Part) {}, false},
		"told duration":   {func(p *parts.Part) { p.Expect = "long" }, false},
		"name":            {func(p *parts.Part) { p.Name = "bye" }, true},
		"version":         {func(p *parts.Part) { p.Version = "v2" }, true},
		"flag":            {func(p *parts.Part) { p.Recipe = []string{"quiet"} }, true},
		"flag split":      {func(p *parts.Part) { p.Recipe = []string{"lo", "ud"} }, true},
		"another file":    {func(p *parts.Part) { p.Files = []string{"b.mod"} }, true},
		"need's version":  {func(p *parts.Part) { p.Needs[0].Version = "v2" }, true},
		"need's recipe":   {func(p *parts.Part) { p.Needs[0].Recipe = []string{"x"} }, true},
		"file's content":  {func(*parts.Part) { write(t, filepath.Join(source, "a.mod"), "require x v9") }, true},
		"more files than": {func(p *parts.Part) { p.Files = []string{"*.mod"} }, true},
	} {
		t.Run(name, func(t *testing.T) {
			write(t, filepath.Join(source, "a.mod"), "require x v1")
			cache := openCache(t, t.TempDir(), source)
			before := mustGet(t, cache, base())
			p := base()
			test.change(&p)
			if after := mustGet(t, cache, p); (after != before) != test.moved {
				t.Errorf("before %s, after %s; want moved: %v", before, after, test.moved)
			}
		})
	}
}

func TestMissingRecipeFileIsNamed(t *testing.T) {
	var builds atomic.Int32
	p := hello(&builds)
	p.Files = []string{"parts/hello/v9.mod"}
	_, err := openCache(t, t.TempDir(), t.TempDir()).Get(t.Context(), p)
	if err == nil || !strings.Contains(err.Error(), "parts/hello/v9.mod") {
		t.Errorf("error %v does not name the file", err)
	}
}

// A failed build leaves nothing: neither the part's folder nor a temporary one.
func TestFailedBuildLeavesNothing(t *testing.T) {
	root := t.TempDir()
	cause := errors.New("out of flour")
	var builds atomic.Int32
	p := hello(&builds)
	fill := p.Build
	p.Build = func(ctx context.Context, job *parts.Job) error { return errors.Join(fill(ctx, job), cause) }
	if _, err := openCache(t, root, "").Get(t.Context(), p); !errors.Is(err, cause) {
		t.Fatalf("error %v, want its cause", err)
	}
	if left := names(t, root); left != "locks tmp" {
		t.Errorf("left in the cache: %s", left)
	}
	if left := names(t, filepath.Join(root, "tmp")); left != "" {
		t.Errorf("left in tmp: %s", left)
	}
	p.Build = fill
	mustGet(t, openCache(t, root, ""), p)
}

// While it is built a part has no name, and what a killed build left is swept.
func TestNameAppearsWhenWhole(t *testing.T) {
	root := t.TempDir()
	var builds atomic.Int32
	p := hello(&builds)
	fill := p.Build
	p.Build = func(ctx context.Context, job *parts.Job) error {
		if _, err := os.Stat(filepath.Join(root, job.Key)); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("the part's folder is there before the build has ended: %v", err)
		}
		return fill(ctx, job)
	}
	key := filepath.Base(mustGet(t, openCache(t, t.TempDir(), ""), hello(&builds)))
	killed := filepath.Join(root, "tmp", key+".123")
	other := filepath.Join(root, "tmp", "bye-v1-0123456789ab.123")
	for _, dir := range []string{killed, other} {
		if err := os.MkdirAll(filepath.Join(dir, "half"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	mustGet(t, openCache(t, root, ""), p)
	if left := names(t, filepath.Join(root, "tmp")); left != "bye-v1-0123456789ab.123" {
		t.Errorf("left in tmp: %q, want only the other part's, which may be at work", left)
	}
}

// Many that ask at once, as processes with caches of their own, build once.
func TestOnlyOneBuilds(t *testing.T) {
	root := t.TempDir()
	var builds, running atomic.Int32
	p := hello(&builds)
	fill := p.Build
	p.Build = func(ctx context.Context, job *parts.Job) error {
		if running.Add(1) != 1 {
			t.Error("two builds at once")
		}
		defer running.Add(-1)
		return fill(ctx, job)
	}
	var group sync.WaitGroup
	for range 8 {
		cache := openCache(t, root, "")
		group.Go(func() {
			if _, err := cache.Get(t.Context(), p); err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
	if builds.Load() != 1 {
		t.Errorf("built %d times", builds.Load())
	}
}

// One who waits for another's build tells so, and stops when told.
func TestWaitEndsWithContext(t *testing.T) {
	root := t.TempDir()
	var builds atomic.Int32
	started, release := make(chan struct{}), make(chan struct{})
	slow := hello(&builds)
	fill := slow.Build
	slow.Build = func(ctx context.Context, job *parts.Job) error {
		close(started)
		<-release
		return fill(ctx, job)
	}
	cache := openCache(t, root, "")
	var group sync.WaitGroup
	group.Go(func() {
		if _, err := cache.Get(t.Context(), slow); err != nil {
			t.Error(err)
		}
	})
	<-started

	var said bytes.Buffer
	waiting, err := parts.Open(root, "", &said)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := waiting.Get(ctx, hello(&builds)); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v, want that the context ended", err)
	}
	if !strings.Contains(said.String(), "another process builds it") {
		t.Errorf("said %q", said.String())
	}
	close(release)
	group.Wait()
}

// A part whose outside half is gone (an image removed from Docker) is built again.
func TestUnusablePartIsRebuilt(t *testing.T) {
	root := t.TempDir()
	var builds atomic.Int32
	p := hello(&builds)
	p.Usable = func(_ context.Context, dir string) bool {
		_, err := os.Stat(filepath.Join(dir, "hello"))
		return err == nil
	}
	dir := mustGet(t, openCache(t, root, ""), p)
	if err := os.Remove(filepath.Join(dir, "hello")); err != nil {
		t.Fatal(err)
	}
	mustGet(t, openCache(t, root, ""), p)
	if builds.Load() != 2 {
		t.Errorf("built %d times, want 2", builds.Load())
	}
}

// A part can't use what its hash does not cover.
func TestUndeclaredNeedIsRefused(t *testing.T) {
	var builds atomic.Int32
	need := hello(&builds)
	p := parts.Part{Name: "user", Build: func(_ context.Context, job *parts.Job) error {
		_, err := job.Need(need)
		return err
	}}
	cache := openCache(t, t.TempDir(), "")
	if _, err := cache.Get(t.Context(), p); err == nil || builds.Load() != 0 {
		t.Errorf("error %v after %d builds, want a refusal", err, builds.Load())
	}
	p.Needs = []parts.Part{need}
	mustGet(t, cache, p)
}

func TestListAndEnvtestLink(t *testing.T) {
	root := t.TempDir()
	var builds atomic.Int32
	cache := openCache(t, root, "")
	dir := mustGet(t, cache, hello(&builds))
	for range 2 { // a second time replaces the first
		if err := cache.LinkEnvtest(dir); err != nil {
			t.Fatal(err)
		}
	}
	if to, err := os.Readlink(filepath.Join(root, parts.EnvtestLink)); err != nil || to != filepath.Base(dir) {
		t.Errorf("link to %q, %v", to, err)
	}
	entries, err := cache.List()
	if err != nil || len(entries) != 1 {
		t.Fatalf("entries %v, %v; want one", entries, err)
	}
	if e := entries[0]; e.Name != "hello" || e.Version != "v1" || e.Bytes < int64(len("hello")) || e.BuiltAt.IsZero() {
		t.Errorf("entry %+v", e)
	}
}

func TestFindSource(t *testing.T) {
	repository := t.TempDir()
	lab := filepath.Join(repository, "test", "lab")
	inside := filepath.Join(lab, "cluster")
	if err := os.MkdirAll(inside, 0o755); err != nil {
		t.Fatal(err)
	}
	if dir, err := parts.FindSource(inside); err == nil {
		t.Errorf("found %s without a go.mod", dir)
	}
	write(t, filepath.Join(lab, "go.mod"), "module github.com/theseus-gitops/theseus/test/lab\n")
	for _, from := range []string{repository, lab, inside} {
		if dir, err := parts.FindSource(from); err != nil || dir != lab {
			t.Errorf("from %s: %s, %v", from, dir, err)
		}
	}
}

func write(t *testing.T, path, content string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
}

func names(t *testing.T, dir string) string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, e := range entries {
		all = append(all, e.Name())
	}
	return strings.Join(all, " ")
}
