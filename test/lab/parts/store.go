// SPDX-License-Identifier: Apache-2.0

package parts

import (
	"context"
	"path/filepath"
	"strings"
)

// storeFile is containerd's folder as one tar.
const storeFile = "store.tar"

// baseRepository names the base systems in Docker.
const baseRepository = "theseus-lab/base"

// Store is the folder of a containerd into which the images have been imported:
// once here, and not at each machine's first boot.
func (v Versions) Store(release Release) Part {
	base := Base(release)
	images := v.Images(base)
	return Part{
		Name: "store-" + release.Name, Version: v.Kubernetes,
		Needs: []Part{base, images}, Files: []string{"parts/node/preload.sh"},
		Build: func(ctx context.Context, job *Job) error {
			baseDir, err := job.Need(base)
			if err != nil {
				return err
			}
			imagesDir, err := job.Need(images)
			if err != nil {
				return err
			}
			system, err := tarLayer(filepath.Join(baseDir, rootfsFile))
			if err != nil {
				return err
			}
			name := baseRepository + ":" + strings.TrimPrefix(filepath.Base(baseDir), "base-")
			if err := dockerLoad(ctx, image{names: []string{name}, layers: []layer{system}}); err != nil {
				return err
			}
			_, err = command{}.run(ctx, "docker", preload(name, imagesDir, job)...)
			return err
		},
	}
}

// preload is the call of Docker that runs node/preload.sh. The folder to fill is
// a volume, since containerd's overlays can't lie on Docker's.
func preload(base, imagesDir string, job *Job) []string {
	return []string{
		"run", "--rm", "--network=none", "--label=theseus-lab=parts",
		"--cap-add=SYS_ADMIN", "--security-opt=seccomp=unconfined", "--security-opt=apparmor=unconfined",
		"--volume=/var/lib/containerd",
		"--volume=" + filepath.Join(job.Source, "parts", "node", "preload.sh") + ":/in/preload.sh:ro",
		"--volume=" + filepath.Join(imagesDir, imagesFile) + ":/in/images.tar:ro",
		"--volume=" + job.Dir + ":/out",
		base, "sh", "/in/preload.sh",
	}
}
