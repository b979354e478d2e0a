// SPDX-License-Identifier: Apache-2.0

package kubeadm

import (
	"errors"
	"fmt"
	"net"
	"path"
	"regexp"
	"strconv"
	"strings"
)

var (
	machinePattern = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$`)
	hashPattern    = regexp.MustCompile(`^sha256:[0-9a-f]{64}$`)
	keyPattern     = regexp.MustCompile(`^[0-9a-f]{64}$`)
	modePattern    = regexp.MustCompile(`^0[0-7]{3}$`)
	pathPattern    = regexp.MustCompile(`^/[^\x00-\x1f\x7f]*$`)
)

// check refuses what would come to light on the machine only, minutes later and in a log that nobody sees.
func (j Join) check() error {
	host, port, err := net.SplitHostPort(j.Endpoint)
	number, errPort := strconv.Atoi(port)
	switch {
	case !machinePattern.MatchString(j.Machine):
		return fmt.Errorf("machine name %q is not a DNS label, which kubeadm wants of a Node", j.Machine)
	case err != nil || errPort != nil || host == "" || number < 1 || number > 65535:
		return fmt.Errorf("endpoint %q is not host:port; it is controlPlaneEndpoint of kubeadm-config", j.Endpoint)
	case j.Spec.BindPort < 1 || j.Spec.BindPort > 65535:
		return fmt.Errorf("bindPort %d is not between 1 and 65535", j.Spec.BindPort)
	case !cleanPath(j.Spec.KubeadmPath):
		return fmt.Errorf("kubeadmPath %q is not an absolute path without . and .. parts", j.Spec.KubeadmPath)
	}
	return errors.Join(j.checkCredentials(), j.checkFiles())
}

func (j Join) checkCredentials() error {
	if !j.Token.valid() {
		return errToken
	}
	if !keyPattern.MatchString(string(j.CertificateKey)) {
		return errors.New("the certificate key is not 32 bytes in hexadecimal")
	}
	if len(j.CACertHashes) == 0 {
		return errors.New("there is no hash of the cluster's CA, so the machine could join a cluster of someone else")
	}
	for _, hash := range j.CACertHashes {
		if !hashPattern.MatchString(hash) {
			return fmt.Errorf("CA hash %q is not sha256: with 64 hexadecimal digits", hash)
		}
	}
	return nil
}

// file is one of the spec's files with its content.
type file struct {
	Path, Mode string
	Content    Secret
}

func (j Join) files() []file {
	out := make([]file, len(j.Spec.Files))
	for i, f := range j.Spec.Files {
		out[i] = file{Path: f.Path, Mode: f.Mode, Content: j.Contents[f.Path]}
		if f.Mode == "" {
			out[i].Mode = "0600"
		}
	}
	return out
}

func (j Join) checkFiles() error {
	seen := map[string]bool{}
	var errs []error
	for _, f := range j.files() {
		_, given := j.Contents[f.Path]
		switch reason := taken(f.Path); {
		case !cleanPath(f.Path):
			errs = append(errs, fmt.Errorf("file %q is not an absolute path without . and .. parts", f.Path))
		case reason != "":
			errs = append(errs, fmt.Errorf("file %s can't be brought: %s", f.Path, reason))
		case seen[f.Path]:
			errs = append(errs, fmt.Errorf("file %s comes twice", f.Path))
		case !given:
			errs = append(errs, fmt.Errorf("file %s: its content was not read from its Secret", f.Path))
		case !modePattern.MatchString(f.Mode):
			errs = append(errs, fmt.Errorf("file %s: mode %q is not an octal text such as 0600", f.Path, f.Mode))
		}
		seen[f.Path] = true
	}
	return errors.Join(errs...)
}

// taken says why a path is not the user's to fill: kubeadm refuses to join where it finds these files
// (cmd/kubeadm/app/preflight/checks.go, InitNodeChecks and JoinNodeChecks), or the join would do nothing.
func taken(name string) string {
	dir, base := path.Split(name)
	switch dir {
	case "/run/theseus/":
		return "the join keeps its own files there"
	case "/etc/kubernetes/":
		if base == "kubelet.conf" || base == "bootstrap-kubelet.conf" {
			return "it marks a machine that has joined"
		}
	case "/etc/kubernetes/manifests/":
		switch base {
		case "etcd.yaml", "kube-apiserver.yaml", "kube-controller-manager.yaml", "kube-scheduler.yaml":
			return "kubeadm makes it, and does not join where it is already; change ClusterConfiguration in kubeadm-config instead"
		}
	}
	if strings.HasPrefix(name, "/var/lib/etcd/") {
		return "etcd's data folder must be empty"
	}
	return ""
}

func cleanPath(name string) bool { return pathPattern.MatchString(name) && path.Clean(name) == name }
