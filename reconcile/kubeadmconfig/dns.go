// SPDX-License-Identifier: Apache-2.0

package kubeadmconfig

import (
	"fmt"
	"slices"
	"strings"

	"github.com/theseus-gitops/theseus/reconcile/live"
)

const kindName = "ClusterConfiguration"

// EditDNS returns a ClusterConfiguration with its dns section set to dns, and nothing else changed: keys it does
// not know, order and comments stay. In block style, which kubeadm writes, all bytes outside the section stay.
// An empty field of dns removes its key. It refuses what is not one ClusterConfiguration of kubeadm.k8s.io, and
// dns.disabled in versions before v1beta4, which don't have it.
//
// The section's fields mean the same in every version so far (v1beta1 to v1beta4):
// https://kubernetes.io/docs/reference/config-api/kubeadm-config.v1beta4/#kubeadm-k8s-io-v1beta4-DNS
func EditDNS(text string, dns live.KubeadmDNS) (string, error) {
	wanted := section{path: []string{"dns"}, fields: dnsFields(dns)}
	if _, err := parse(text, wanted.path); err != nil {
		return "", err
	}
	config, err := decode(text)
	if err != nil {
		return "", err
	}
	version, err := versionOf(config)
	if err != nil {
		return "", err
	}
	if dns.Disabled && slices.Contains([]string{"v1beta1", "v1beta2", "v1beta3"}, version) {
		return "", fmt.Errorf("dns.disabled can't be set: %s/%s does not have it, v1beta4 does", Group, version)
	}
	return wanted.set(text)
}

// versionOf is the version of a ClusterConfiguration, "v1beta4", and refuses what is none.
func versionOf(config map[string]any) (string, error) {
	version, _ := config["apiVersion"].(string)
	if kind, _ := config["kind"].(string); kind != kindName {
		return "", fmt.Errorf("kind is %q, not %s", kind, kindName)
	}
	name, ok := strings.CutPrefix(version, Group+"/")
	if !ok || name == "" {
		return "", fmt.Errorf("apiVersion is %q, not one of %s", version, Group)
	}
	return name, nil
}

func dnsFields(dns live.KubeadmDNS) []field {
	out := []field{{"disabled", "", "!!bool"}, {"imageRepository", dns.ImageRepository, "!!str"}, {"imageTag", dns.ImageTag, "!!str"}}
	if dns.Disabled {
		out[0].value = "true"
	}
	return out
}
