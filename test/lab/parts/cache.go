// SPDX-License-Identifier: Apache-2.0

// Package parts builds what the lab's machines are made of (Kubernetes, etcd,
// CoreDNS, CNI plugins, images, Debian) from Go modules and Debian packages alone.
// It starts no cluster: see package cluster. Start at All in versions.go, then Cache.Get.
package parts

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"
)

// CacheEnv names the environment variable that moves the cache folder.
const CacheEnv = "THESEUS_LAB_CACHE"

const recordFile = ".part.json"

// Cache is the folder of built parts. Several processes may use one at a time.
type Cache struct {
	root     string
	source   string
	progress *progress

	mu      sync.Mutex
	reports []Report
}

// Report tells how one part was come by.
type Report struct {
	Part   string
	Cached bool
	// Took is the time to build, without the parts that it needed; zero when cached.
	Took time.Duration
}

// record is what a part's folder says of itself.
type record struct {
	Name    string        `json:"name"`
	Version string        `json:"version"`
	BuiltAt time.Time     `json:"builtAt"`
	Took    time.Duration `json:"took"`
}

// DefaultRoot is $THESEUS_LAB_CACHE, or theseus-lab in the user's cache folder.
func DefaultRoot() (string, error) {
	if dir := os.Getenv(CacheEnv); dir != "" {
		return filepath.Abs(dir)
	}
	dir, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("cache folder: %w: set %s", err, CacheEnv)
	}
	return filepath.Join(dir, "theseus-lab"), nil
}

// Open opens the cache in the folder root, which is made if missing. Source is
// the lab's module folder (see FindSource); lines on progress go to out.
func Open(root, source string, out io.Writer) (*Cache, error) {
	for _, dir := range []string{"tmp", "locks"} {
		if err := os.MkdirAll(filepath.Join(root, dir), 0o755); err != nil {
			return nil, fmt.Errorf("cache: %w", err)
		}
	}
	return &Cache{root: root, source: source, progress: newProgress(out, 30*time.Second)}, nil
}

// Root is the cache's folder.
func (c *Cache) Root() string { return c.root }

// Get returns the folder of p, building it first if it is missing or no longer
// usable. A second process that asks for the same part waits for the first.
func (c *Cache) Get(ctx context.Context, p Part) (string, error) {
	key, err := p.key(c.source)
	if err != nil {
		return "", fmt.Errorf("part %s: %w", p, err)
	}
	dir := filepath.Join(c.root, key)
	if c.usable(ctx, p, dir) {
		c.report(Report{Part: p.String(), Cached: true})
		return dir, nil
	}
	needs := map[string]string{} // folders by key
	for _, need := range p.Needs {
		dir, err := c.Get(ctx, need)
		if err != nil {
			return "", fmt.Errorf("part %s needs %w", p, err)
		}
		needs[filepath.Base(dir)] = dir
	}
	unlock, err := c.lock(ctx, p, key)
	if err != nil {
		return "", fmt.Errorf("part %s: %w", p, err)
	}
	defer unlock()
	if c.usable(ctx, p, dir) { // built by another while we waited
		c.report(Report{Part: p.String(), Cached: true})
		return dir, nil
	}
	took, err := c.build(ctx, p, key, needs)
	if err != nil {
		return "", fmt.Errorf("part %s: %w", p, err)
	}
	c.report(Report{Part: p.String(), Took: took})
	return dir, nil
}

// Cached returns the folder of p if it is there already.
func (c *Cache) Cached(ctx context.Context, p Part) (dir string, ok bool, err error) {
	key, err := p.key(c.source)
	if err != nil {
		return "", false, fmt.Errorf("part %s: %w", p, err)
	}
	dir = filepath.Join(c.root, key)
	return dir, c.usable(ctx, p, dir), nil
}

// Reports lists the parts asked for since Open, in the order they were ready.
func (c *Cache) Reports() []Report {
	c.mu.Lock()
	defer c.mu.Unlock()
	return append([]Report(nil), c.reports...)
}

func (c *Cache) report(r Report) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, old := range c.reports {
		if old.Part == r.Part {
			return
		}
	}
	c.reports = append(c.reports, r)
}

