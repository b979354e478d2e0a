// SPDX-License-Identifier: Apache-2.0

package etcd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"syscall"
)

// Directory keeps snapshots as files that only their owner can read: they hold every Secret of the cluster.
type Directory string

// SnapshotTo takes a snapshot into a file of that name and gives its path. A file appears under its name only when
// it is whole, verified and on disk; one of the same name is replaced then. After an error nothing is left.
func (c *Client) SnapshotTo(ctx context.Context, d Directory, name string) (Snapshot, string, error) {
	var s Snapshot
	path, err := d.keep(name, func(w io.Writer) (err error) {
		s, err = c.Snapshot(ctx, w)
		return err
	})
	if err != nil {
		return Snapshot{}, "", err
	}
	return s, path, nil
}

// keep lets write fill a file and gives it its name afterwards.
func (d Directory) keep(name string, write func(io.Writer) error) (string, error) {
	if name == "" || filepath.Base(name) != name || name == "." || name == ".." {
		return "", fmt.Errorf("etcd snapshot: %q is no name of a file in %s", name, string(d))
	}
	path := filepath.Join(string(d), name)
	partial := filepath.Join(string(d), "."+name+".partial")
	// A killed run may have left one.
	if err := os.Remove(partial); err != nil && !errors.Is(err, os.ErrNotExist) {
		return "", d.explain(err)
	}
	file, err := os.OpenFile(partial, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return "", d.explain(err)
	}
	err = write(file)
	if err == nil {
		err = file.Sync()
	}
	err = errors.Join(err, file.Close())
	if err == nil {
		err = os.Rename(partial, path)
	}
	if err != nil {
		_ = os.Remove(partial)
		return "", d.explain(err)
	}
	return path, d.explain(d.sync())
}

// sync makes the new name last: without it, a machine that loses power may forget it.
func (d Directory) sync() error {
	dir, err := os.Open(string(d))
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}

func (d Directory) explain(err error) error {
	what := "snapshot directory " + string(d)
	switch {
	case err == nil:
		return nil
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		return &PlaceError{What: what, Remedy: "make room for the size of etcd's database, or name another place in etcd.snapshot.to", cause: err}
	case errors.Is(err, os.ErrNotExist), errors.Is(err, os.ErrPermission), errors.Is(err, syscall.EROFS), errors.Is(err, syscall.ENOTDIR):
		return &PlaceError{What: what, Remedy: "mount a volume there that Theseus may write to, or name another place in etcd.snapshot.to", cause: err}
	}
	return err
}
