// SPDX-License-Identifier: Apache-2.0

package parts

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
)

// registry is where kubeadm looks for its images. Nothing is fetched from there:
// the images are in each machine before it asks.
const registry = "registry.k8s.io/"

// imagesFile is the archive with all images of one Kubernetes version.
const imagesFile = "images.tar"

// Tags that exist in the lab alone.
const (
	// OldCoreDNSImage is a working CoreDNS under the name that kubeadm gave it
	// before 1.21, for clusters that pretend to be old.
	OldCoreDNSImage = registry + "coredns:1.6.7"
	// CanaryOnlyCoreDNSTag works where the hostname begins with CanaryPrefix,
	// so that a canary is fine and the Deployment never becomes ready.
	CanaryOnlyCoreDNSTag = "v1.14.7"
	// BrokenCoreDNSTag never starts.
	BrokenCoreDNSTag = "v1.14.8"
	// CanaryPrefix is how the names of Theseus's CoreDNS canary pods begin.
	CanaryPrefix = "theseus-coredns-canary"
)

const searchPath = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// Images is one archive with all container images that a cluster of this version
// may ask for, layers shared. The base is for kube-proxy's iptables.
func (v Versions) Images(base Part) Part {
	needs := []Part{Kubernetes(v.Kubernetes), Etcd(v.Etcd), Programs(), base}
	for _, version := range v.CoreDNS {
		needs = append(needs, CoreDNS(version))
	}
	return Part{
		Name: "images", Version: v.Kubernetes, Needs: needs,
		Recipe: append([]string{"layout 1", v.EtcdTag, v.Pause}, netfilterPackages...),
		Build:  func(_ context.Context, job *Job) error { return v.buildImages(job, base) },
	}
}

func (v Versions) buildImages(job *Job, base Part) (err error) {
	scratch, remove, err := job.Scratch()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, remove()) }()
	b := &imageBuilder{job: job, scratch: scratch}
	v.controlPlane(b, base)
	v.coreDNS(b)
	if b.err != nil {
		return b.err
	}
	archive, err := os.Create(filepath.Join(job.Dir, imagesFile))
	if err != nil {
		return err
	}
	return errors.Join(writeArchive(archive, b.images), archive.Close())
}

// controlPlane adds what kubeadm's static pods and kube-proxy run.
func (v Versions) controlPlane(b *imageBuilder, base Part) {
	kubernetes := b.layer("kubernetes", func(l *layerWriter) error {
		return errors.Join(l.folder("usr", "usr/local", "usr/local/bin"),
			b.program(l, "usr/local/bin/kubernetes", Kubernetes(v.Kubernetes), "kubernetes"),
			links(l, "usr/local/bin/", "kubernetes", kubernetesCommands...))
	})
	netfilter := b.layer("netfilter", func(l *layerWriter) error {
		dir, err := b.job.Need(base)
		if err != nil {
			return err
		}
		return addNetfilter(l, filepath.Join(dir, rootfsFile))
	})
	for _, name := range kubernetesCommands {
		run := runConfig{Env: []string{searchPath}, Entrypoint: []string{"/usr/local/bin/" + name}}
		switch name {
		case "kube-proxy":
			b.image(run, []layer{netfilter, kubernetes}, registry+name+":"+v.Kubernetes)
		case "kube-apiserver", "kube-controller-manager", "kube-scheduler":
			b.image(run, []layer{kubernetes}, registry+name+":"+v.Kubernetes)
		}
	}
	etcd := b.layer("etcd", func(l *layerWriter) error {
		return errors.Join(l.folder("usr", "usr/local", "usr/local/bin"),
			b.program(l, "usr/local/bin/etcd", Etcd(v.Etcd), "etcd"),
			links(l, "usr/local/bin/", "etcd", "etcdctl"))
	})
	b.image(runConfig{Env: []string{searchPath}, Entrypoint: []string{"/usr/local/bin/etcd"}},
		[]layer{etcd}, registry+"etcd:"+v.EtcdTag)
	pause := b.layer("pause", func(l *layerWriter) error { return b.program(l, "pause", Programs(), "pause") })
	b.image(runConfig{Entrypoint: []string{"/pause"}}, []layer{pause}, registry+"pause:"+v.Pause)
}

// coreDNS adds the real versions, and those that tests are made of.
func (v Versions) coreDNS(b *imageBuilder) {
	run := runConfig{Env: []string{searchPath}, Entrypoint: []string{"/coredns"}}
	for i, version := range v.CoreDNS {
		program := b.layer("coredns-"+version, func(l *layerWriter) error {
			return b.program(l, "coredns", CoreDNS(version), "coredns")
		})
		names := []string{registry + "coredns/coredns:" + version}
		if i == 0 {
			names = append(names, OldCoreDNSImage)
		}
		b.image(run, []layer{program}, names...)
	}
	newest := v.CoreDNS[len(v.CoreDNS)-1]
	broken := b.layer("coredns-broken", func(l *layerWriter) error {
		return b.program(l, "coredns", Programs(), "brokencoredns")
	})
	hidden := b.layer("coredns-real", func(l *layerWriter) error {
		return b.program(l, "coredns-real", CoreDNS(newest), "coredns")
	})
	b.image(run, []layer{broken}, registry+"coredns/coredns:"+BrokenCoreDNSTag)
	run.Env = append([]string{"HEALTHY_HOSTNAME_PREFIX=" + CanaryPrefix}, run.Env...)
	b.image(run, []layer{hidden, broken}, registry+"coredns/coredns:"+CanaryOnlyCoreDNSTag)
}

// imageBuilder collects images; after an error it does nothing more.
type imageBuilder struct {
	job     *Job
	scratch string
	images  []image
	err     error
}

func (b *imageBuilder) layer(name string, fill func(*layerWriter) error) layer {
	if b.err != nil {
		return layer{}
	}
	w, err := newLayer(filepath.Join(b.scratch, name))
	if err != nil {
		b.err = err
		return layer{}
	}
	err = fill(w)
	l, closeErr := w.close()
	b.err = errors.Join(err, closeErr)
	return l
}

func (b *imageBuilder) image(run runConfig, layers []layer, names ...string) {
	b.images = append(b.images, image{names: names, layers: layers, run: run})
}

// program adds a file of another part.
func (b *imageBuilder) program(l *layerWriter, name string, from Part, file string) error {
	dir, err := b.job.Need(from)
	if err != nil {
		return err
	}
	return l.program(name, filepath.Join(dir, file))
}

// links adds names in folder for a program beside them.
func links(l *layerWriter, folder, target string, names ...string) error {
	for _, name := range names {
		if err := l.link(strings.TrimSuffix(folder, "/")+"/"+name, target); err != nil {
			return err
		}
	}
	return nil
}
