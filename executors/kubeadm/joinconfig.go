// SPDX-License-Identifier: Apache-2.0

package kubeadm

import (
	"fmt"

	kubeyaml "sigs.k8s.io/yaml"

	"github.com/theseus-gitops/theseus/reconcile/kubeadmconfig"
	"github.com/theseus-gitops/theseus/reconcile/skew"
	"github.com/theseus-gitops/theseus/reconcile/spec"
)

// The types below are the parts of kubeadm's JoinConfiguration that a control-plane machine needs:
// https://kubernetes.io/docs/reference/config-api/kubeadm-config.v1beta4/#kubeadm-k8s-io-v1beta4-JoinConfiguration
// v1beta3 differs in kubeletExtraArgs (a map) and timeouts (none for etcd).

type joinConfiguration struct {
	APIVersion       string           `json:"apiVersion"`
	Kind             string           `json:"kind"`
	NodeRegistration nodeRegistration `json:"nodeRegistration"`
	Discovery        discovery        `json:"discovery"`
	ControlPlane     joinControlPlane `json:"controlPlane"`
	Timeouts         *joinTimeouts    `json:"timeouts,omitempty"`
}

type nodeRegistration struct {
	Name      string `json:"name"`
	CRISocket string `json:"criSocket,omitempty"`
	// Taints: without the key kubeadm sets the control plane's taint, with an empty list none.
	Taints []taint `json:"taints,omitzero"`
	// KubeletExtraArgs is []argument, or map[string]string in v1beta3.
	KubeletExtraArgs      any      `json:"kubeletExtraArgs,omitempty"`
	IgnorePreflightErrors []string `json:"ignorePreflightErrors,omitempty"`
}

type taint struct {
	Key    string `json:"key"`
	Value  string `json:"value,omitempty"`
	Effect string `json:"effect"`
}

type argument struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

type discovery struct {
	BootstrapToken bootstrapTokenDiscovery `json:"bootstrapToken"`
}

type bootstrapTokenDiscovery struct {
	Token             string   `json:"token"`
	APIServerEndpoint string   `json:"apiServerEndpoint"`
	CACertHashes      []string `json:"caCertHashes"`
}

type joinControlPlane struct {
	LocalAPIEndpoint localAPIEndpoint `json:"localAPIEndpoint"`
	CertificateKey   string           `json:"certificateKey"`
}

type localAPIEndpoint struct {
	BindPort int `json:"bindPort"`
}

type joinTimeouts struct {
	EtcdAPICall string `json:"etcdAPICall"`
}

// etcdAPICall is how long kubeadm tries to have its new member promoted. Its own 2 minutes are too short for a large
// database on a slow disk (kubernetes/kubeadm#2997), and a join that failed there can't be tried again.
const etcdAPICall = "5m0s"

// apiVersion is the newest version of kubeadm's types that kubeadm of that Kubernetes reads: v1beta3 from 1.22, v1beta4
// from 1.31. v1beta3 is gone in 1.37 (kubernetes/kubernetes#136016).
func apiVersion(kubernetes skew.Version) (string, error) {
	switch {
	case kubernetes.Major != 1 || kubernetes.Minor < 22:
		return "", fmt.Errorf("kubeadm of Kubernetes %s reads no configuration that is understood here; allowed: v1.22 and later", kubernetes)
	case kubernetes.Minor < 31:
		return kubeadmconfig.Group + "/v1beta3", nil
	}
	return kubeadmconfig.Group + "/v1beta4", nil
}

// configuration is the machine's JoinConfiguration as YAML.
func (j Join) configuration() (string, error) {
	version, err := apiVersion(j.Kubernetes)
	if err != nil {
		return "", err
	}
	registration := j.Spec.NodeRegistration
	out := joinConfiguration{
		APIVersion:       version,
		Kind:             "JoinConfiguration",
		NodeRegistration: nodeRegistration{Name: j.Machine, CRISocket: registration.CRISocket, IgnorePreflightErrors: j.IgnorePreflightErrors},
		Discovery: discovery{bootstrapTokenDiscovery{
			Token: j.Token.text(), APIServerEndpoint: j.Endpoint, CACertHashes: j.CACertHashes,
		}},
		ControlPlane: joinControlPlane{LocalAPIEndpoint: localAPIEndpoint{j.Spec.BindPort}, CertificateKey: string(j.CertificateKey)},
	}
	if registration.Taints != nil {
		out.NodeRegistration.Taints = make([]taint, len(registration.Taints))
		for i, t := range registration.Taints {
			out.NodeRegistration.Taints[i] = taint(t)
		}
	}
	if version == kubeadmconfig.Group+"/v1beta4" {
		out.Timeouts = &joinTimeouts{EtcdAPICall: etcdAPICall}
		out.NodeRegistration.KubeletExtraArgs = argumentList(registration.KubeletExtraArgs)
	} else if out.NodeRegistration.KubeletExtraArgs, err = argumentMap(registration.KubeletExtraArgs); err != nil {
		return "", fmt.Errorf("%w: kubeadm of Kubernetes %s keeps them in a map", err, j.Kubernetes)
	}
	text, err := kubeyaml.Marshal(out)
	if err != nil {
		return "", fmt.Errorf("print JoinConfiguration: %w", err)
	}
	return string(text), nil
}

func argumentList(args []spec.Argument) any {
	if len(args) == 0 {
		return nil
	}
	out := make([]argument, len(args))
	for i, a := range args {
		out[i] = argument{a.Name, a.Value}
	}
	return out
}

func argumentMap(args []spec.Argument) (any, error) {
	if len(args) == 0 {
		return nil, nil //nolint:nilnil // no arguments, no key
	}
	out := map[string]string{}
	for _, a := range args {
		if _, twice := out[a.Name]; twice {
			return nil, fmt.Errorf("kubeletExtraArgs name %q comes twice", a.Name)
		}
		out[a.Name] = a.Value
	}
	return out, nil
}
