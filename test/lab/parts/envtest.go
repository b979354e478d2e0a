// SPDX-License-Identifier: Apache-2.0

package parts

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
)

// EnvtestLink is the name in the cache that always leads to the latest envtest
// folder, for those who set KUBEBUILDER_ASSETS once.
const EnvtestLink = "envtest"

// Envtest is the folder that controller-runtime's envtest wants: etcd and
// kube-apiserver. There is no kubectl in it; envtest needs none to run.
func Envtest(kubernetes, etcd Part) Part {
	return Part{
		Name: "envtest", Version: kubernetes.Version,
		Needs: []Part{kubernetes, etcd},
		Build: func(_ context.Context, job *Job) error {
			for name, from := range map[string]struct {
				part Part
				file string
			}{
				"etcd":           {etcd, "etcd"},
				"kube-apiserver": {kubernetes, "kubernetes"},
			} {
				dir, err := job.Need(from.part)
				if err != nil {
					return err
				}
				// A hard link: the folder outlives the part, and costs nothing.
				if err := os.Link(filepath.Join(dir, from.file), filepath.Join(job.Dir, name)); err != nil {
					return err
				}
			}
			return nil
		},
	}
}

// LinkEnvtest points the cache's stable name at an envtest folder.
func (c *Cache) LinkEnvtest(dir string) error {
	link := filepath.Join(c.root, EnvtestLink)
	tmp := fmt.Sprintf("%s.%d", filepath.Join(c.root, "tmp", EnvtestLink), os.Getpid())
	if err := os.Symlink(filepath.Base(dir), tmp); err != nil {
		return fmt.Errorf("link %s: %w", link, err)
	}
	if err := os.Rename(tmp, link); err != nil {
		return fmt.Errorf("link %s: %w", link, err)
	}
	return nil
}
