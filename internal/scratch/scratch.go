// SPDX-License-Identifier: Apache-2.0

// Package scratch makes private folders that do not outlive the processes which work in them, however these end.
// It does not know what is in them. Start at New.
package scratch

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// tries bounds how often a new folder may be taken for a left-over before it is locked.
const tries = 100

// Folder is a folder of mode 0700 that is locked as long as it is in use: by this process, and by children that were given Handle.
// The kernel lets go of the lock when the last of them ends, be it by SIGKILL.
type Folder struct {
	path   string
	handle *os.File
}

// New makes a folder with a name that begins with prefix, after it removed those of that prefix which dead processes left.
// parent is the system's folder for temporary files when it is "".
func New(parent, prefix string) (*Folder, error) {
	if parent == "" {
		parent = os.TempDir()
	}
	parent, err := filepath.Abs(parent)
	if err != nil {
		return nil, fmt.Errorf("the path of %s: %w", parent, err)
	}
	sweep(parent, prefix)
	for range tries {
		path, err := os.MkdirTemp(parent, prefix)
		if err != nil {
			return nil, fmt.Errorf("making a private folder: %w", err)
		}
		// Until it is locked another process takes it for a left-over, and is right to: this one might have died just now.
		handle, err := claim(path)
		if errors.Is(err, errTaken) {
			continue
		}
		if err != nil {
			return nil, errors.Join(fmt.Errorf("locking the private folder %s: %w", path, err), os.Remove(path))
		}
		return &Folder{path: path, handle: handle}, nil
	}
	return nil, fmt.Errorf("%d private folders below %s were removed by somebody else before they could be locked", tries, parent)
}

// Path is the folder's.
func (f *Folder) Path() string { return f.path }

// Handle holds the lock. A child that inherits it (exec.Cmd.ExtraFiles) keeps the folder, also after this process is gone; to
// any other child the lock is unknown.
func (f *Folder) Handle() *os.File { return f.handle }

// Remove deletes the folder with all that is in it.
func (f *Folder) Remove() error {
	err := os.RemoveAll(f.path)
	if err != nil {
		err = fmt.Errorf("removing the private folder %s, which may hold secrets: %w", f.path, err)
	}
	return errors.Join(err, f.handle.Close())
}

// Abandoned reports whether nobody works in a folder that New made: it is not locked, or is no longer there. What can't be looked
// at counts as in use.
func Abandoned(path string) bool {
	handle, err := claim(path)
	if err != nil {
		return errors.Is(err, fs.ErrNotExist)
	}
	return handle.Close() == nil
}

// sweep removes the folders that dead processes of this user left. What can't be removed stays for the next one.
func sweep(parent, prefix string) {
	entries, err := os.ReadDir(parent)
	if err != nil {
		return
	}
	for _, entry := range entries {
		if !named(entry.Name(), prefix) {
			continue
		}
		path := filepath.Join(parent, entry.Name())
		if handle, err := claim(path); err == nil {
			// The lock is kept meanwhile: whoever made the folder just now must not lock it half removed.
			_ = os.RemoveAll(path)
			_ = handle.Close()
		}
	}
}

// named reports whether MkdirTemp may have made that name.
func named(name, prefix string) bool {
	random, ok := strings.CutPrefix(name, prefix)
	return ok && random != "" && strings.Trim(random, "0123456789") == ""
}

var (
	// errTaken says that another process has the folder.
	errTaken = errors.New("another process has it")
	// errForeign says that the folder is not one that New made for this user.
	errForeign = errors.New("it is not a private folder of this user")
)

// claim locks a folder, when nobody else has it and it is one of ours.
func claim(path string) (handle *os.File, err error) {
	handle, err = os.OpenFile(path, os.O_RDONLY|syscall.O_DIRECTORY|syscall.O_NOFOLLOW, 0)
	if err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			err = errors.Join(errTaken, err)
		}
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, handle.Close())
		}
	}()
	opened, err := handle.Stat()
	if err != nil {
		return nil, err
	}
	if owner, ok := opened.Sys().(*syscall.Stat_t); !ok || int(owner.Uid) != os.Geteuid() || opened.Mode().Perm() != 0o700 {
		return nil, errForeign
	}
	if err := syscall.Flock(int(handle.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		if errors.Is(err, syscall.EWOULDBLOCK) {
			err = errTaken
		}
		return nil, err
	}
	// Whoever had the lock before may have removed the folder, and somebody may have made another of that name.
	there, err := os.Lstat(path)
	if err != nil || !os.SameFile(opened, there) {
		return nil, errors.Join(errTaken, err)
	}
	return handle, nil
}
