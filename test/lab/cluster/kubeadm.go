// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"bytes"
	_ "embed"
	"fmt"
	"text/template"

	"github.com/theseus-gitops/theseus/test/lab/parts"
)

// CoreDNSTag is the CoreDNS that a new lab starts with, and that kubeadm of the lab's first version brings itself.
const CoreDNSTag = "v1.14.2"

//go:embed userdata.yaml
var userDataTemplate string

// userData is the first machine's cloud-config: kubeadm's configuration, and kubeadm init.
func (c *Cluster) userData() (string, error) {
	versions, err := parts.VersionsOf(c.options.Kubernetes)
	if err != nil {
		return "", err
	}
	t, err := template.New("userdata.yaml").Option("missingkey=error").Parse(userDataTemplate)
	if err != nil {
		return "", fmt.Errorf("reading the user data's template: %w", err)
	}
	var out bytes.Buffer
	err = t.Execute(&out, map[string]any{
		"Cluster": c.Name, "Kubernetes": versions.Kubernetes, "EtcdTag": versions.EtcdTag, "CoreDNSTag": CoreDNSTag,
		"Endpoint": c.Config.EndpointAddress(), "Pods": c.Config.Pods, "Services": c.Config.Services,
		"Machine": c.machine(),
	})
	if err != nil {
		return "", fmt.Errorf("filling in the user data: %w", err)
	}
	return out.String(), nil
}
