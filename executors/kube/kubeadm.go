// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"cmp"
	"errors"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"github.com/theseus-gitops/theseus/reconcile/live"
)

const (
	clusterConfigurationKey = "ClusterConfiguration"
	// dnsDomain is kubeadm's default of networking.dnsDomain.
	dnsDomain = "cluster.local"
)

// clusterConfiguration has the fields of kubeadm's document that a decision needs. They mean the same in
// v1beta3 and v1beta4; dns.disabled came with v1beta4.
type clusterConfiguration struct {
	APIVersion        string `json:"apiVersion"`
	Kind              string `json:"kind"`
	KubernetesVersion string `json:"kubernetesVersion"`
	ImageRepository   string `json:"imageRepository"`
	Networking        struct {
		DNSDomain string `json:"dnsDomain"`
	} `json:"networking"`
	DNS live.KubeadmDNS `json:"dns"`
}

func kubeadmConfigOf(m *corev1.ConfigMap) (*live.KubeadmConfig, error) {
	if m == nil {
		return nil, nil
	}
	text := m.Data[clusterConfigurationKey]
	parsed, err := parseClusterConfiguration(text)
	if err != nil {
		return nil, &DamagedError{
			Object: "configmap/kubeadm-config in namespace kube-system",
			cause:  err,
			Remedy: "repair it with \"kubectl -n kube-system edit configmap kubeadm-config\", or write it anew with \"kubeadm init phase upload-config kubeadm --config FILE\"",
		}
	}
	return &live.KubeadmConfig{
		ResourceVersion:      m.ResourceVersion,
		ClusterConfiguration: text,
		APIVersion:           parsed.APIVersion,
		KubernetesVersion:    parsed.KubernetesVersion,
		ImageRepository:      parsed.ImageRepository,
		DNSDomain:            cmp.Or(parsed.Networking.DNSDomain, dnsDomain),
		DNS:                  parsed.DNS,
	}, nil
}

func parseClusterConfiguration(text string) (clusterConfiguration, error) {
	var out clusterConfiguration
	if strings.TrimSpace(text) == "" {
		return out, fmt.Errorf("key %s is missing or empty", clusterConfigurationKey)
	}
	if err := yaml.Unmarshal([]byte(text), &out); err != nil {
		return out, fmt.Errorf("key %s is not readable: %w", clusterConfigurationKey, err)
	}
	switch {
	case out.Kind != clusterConfigurationKey:
		return out, fmt.Errorf("key %s holds kind %q", clusterConfigurationKey, out.Kind)
	case out.APIVersion != "kubeadm.k8s.io/v1beta3" && out.APIVersion != "kubeadm.k8s.io/v1beta4":
		return out, fmt.Errorf("key %s is of API version %q; known are kubeadm.k8s.io/v1beta3 and v1beta4", clusterConfigurationKey, out.APIVersion)
	case out.KubernetesVersion == "":
		return out, errors.New("key " + clusterConfigurationKey + " names no kubernetesVersion")
	}
	return out, nil
}
