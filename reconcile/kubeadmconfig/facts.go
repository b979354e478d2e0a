// SPDX-License-Identifier: Apache-2.0

package kubeadmconfig

import (
	"fmt"
	"slices"
	"strings"
)

// Facts are what a ClusterConfiguration says of joins.
type Facts struct {
	// KubernetesVersion is what machines that join will run, "v1.36.3".
	KubernetesVersion string
	// Endpoint is controlPlaneEndpoint, with port 6443 where it names none.
	Endpoint string
	// EtcdImageTag is that of etcd.local, "" when kubeadm chooses.
	EtcdImageTag string
	// ExternalEtcd: the members are not on the machines.
	ExternalEtcd bool
	// CertificatesDir is where the certificates are on machines.
	CertificatesDir string
	// HostFiles are the files and folders of the host that the static pods mount by extraVolumes, sorted.
	HostFiles []string
}

// Read gives the facts of a ClusterConfiguration.
func Read(text string) (Facts, error) {
	config, err := decode(text)
	if err != nil {
		return Facts{}, err
	}
	if _, err := versionOf(config); err != nil {
		return Facts{}, err
	}
	var out Facts
	out.KubernetesVersion, _ = config["kubernetesVersion"].(string)
	out.Endpoint, _ = config["controlPlaneEndpoint"].(string)
	if out.Endpoint != "" && !hasPort(out.Endpoint) {
		out.Endpoint = fmt.Sprintf("%s:%d", out.Endpoint, defaultPort)
	}
	out.EtcdImageTag, _ = at(config, "etcd", "local", "imageTag").(string)
	out.ExternalEtcd = at(config, "etcd", "external") != nil
	if out.CertificatesDir, _ = config["certificatesDir"].(string); out.CertificatesDir == "" {
		out.CertificatesDir = "/etc/kubernetes/pki"
	}
	for _, component := range []string{"apiServer", "controllerManager", "scheduler"} {
		volumes, _ := at(config, component, "extraVolumes").([]any)
		for _, v := range volumes {
			if path, _ := at(v, "hostPath").(string); path != "" && !slices.Contains(out.HostFiles, path) {
				out.HostFiles = append(out.HostFiles, path)
			}
		}
	}
	slices.Sort(out.HostFiles)
	return out, nil
}

const defaultPort = 6443

// hasPort tells host:port and [v6]:port from a bare host.
func hasPort(endpoint string) bool {
	colon := strings.LastIndexByte(endpoint, ':')
	return colon >= 0 && !strings.HasSuffix(endpoint, "]") && (strings.Count(endpoint, ":") == 1 || strings.HasPrefix(endpoint, "["))
}