// usable tells whether dir holds p. Only whole folders bear the key's name; the
// part itself may add a check of what lies outside (an image in Docker).
func (c *Cache) usable(ctx context.Context, p Part, dir string) bool {
	if _, err := os.Stat(filepath.Join(dir, recordFile)); err != nil {
		return false
	}
	return p.Usable == nil || p.Usable(ctx, dir)
}

// build makes the part in a folder of another name and renames it when it is
// whole, so that a kill at any moment leaves nothing that looks finished. The
// caller holds the part's lock.
func (c *Cache) build(ctx context.Context, p Part, key string, needs map[string]string) (took time.Duration, err error) {
	if err := c.sweep(key); err != nil {
		return 0, err
	}
	tmp, err := os.MkdirTemp(filepath.Join(c.root, "tmp"), key+".")
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(tmp)) }()
	if err := os.Chmod(tmp, 0o755); err != nil {
		return 0, err
	}

	done := c.progress.start(p.String(), p.Expect)
	err = p.Build(ctx, &Job{part: p, needs: needs, Dir: tmp, Source: c.source, Key: key})
	took = done(err)
	if err != nil {
		return 0, err
	}
	r := record{Name: p.Name, Version: p.Version, BuiltAt: time.Now().UTC(), Took: took}
	if err := writeJSON(filepath.Join(tmp, recordFile), r); err != nil {
		return 0, err
	}
	dir := filepath.Join(c.root, key)
	if err := os.RemoveAll(dir); err != nil { // present, but no longer usable
		return 0, err
	}
	return took, os.Rename(tmp, dir)
}

// sweep removes what killed builds of this key left behind.
func (c *Cache) sweep(key string) error {
	left, err := filepath.Glob(filepath.Join(c.root, "tmp", key+".*"))
	if err != nil {
		return err
	}
	for _, dir := range left {
		if err := os.RemoveAll(dir); err != nil {
			return err
		}
	}
	return nil
}

// Entry is one built part in the cache, for list.
type Entry struct {
	Key     string
	Name    string
	Version string
	Bytes   int64
	BuiltAt time.Time
	Took    time.Duration
}

// List reads what the cache holds, of this recipe and of older ones.
func (c *Cache) List() ([]Entry, error) {
	found, err := filepath.Glob(filepath.Join(c.root, "*", recordFile))
	if err != nil {
		return nil, err
	}
	var entries []Entry
	for _, file := range found {
		data, err := os.ReadFile(file)
		if err != nil {
			return nil, fmt.Errorf("cache: %w", err)
		}
		var r record
		if err := json.Unmarshal(data, &r); err != nil {
			return nil, fmt.Errorf("cache: %s: %w: remove its folder", file, err)
		}
		dir := filepath.Dir(file)
		if link, err := os.Lstat(dir); err != nil || link.Mode()&fs.ModeSymlink != 0 {
			continue // the stable name of a part that is listed by its own
		}
		size, err := folderSize(dir)
		if err != nil {
			return nil, fmt.Errorf("cache: %w", err)
		}
		entries = append(entries, Entry{
			Key: filepath.Base(dir), Name: r.Name, Version: r.Version,
			Bytes: size, BuiltAt: r.BuiltAt, Took: r.Took,
		})
	}
	return entries, nil
}

func folderSize(dir string) (int64, error) {
	var total int64
	err := filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		total += info.Size()
		return nil
	})
	return total, err
}

func writeJSON(path string, v any) error {
	data, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(path, append(data, '\n'), 0o644)
}

// FindSource finds the lab's module folder from dir upwards: dir is inside it,
// or inside the repository that holds it.
func FindSource(dir string) (string, error) {
	const module = "module github.com/theseus-gitops/theseus/test/lab\n"
	abs, err := filepath.Abs(dir)
	if err != nil {
		return "", err
	}
	for at := abs; ; at = filepath.Dir(at) {
		for _, candidate := range []string{at, filepath.Join(at, "test", "lab")} {
			data, err := os.ReadFile(filepath.Join(candidate, "go.mod"))
			if err == nil && strings.Contains(string(data), module) {
				return candidate, nil
			}
		}
		if at == filepath.Dir(at) {
			return "", fmt.Errorf("lab sources: no test/lab in %s or above: run inside the repository", abs)
		}
	}
}
