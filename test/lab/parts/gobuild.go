// SPDX-License-Identifier: Apache-2.0

package parts

import (
	"context"
	"fmt"
	"path/filepath"
	"runtime"
	"strings"
)

// goProgram is a static Go program: from a nested module with a mod file per
// version, or, without a version, from the lab's own module.
type goProgram struct {
	// folder is below parts/.
	folder  string
	version string
	// packages maps a binary's name to its package.
	packages map[string]string
	// stamps are variables that the linker sets.
	stamps map[string]string
}

func (g goProgram) files() []string {
	folder := "parts/" + g.folder
	if g.version == "" {
		return []string{folder + "/*/*.go"}
	}
	mod := folder + "/" + g.version
	return []string{folder + "/*.go", mod + ".mod", mod + ".sum"}
}

// args are those of go build for the binary into dir.
func (g goProgram) args(binary, dir string) []string {
	flags := []string{"-s", "-w"}
	for _, name := range sortedKeys(g.stamps) {
		flags = append(flags, "-X", name+"="+g.stamps[name])
	}
	args := []string{"build", "-trimpath", "-buildvcs=false", "-ldflags=" + strings.Join(flags, " ")}
	if g.version != "" {
		args = append(args, "-modfile="+g.version+".mod")
	}
	return append(args, "-o", filepath.Join(dir, binary), g.packages[binary])
}

func (g goProgram) recipe() []string {
	lines := []string{runtime.Version(), runtime.GOOS + "/" + runtime.GOARCH}
	for _, binary := range sortedKeys(g.packages) {
		lines = append(lines, strings.Join(g.args(binary, "."), " "))
	}
	return lines
}

func (g goProgram) part(name, expect string) Part {
	return Part{
		Name: name, Version: g.version, Expect: expect,
		Recipe: g.recipe(), Files: g.files(),
		Build: func(ctx context.Context, job *Job) error {
			return g.build(ctx, filepath.Join(job.Source, "parts", g.folder), job.Dir)
		},
	}
}

func (g goProgram) build(ctx context.Context, source, dir string) error {
	call := command{dir: source, env: []string{
		// Compilers are many short processes: with memory at hand, collecting their garbage only costs time.
		"GOGC=400",
		"CGO_ENABLED=0", "GOOS=" + runtime.GOOS, "GOARCH=" + runtime.GOARCH, "GOFLAGS=", "GOWORK=off",
	}}
	for _, binary := range sortedKeys(g.packages) {
		if _, err := call.run(ctx, "go", g.args(binary, dir)...); err != nil {
			return fmt.Errorf("binary %s: %w", binary, err)
		}
	}
	return nil
}

// kubernetesCommands are the names that the multi-call binary answers to.
var kubernetesCommands = []string{ //nolint:gochecknoglobals // read-only table
	"kubeadm", "kubelet", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kube-proxy",
}

// Kubernetes is kubeadm, kubelet and the control plane of one version: the file
// kubernetes, which tells them apart by the name it is called under. The version
// is like "v1.36.3", and has a mod file.
func Kubernetes(version string) Part {
	stamps := map[string]string{}
	digits := strings.SplitN(strings.TrimPrefix(version, "v"), ".", 3)
	for _, pkg := range []string{"k8s.io/component-base/version", "k8s.io/client-go/pkg/version"} {
		stamps[pkg+".gitVersion"] = version
		stamps[pkg+".gitMajor"] = digits[0]
		stamps[pkg+".gitMinor"] = digits[1]
		stamps[pkg+".gitTreeState"] = "clean"
	}
	return goProgram{
		folder: "kubernetes", version: version, stamps: stamps,
		packages: map[string]string{"kubernetes": "."},
	}.part("kubernetes", "10 min on 2 cores")
}

// Etcd is the server and etcdctl of one version, told apart by name.
func Etcd(version string) Part {
	return goProgram{
		folder: "etcd", version: version, packages: map[string]string{"etcd": "."},
	}.part("etcd", "1-2 min")
}

// CoreDNS is one version with the plugins that the lab uses.
func CoreDNS(version string) Part {
	return goProgram{
		folder: "coredns", version: version, packages: map[string]string{"coredns": "."},
	}.part("coredns", "1-2 min")
}

// CNI is the network plugins that a machine needs.
func CNI(version string) Part {
	const plugins = "github.com/containernetworking/plugins/"
	return goProgram{
		folder: "cni", version: version,
		packages: map[string]string{
			"host-local": plugins + "plugins/ipam/host-local",
			"loopback":   plugins + "plugins/main/loopback",
			"portmap":    plugins + "plugins/meta/portmap",
			"ptp":        plugins + "plugins/main/ptp",
		},
		stamps: map[string]string{plugins + "pkg/utils/buildversion.BuildVersion": version},
	}.part("cni", "1 min")
}

// tofuVersion is the OpenTofu that tests run beside Terraform, and the lab where there is no Terraform.
const tofuVersion = "v1.12.6"

// Tofu is OpenTofu.
func Tofu() Part {
	return goProgram{
		folder: "opentofu", version: tofuVersion,
		packages: map[string]string{tofuProgram: "github.com/opentofu/opentofu/cmd/tofu"},
		stamps:   map[string]string{"github.com/opentofu/opentofu/version.dev": "no"},
	}.part("opentofu", "4 min")
}

const tofuProgram = "tofu"

// Tofu returns the path of OpenTofu, building it if needed.
func (c *Cache) Tofu(ctx context.Context) (string, error) {
	dir, err := c.Get(ctx, Tofu())
	if err != nil {
		return "", err
	}
	return filepath.Join(dir, tofuProgram), nil
}

// Programs are the lab's own programs that run in containers: pause, which holds a
// pod's namespaces, and brokencoredns, which a test's bad version consists of.
func Programs() Part {
	return goProgram{
		folder:   "programs",
		packages: map[string]string{"pause": "./pause", "brokencoredns": "./brokencoredns"},
	}.part("programs", "")
}
