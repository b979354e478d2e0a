// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"bytes"
	"context"
	"embed"
	"fmt"
	"strings"
	"text/template"

	"github.com/theseus-gitops/theseus/test/lab/parts"
)

// CoreDNSTag is the CoreDNS that a new lab starts with, and that kubeadm of the lab's first version brings itself.
const CoreDNSTag = "v1.14.2"

//go:embed init.yaml join.yaml
var userDataFiles embed.FS

// userData is a machine's cloud-config: kubeadm init for the first, with kubeadm's configuration; kubeadm join for others.
func (c *Cluster) userData(ctx context.Context, machine string, first bool) (string, error) {
	if first {
		return c.initData(machine)
	}
	return c.joinData(ctx, machine)
}

func (c *Cluster) initData(machine string) (string, error) {
	versions, err := parts.VersionsOf(c.options.Kubernetes)
	if err != nil {
		return "", err
	}
	return fill("init.yaml", map[string]any{
		"Cluster": c.Name, "Kubernetes": versions.Kubernetes, "EtcdTag": versions.EtcdTag, "CoreDNSTag": CoreDNSTag,
		"Endpoint": c.Config.EndpointAddress(), "Pods": c.Config.Pods.String(), "Services": c.Config.Services.String(),
		"Machine": machine, "HealthChecked": c.options.HealthChecked,
	})
}

// joinData has the first machine's kubeadm make a token and upload the cluster's certificates.
func (c *Cluster) joinData(ctx context.Context, machine string) (string, error) {
	const config = "--kubeconfig=/etc/kubernetes/admin.conf"
	command, err := c.Exec(ctx, c.machine(1), "kubeadm", "token", "create", "--print-join-command", "--ttl=30m", config)
	if err != nil {
		return "", err
	}
	// kubeadm join ENDPOINT --token TOKEN --discovery-token-ca-cert-hash HASH
	words := strings.Fields(command)
	if len(words) != 7 || words[3] != "--token" || words[5] != "--discovery-token-ca-cert-hash" {
		return "", fmt.Errorf("kubeadm token create printed %q", words[:min(len(words), 3)])
	}
	uploaded, err := c.Exec(ctx, c.machine(1), "kubeadm", "init", "phase", "upload-certs", "--upload-certs", config)
	if err != nil {
		return "", err
	}
	lines := strings.Split(strings.TrimSpace(uploaded), "\n")
	return fill("join.yaml", map[string]any{
		"Endpoint": words[2], "Machine": machine, "Token": words[4], "CAHash": words[6], "CertificateKey": lines[len(lines)-1],
	})
}

func fill(name string, values map[string]any) (string, error) {
	t, err := template.New(name).Option("missingkey=error").ParseFS(userDataFiles, name)
	if err != nil {
		return "", fmt.Errorf("reading the user data's template: %w", err)
	}
	var out bytes.Buffer
	if err := t.Execute(&out, values); err != nil {
		return "", fmt.Errorf("filling in the user data: %w", err)
	}
	return out.String(), nil
}
