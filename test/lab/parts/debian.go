// SPDX-License-Identifier: Apache-2.0

package parts

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
)

// MirrorEnv names the environment variable that overrides the Debian mirror.
const MirrorEnv = "THESEUS_LAB_DEBIAN_MIRROR"

// Release is a Debian release that machines can be made of.
type Release struct {
	// Name is the image's, like "debian-12".
	Name  string
	Suite string
	// Env is what the release needs to boot in a container, if anything.
	Env []string
}

// Debian12 boots anywhere. A newer release needs a word to PID 1 where the host
// still has cgroup v1: that is in its Env, and does no harm elsewhere.
//
//nolint:gochecknoglobals // read-only values
var (
	Debian12 = Release{Name: "debian-12", Suite: "bookworm"}
	Debian13 = Release{Name: "debian-13", Suite: "trixie", Env: []string{
		"SYSTEMD_PROC_CMDLINE=systemd.unified_cgroup_hierarchy=0 SYSTEMD_CGROUP_ENABLE_LEGACY_FORCE=1",
	}}
)

// ReleaseOf looks a release up by its name.
func ReleaseOf(name string) (Release, error) {
	for _, r := range []Release{Debian12, Debian13} {
		if r.Name == name {
			return r, nil
		}
	}
	return Release{}, fmt.Errorf("debian release %q: the lab knows %s and %s: add it to parts.ReleaseOf", name, Debian12.Name, Debian13.Name)
}

// basePackages are what systemd, containerd, kubelet and kubeadm need.
var basePackages = []string{ //nolint:gochecknoglobals // read-only table
	"systemd", "systemd-sysv", "dbus", "containerd", "runc", "iptables", "conntrack", "ebtables", "socat",
	"ethtool", "iproute2", "kmod", "ca-certificates", "procps", "iputils-ping",
}

// droppedFolders are emptied: nobody reads a manual in a lab machine.
var droppedFolders = []string{ //nolint:gochecknoglobals // read-only table
	"usr/share/doc", "usr/share/man", "usr/share/locale", "usr/share/info", "usr/share/bash-completion",
	"var/cache/apt", "var/lib/apt/lists", "var/log",
}

// rootfsFile is the base system as one tar.
const rootfsFile = "rootfs.tar"

// Base is a release's root file system, without anything of Kubernetes.
func Base(release Release) Part {
	return Part{
		Name: "base", Version: release.Name, Expect: "2-3 min",
		Recipe: []string{
			"debootstrap minbase", release.Suite, runtime.GOARCH,
			strings.Join(basePackages, ","), strings.Join(droppedFolders, ","), "identity 1",
		},
		Build: func(ctx context.Context, job *Job) error { return bootstrap(ctx, job, release) },
	}
}

func bootstrap(ctx context.Context, job *Job, release Release) (err error) {
	if os.Geteuid() != 0 {
		return errors.New("debootstrap needs root: run as root (sudo -E)")
	}
	root, remove, err := job.Scratch()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, remove()) }()

	args := []string{"--variant=minbase", "--include=" + strings.Join(basePackages, ","), release.Suite, root}
	mirror, err := debianMirror(ctx)
	if err != nil {
		return err
	}
	if mirror != "" {
		args = append(args, mirror)
	}
	if _, err := (command{}).run(ctx, "debootstrap", args...); err != nil {
		return fmt.Errorf("%w\nIf debootstrap is missing: apt-get install debootstrap. Another mirror: set %s", err, MirrorEnv)
	}
	if err := anonymise(root); err != nil {
		return err
	}
	_, err = command{}.run(ctx, "tar", "--create", "--file="+filepath.Join(job.Dir, rootfsFile),
		"--numeric-owner", "--sort=name", "--one-file-system",
		"--exclude=./dev/*", "--exclude=./proc/*", "--exclude=./sys/*", "--directory="+root, ".")
	return err
}

// anonymise empties what is not wanted, and removes what must differ between
// machines made of this image.
func anonymise(root string) error {
	for _, folder := range droppedFolders {
		inside, err := filepath.Glob(filepath.Join(root, folder, "*"))
		if err != nil {
			return err
		}
		for _, path := range inside {
			if err := os.RemoveAll(path); err != nil {
				return err
			}
		}
	}
	for _, file := range []string{"etc/hostname", "etc/resolv.conf", "var/lib/dbus/machine-id"} {
		if err := os.Remove(filepath.Join(root, file)); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
	}
	// Empty, not missing: systemd then makes one at first boot.
	return os.WriteFile(filepath.Join(root, "etc/machine-id"), nil, 0o444)
}

// debianMirror is the mirror that this machine itself installs from; empty (the
// default of debootstrap) when it is no Debian.
func debianMirror(ctx context.Context) (string, error) {
	if mirror := os.Getenv(MirrorEnv); mirror != "" {
		return mirror, nil
	}
	system, err := os.ReadFile("/etc/os-release")
	if err != nil {
		return "", fmt.Errorf("debian mirror: %w: set %s", err, MirrorEnv)
	}
	if !isDebian(string(system)) {
		return "", nil
	}
	out, err := command{}.run(ctx, "apt-get", "indextargets", "--format", "$(SITE) $(RELEASE) $(COMPONENT)", "Identifier: Packages")
	if err != nil {
		return "", fmt.Errorf("debian mirror: %w", err)
	}
	return mirrorOf(out), nil
}

func isDebian(osRelease string) bool {
	for _, line := range strings.Split(osRelease, "\n") {
		if name, ok := strings.CutPrefix(line, "ID="); ok {
			return strings.Trim(name, `"`) == "debian"
		}
	}
	return false
}

// mirrorOf takes the first source of a whole release: not of its updates,
// security fixes or backports, which alone bootstrap nothing.
func mirrorOf(indexTargets string) string {
	for _, line := range strings.Split(indexTargets, "\n") {
		if f := strings.Fields(line); len(f) == 3 && f[2] == "main" && !strings.Contains(f[1], "-") {
			return f[0]
		}
	}
	return ""
}
