// SPDX-License-Identifier: Apache-2.0

package etcd_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/theseus-gitops/theseus/executors/etcd"
	"github.com/theseus-gitops/theseus/reconcile/live"
)

// A real database, its alarm and its snapshot: one short of space is still saved, or a 1-machine plane could not be.
func TestSnapshotOfAMemberWithoutSpace(t *testing.T) {
	t.Parallel()
	c := start(t, newPKI(t), []string{"cp-1"}, "--quota-backend-bytes=2000000")
	client := c.connect(0)
	c.fill("cp-1", 4)

	raw := c.raw("cp-1")
	for i := 0; ; i++ {
		if _, err := raw.Put(t.Context(), fmt.Sprintf("more/%d", i), strings.Repeat("x", 1<<18)); err != nil {
			break
		}
	}
	v := c.await("the alarm is raised", func(v etcd.View) bool { return len(v.Members[0].Alarms) > 0 })
	if m := v.Members[0]; m.Alarms[0] != live.NoSpace || m.Healthy() || m.Status.Quota != 2000000 || v.Count().Quorum() {
		t.Errorf("short of space: %+v", v)
	}

	dir := t.TempDir()
	// What a killed run left is replaced.
	if err := os.WriteFile(filepath.Join(dir, ".demo.db.partial"), []byte("left"), 0o600); err != nil {
		t.Fatal(err)
	}
	s, path, err := client.SnapshotTo(t.Context(), etcd.Directory(dir), "demo.db")
	if err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	body := data[:len(data)-sha256.Size]
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if s.Member != "cp-1" || s.Size != int64(len(data)) || s.SHA256 != fmt.Sprintf("%x", sha256.Sum256(body)) || s.Revision < 5 || path != filepath.Join(dir, "demo.db") {
		t.Errorf("got %+v at %s of %d bytes", s, path, len(data))
	}
	if info.Mode().Perm() != 0o600 || !bytes.Contains(body, []byte("plantedplanted")) || !bytes.HasSuffix(data, sha(t, s.SHA256)) {
		t.Errorf("mode %v", info.Mode())
	}
	if names := files(t, dir); len(names) != 1 {
		t.Errorf("files: %v", names)
	}

	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Skip("no /dev/full:", err)
	}
	defer func() { _ = full.Close() }()
	if _, err := client.Snapshot(t.Context(), full); !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("into a full disk: %v", err)
	}
}

func sha(t *testing.T, hex string) []byte {
	t.Helper()
	var b []byte
	if _, err := fmt.Sscanf(hex, "%x", &b); err != nil {
		t.Fatal(err)
	}
	return b
}

func files(t *testing.T, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

func TestSnapshotThatIsNotWhole(t *testing.T) {
	t.Parallel()
	body := bytes.Repeat([]byte("database"), 512)
	sum := sha256.Sum256(body)
	for name, c := range map[string]struct {
		stream [][]byte
		want   string
	}{
		"whole":            {[][]byte{body[:1024], body[1024:], sum[:]}, ""},
		"whole, in crumbs": {[][]byte{body[:4090], append(bytes.Clone(body[4090:]), sum[:7]...), sum[7:]}, ""},
		"without checksum": {[][]byte{body}, "cut short"},
		"cut":              {[][]byte{body[:1000]}, "cut short"},
		"cut at a page":    {[][]byte{body[:1024+32]}, "damaged"},
		"empty":            {[][]byte{{}}, "cut short"},
		"checksum only":    {[][]byte{sum[:]}, "cut short"},
		"damaged":          {[][]byte{body[512:], body[:511], []byte("X"), sum[:]}, "damaged"},
		"paused":           {[][]byte{body, nil}, "the stream paused for more than 2s"},
		"never begun":      {[][]byte{nil}, "the stream paused for more than 2s"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := trio()
			f["cp-2"].snapshot = c.stream
			dir := t.TempDir()
			s, _, err := fakes(t, f).SnapshotTo(t.Context(), etcd.Directory(dir), "demo.db")
			if c.want == "" {
				if err != nil || s.Member != "cp-2" || s.Size != int64(len(body)+len(sum)) || s.Revision != 7 || len(files(t, dir)) != 1 {
					t.Errorf("got %+v, %v", s, err)
				}
				return
			}
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %q", err, c.want)
			}
			if left := files(t, dir); len(left) > 0 {
				t.Errorf("files: %v", left)
			}
		})
	}
}

func TestSnapshotCancelled(t *testing.T) {
	t.Parallel()
	f := trio()
	f["cp-2"].snapshot = [][]byte{make([]byte, 4096), nil}
	dir := t.TempDir()
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(300*time.Millisecond, cancel)
	_, _, err := fakes(t, f).SnapshotTo(ctx, etcd.Directory(dir), "demo.db")
	if !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want Canceled", err)
	}
	if left := files(t, dir); len(left) > 0 {
		t.Errorf("files: %v", left)
	}
}

func TestSnapshotOfWhom(t *testing.T) {
	t.Parallel()
	f := trio()
	f["cp-2"] = nil
	body := make([]byte, 4096)
	sum := sha256.Sum256(body)
	for _, m := range f {
		if m != nil {
			m.snapshot = [][]byte{body, sum[:]}
		}
	}
	if s, err := fakes(t, f).Snapshot(t.Context(), io.Discard); err != nil || s.Member != "cp-3" {
		t.Errorf("a follower that answers: %+v, %v", s, err)
	}
	f["cp-3"].status.IsLearner = true
	f["cp-1"].own[2].IsLearner = true
	if s, err := fakes(t, f).Snapshot(t.Context(), io.Discard); err != nil || s.Member != "cp-1" {
		t.Errorf("the only voter that answers, though it leads: %+v, %v", s, err)
	}
	f["cp-1"].status.Leader = 0
	if _, err := fakes(t, f).Snapshot(t.Context(), io.Discard); err == nil || !strings.Contains(err.Error(), "no voter answers that is healthy") {
		t.Errorf("none: %v", err)
	}
}

func TestDirectory(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "demo.db")
	if err := os.WriteFile(path, []byte("older"), 0o600); err != nil {
		t.Fatal(err)
	}
	d := etcd.Directory(dir)
	_, err := d.Keep("demo.db", func(w io.Writer) error {
		_, _ = w.Write([]byte("half of it"))
		return &os.PathError{Op: "write", Path: "demo.db", Err: syscall.ENOSPC}
	})
	var place *etcd.PlaceError
	if !errors.Is(err, syscall.ENOSPC) || !errors.As(err, &place) || !strings.Contains(err.Error(), dir) || !strings.Contains(place.Remedy, "make room") {
		t.Errorf("a full disk: %v", err)
	}
	if data, err := os.ReadFile(path); err != nil || string(data) != "older" || len(files(t, dir)) != 1 {
		t.Errorf("the older one: %q, %v; files %v", data, err, files(t, dir))
	}
	for _, name := range []string{"", ".", "..", "../demo.db", "/demo.db", "a/b"} {
		if _, err := d.Keep(name, func(io.Writer) error { return nil }); err == nil {
			t.Errorf("the name %q is taken", name)
		}
	}
	_, err = etcd.Directory(filepath.Join(dir, "none")).Keep("demo.db", func(io.Writer) error { return nil })
	if !errors.Is(err, os.ErrNotExist) || !errors.As(err, &place) || !strings.Contains(place.Remedy, "mount a volume") {
		t.Errorf("no such directory: %v", err)
	}
}
