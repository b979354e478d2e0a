// SPDX-License-Identifier: Apache-2.0

package terraform

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/theseus-gitops/theseus/internal/scratch"
)

// folder is private to one Module: Terraform's data folder, plans, files of variables. They hold secrets, so its files are
// 0600, and it goes with the Module. Terraform inherits the folder's handle, because it may outlive us.
type folder struct{ *scratch.Folder }

const folderPrefix = "theseus-terraform-"

// Folders within the folder: Terraform's own data, what providers put into $TMPDIR, and what it runs on.
const (
	dataName   = "data"
	tempName   = "tmp"
	sourceName = "source"
)

func newFolder(parent string) (*folder, error) {
	made, err := scratch.New(parent, folderPrefix)
	if err != nil {
		return nil, fmt.Errorf("terraform: %w", err)
	}
	f := &folder{made}
	for _, name := range []string{dataName, tempName, sourceName} {
		if err := os.Mkdir(f.file(name), 0o700); err != nil {
			return nil, errors.Join(fmt.Errorf("making a private folder: %w", err), f.Remove())
		}
	}
	return f, nil
}

func (f *folder) file(name string) string { return filepath.Join(f.Path(), name) }

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
	file, err := os.CreateTemp(f.Path(), "stream-")
	if err != nil {
		return nil, fmt.Errorf("making a private file: %w", err)
	}
	if err := os.Remove(file.Name()); err != nil {
		return nil, errors.Join(fmt.Errorf("making a private file: %w", err), file.Close())
	}
	return file, nil
}
