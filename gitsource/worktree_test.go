// SPDX-License-Identifier: Apache-2.0

package gitsource_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/theseus-gitops/theseus/gitsource"
)

func TestUncommittedNamesWhatDiffers(t *testing.T) {
	o := seeded(t, map[string]string{
		"fleet/fleet.yaml": "1", "fleet/edited.yaml": "1", "fleet/gone.yml": "1", "fleet/staged.yaml": "1", "other/edited.yaml": "1",
		".gitignore": "*.ignored.yaml\n",
	})
	uncommitted := func(url, path string) []string {
		t.Helper()
		repo := o.open(func(op *gitsource.Options) { op.URL, op.Path = url, path })
		files, err := repo.Uncommitted(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return files
	}
	wantSlice(t, "nothing was edited", uncommitted(o.work, ""), nil)
	for name, content := range map[string]string{
		"fleet/edited.yaml": "2", "fleet/staged.yaml": "2", "fleet/new/a b.yaml": "1", "fleet/notes.md": "1", "fleet/x.ignored.yaml": "1",
		"other/edited.yaml": "2",
	} {
		o.write(name, content)
	}
	runGit(t, o.work, "add", "fleet/staged.yaml")
	if err := os.Remove(filepath.Join(o.work, "fleet/gone.yml")); err != nil {
		t.Fatal(err)
	}
	below := []string{"fleet/edited.yaml", "fleet/gone.yml", "fleet/staged.yaml", "fleet/new/a b.yaml"}
	wantSlice(t, "below the path", uncommitted(o.work, "fleet"), below)
	wantSlice(t, "by file:// URL", uncommitted("file://"+o.work, "fleet"), below)
	wantSlice(t, "a bare repository", uncommitted(o.bare, "fleet"), nil)
}
