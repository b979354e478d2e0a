// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// Disk is a volume of a fixed size: an ext4 file system in a sparse file. A machine can really fill it,
// and the host loses no space by that.
type Disk struct {
	Volume string // name of the engine's volume
	File   string // the sparse file on the host
	Bytes  int64
	Labels map[string]string
}

// CreateDisk makes the file, the loop device and the volume. What is left of an earlier, broken attempt is removed first.
func (d *Docker) CreateDisk(ctx context.Context, disk Disk) error {
	if err := d.RemoveDisk(ctx, disk); err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(disk.File), 0o700); err != nil {
		return fmt.Errorf("making the folder for disks: %w", err)
	}
	f, err := os.OpenFile(disk.File, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("making a disk: %w", err)
	}
	if err := errors.Join(f.Truncate(disk.Bytes), f.Close()); err != nil {
		return fmt.Errorf("making a disk: %w", err)
	}
	if _, err := run(ctx, nil, "mkfs.ext4", "-q", "-F", "-m", "0", "-E", "lazy_itable_init=1,lazy_journal_init=1", disk.File); err != nil {
		return err
	}
	// The engine fills a new volume with what the image has there, but only an empty one.
	if _, err := run(ctx, nil, "debugfs", "-w", "-R", "rmdir lost+found", disk.File); err != nil {
		return err
	}
	device, err := run(ctx, nil, "losetup", "--find", "--show", disk.File)
	if err != nil {
		return err
	}
	args := []string{"docker", "volume", "create", "--opt", "type=ext4", "--opt", "device=" + strings.TrimSpace(device)}
	for k, v := range disk.Labels {
		args = append(args, "--label", k+"="+v)
	}
	_, err = run(ctx, nil, append(args, disk.Volume)...)
	return err
}

// RemoveDisk removes volume, loop device and file; none of them needs to exist.
func (d *Docker) RemoveDisk(ctx context.Context, disk Disk) error {
	if _, err := run(ctx, nil, "docker", "volume", "rm", "--force", disk.Volume); err != nil {
		return err
	}
	if err := DetachDisk(ctx, disk.File); err != nil {
		return err
	}
	if err := os.Remove(disk.File); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("removing a disk: %w", err)
	}
	return nil
}

// DetachDisk frees the loop devices of a disk's file, which may not exist.
func DetachDisk(ctx context.Context, file string) error {
	if _, err := os.Stat(file); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	devices, err := run(ctx, nil, "losetup", "--noheadings", "--output", "NAME", "--associated", file)
	if err != nil {
		return err
	}
	for _, device := range strings.Fields(devices) {
		if _, err := run(ctx, nil, "losetup", "--detach", device); err != nil {
			return err
		}
	}
	return nil
}

// Volumes returns the names of the volumes that carry all the labels.
func (d *Docker) Volumes(ctx context.Context, labels map[string]string) ([]string, error) {
	return d.ids(ctx, labels, "volume", "ls")
}

// RemoveVolume removes a volume.
func (d *Docker) RemoveVolume(ctx context.Context, name string) error {
	_, err := run(ctx, nil, "docker", "volume", "rm", "--force", name)
	return err
}
