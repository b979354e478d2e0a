// SPDX-License-Identifier: Apache-2.0

package terraform

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

const (
	folderPrefix = "theseus-terraform-"
	lockName     = "lock"
)

// folder is private to one Module: Terraform's data folder, plans, files of variables. They hold secrets, so the
// folder is 0700, its files are 0600, and it goes with the Module. What a killed process left is removed by the next
// one: a locked file tells whether somebody still works in a folder. Terraform inherits the lock, because it may outlive us.
type folder struct {
	path string
	lock *os.File
}

func newFolder(parent string) (*folder, error) {
	if parent == "" {
		parent = os.TempDir()
	}
	sweep(parent)
	// Under another name until it is locked, so that no sweep takes it for a left-over.
	unlocked, err := os.MkdirTemp(parent, "new-"+folderPrefix)
	if err != nil {
		return nil, fmt.Errorf("making a private folder: %w", err)
	}
	lock, err := lockFile(filepath.Join(unlocked, lockName), os.O_CREATE|os.O_EXCL)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("locking a private folder: %w", err), os.RemoveAll(unlocked))
	}
	path := filepath.Join(parent, strings.TrimPrefix(filepath.Base(unlocked), "new-"))
	f := &folder{path: path, lock: lock}
	if err := os.Rename(unlocked, path); err != nil {
		return nil, errors.Join(fmt.Errorf("naming a private folder: %w", err), os.RemoveAll(unlocked), lock.Close())
	}
	for _, name := range []string{dataName, tempName, sourceName} {
		if err := os.Mkdir(f.file(name), 0o700); err != nil {
			return nil, errors.Join(fmt.Errorf("making a private folder: %w", err), f.remove())
		}
	}
	return f, nil
}

// Folders within the folder: Terraform's own data, what providers put into $TMPDIR, and what it runs on.
const (
	dataName   = "data"
	tempName   = "tmp"
	sourceName = "source"
)

func lockFile(path string, flags int) (*os.File, error) {
	file, err := os.OpenFile(path, flags|os.O_RDWR|syscall.O_NOFOLLOW, 0o600)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return file, nil
}

// sweep removes the folders of processes that are gone. One that can't be removed is somebody else's, and stays.
func sweep(parent string) {
	left, err := filepath.Glob(filepath.Join(parent, folderPrefix+"*"))
	if err != nil {
		return
	}
	for _, path := range left {
		if lock, err := lockFile(filepath.Join(path, lockName), 0); err == nil {
			_ = os.RemoveAll(path)
			_ = lock.Close()
		}
	}
}

func (f *folder) remove() error {
	err := os.RemoveAll(f.path)
	if err != nil {
		err = fmt.Errorf("removing the private folder %s, which holds secrets: %w", f.path, err)
	}
	return errors.Join(err, f.lock.Close())
}

func (f *folder) file(name string) string { return filepath.Join(f.path, name) }

func (f *folder) writeJSON(name string, value any) (string, error) {
	data, err := json.Marshal(value)
	if err != nil {
		return "", fmt.Errorf("writing %s: %w", name, err)
	}
	return f.write(name, data)
}

func (f *folder) write(name string, data []byte) (string, error) {
	path := f.file(name)
	if err := os.WriteFile(path, data, 0o600); err != nil {
		return "", fmt.Errorf("writing a private file: %w", err)
	}
	return path, nil
}

// unnamed is a file without a name: what Terraform prints is never left behind, and, unlike a pipe, does not break
// when we are killed before it.
func (f *folder) unnamed() (*os.File, error) {
	file, err := os.CreateTemp(f.path, "stream-")
	if err != nil {
		return nil, fmt.Errorf("making a private file: %w", err)
	}
	if err := os.Remove(file.Name()); err != nil {
		return nil, errors.Join(fmt.Errorf("making a private file: %w", err), file.Close())
	}
	return file, nil
}
