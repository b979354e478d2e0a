// SPDX-License-Identifier: Apache-2.0

package parts

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
)

//go:embed node
var nodeFiles embed.FS

// nodeRepository names the machine images in Docker; the tag is the part's key.
const nodeRepository = "theseus-lab/node"

// tagFile holds the image's full name in Docker.
const tagFile = "image"

// Node is the machine image, in Docker: the base system, containerd with all
// images in it already, kubelet, kubeadm and CNI plugins. It boots systemd. /var is an
// anonymous volume: containerd's overlays can't lie on Docker's.
func (v Versions) Node(release Release) Part {
	base := Base(release)
	store := v.Store(release)
	cni := CNI(cniVersion)
	return Part{
		Name: "node-" + release.Name, Version: v.Kubernetes,
		Needs:  []Part{base, store, Kubernetes(v.Kubernetes), cni},
		Recipe: append([]string{"layout 1", v.Pause}, release.Env...),
		Files:  []string{"parts/node/*"},
		Build: func(ctx context.Context, job *Job) (err error) {
			scratch, remove, err := job.Scratch()
			if err != nil {
				return err
			}
			defer func() { err = errors.Join(err, remove()) }()
			layers, err := v.nodeLayers(job, scratch, base, store, cni)
			if err != nil {
				return err
			}
			name := nodeRepository + ":" + strings.TrimPrefix(job.Key, "node-")
			img := image{names: []string{name}, layers: layers, run: runConfig{
				Env:        append([]string{"container=docker", searchPath}, release.Env...),
				Entrypoint: []string{"/usr/local/sbin/lab-boot"},
				StopSignal: "SIGRTMIN+3",
				Volumes:    map[string]struct{}{"/var": {}},
			}}
			if err := dockerLoad(ctx, img); err != nil {
				return err
			}
			return os.WriteFile(filepath.Join(job.Dir, tagFile), []byte(name+"\n"), 0o644)
		},
		Usable: inDocker,
	}
}

func (v Versions) nodeLayers(job *Job, scratch string, base, store, cni Part) ([]layer, error) {
	baseDir, err := job.Need(base)
	if err != nil {
		return nil, err
	}
	storeDir, err := job.Need(store)
	if err != nil {
		return nil, err
	}
	system, err := tarLayer(filepath.Join(baseDir, rootfsFile))
	if err != nil {
		return nil, err
	}
	images, err := tarLayer(filepath.Join(storeDir, storeFile))
	if err != nil {
		return nil, err
	}
	w, err := newLayer(filepath.Join(scratch, "machine"))
	if err != nil {
		return nil, err
	}
	fillErr := v.fillMachine(job, w, cni)
	machine, err := w.close()
	if err := errors.Join(fillErr, err); err != nil {
		return nil, err
	}
	return []layer{system, images, machine}, nil
}

// fillMachine writes what makes the base system a Kubernetes machine.
func (v Versions) fillMachine(job *Job, l *layerWriter, cni Part) error {
	kubernetes, err := job.Need(Kubernetes(v.Kubernetes))
	if err != nil {
		return err
	}
	if err := errors.Join(
		l.program("usr/bin/kubernetes", filepath.Join(kubernetes, "kubernetes")),
		links(l, "usr/bin", "kubernetes", "kubeadm", "kubelet"),
		l.folder("etc/kubernetes", "etc/kubernetes/manifests", "etc/cni", "etc/cni/net.d", "opt/cni", "opt/cni/bin"),
	); err != nil {
		return err
	}
	plugins, err := job.Need(cni)
	if err != nil {
		return err
	}
	for _, plugin := range []string{"host-local", "loopback", "portmap", "ptp"} {
		if err := l.program("opt/cni/bin/"+plugin, filepath.Join(plugins, plugin)); err != nil {
			return err
		}
	}
	return v.fillSettings(l)
}

func (v Versions) fillSettings(l *layerWriter) error {
	const units = "etc/systemd/system/"
	for _, f := range []struct {
		from, to string
		mode     int64
	}{
		{"boot.sh", "usr/local/sbin/lab-boot", 0o755},
		{"containerd.toml", "etc/containerd/config.toml", 0o644},
		{"kubelet.service", units + "kubelet.service", 0o644},
		{"10-kubeadm.conf", units + "kubelet.service.d/10-kubeadm.conf", 0o644},
	} {
		text, err := nodeFiles.ReadFile("node/" + f.from)
		if err != nil {
			return err
		}
		content := strings.ReplaceAll(string(text), "{{.Pause}}", registry+"pause:"+v.Pause)
		if err := l.text(f.to, f.mode, content); err != nil {
			return err
		}
	}
	return l.link(units+"multi-user.target.wants/kubelet.service", "../kubelet.service")
}

// NodeImage returns the name in Docker of the machine image, building it if needed.
func (c *Cache) NodeImage(ctx context.Context, release Release, v Versions) (string, error) {
	dir, err := c.Get(ctx, v.Node(release))
	if err != nil {
		return "", err
	}
	name, err := os.ReadFile(filepath.Join(dir, tagFile))
	if err != nil {
		return "", fmt.Errorf("node image: %w", err)
	}
	return strings.TrimSpace(string(name)), nil
}

// Envtest builds the envtest folder of a version and points EnvtestLink at it.
func (c *Cache) Envtest(ctx context.Context, v Versions) (string, error) {
	dir, err := c.Get(ctx, v.EnvtestPart())
	if err != nil {
		return "", err
	}
	return dir, c.LinkEnvtest(dir)
}

// inDocker tells whether Docker still has the image that the part loaded.
func inDocker(ctx context.Context, dir string) bool {
	name, err := os.ReadFile(filepath.Join(dir, tagFile))
	if err != nil {
		return false
	}
	_, err = command{}.run(ctx, "docker", "image", "inspect", "--format", "{{.Id}}", strings.TrimSpace(string(name)))
	return err == nil
}

// dockerLoad streams an image into Docker.
func dockerLoad(ctx context.Context, img image) error {
	read, write := io.Pipe()
	go func() { write.CloseWithError(writeArchive(write, []image{img})) }()
	_, err := command{stdin: read}.run(ctx, "docker", "load", "--quiet")
	return errors.Join(err, read.Close())
}
