// SPDX-License-Identifier: Apache-2.0

// Package live holds what was observed of a cluster, as plain values.
// It does not observe (executors do) and does not decide (rollout does).
// Start at Cluster: a nil view means "not observed", which never satisfies a precondition.
package live

import (
	"time"

	"github.com/theseus-gitops/theseus/reconcile/logbook"
)

// Cluster is all that one pass knows of a cluster. A nil view was not observed.
type Cluster struct {
	Kube     *Kube
	Machines *Machines
	// Etcd can only be observed with credentials, which a roll obtains.
	Etcd *Etcd
}

// Kube is what the Kubernetes API said. A nil object inside it does not exist in the cluster.
type Kube struct {
	// ServerVersion is the gitVersion of the API server that answered, "v1.36.3".
	ServerVersion string
	Nodes         []Node
	KubeadmConfig *KubeadmConfig
	KubeletConfig *ConfigMap
	KubeProxy     *KubeProxy
	DNS           DNS
	// Plane is nil when the spec leaves the machines alone.
	Plane *Plane
	// Book is the logbook; its zero value when the ConfigMap does not exist.
	Book logbook.Book
	// BookVersion is the logbook ConfigMap's resourceVersion, "" when it does not exist.
	BookVersion string
}

// Node is one Kubernetes Node.
type Node struct {
	Name           string
	ControlPlane   bool
	Ready          bool
	Schedulable    bool
	KubeletVersion string
	OSImage        string
	ProviderID     string
	Addresses      []string
	Created        time.Time
	Labels         map[string]string
	Taints         []Taint
	// Leaving is the value of LeavingAnnotation, "" when the node does not carry it.
	Leaving string
}

// Taint keeps pods without a matching toleration away from a Node.
type Taint struct{ Key, Value, Effect string }

// ConfigMap is a ConfigMap of which only the texts matter.
type ConfigMap struct {
	ResourceVersion string
	Data            map[string]string
}

// KubeadmConfig is ConfigMap kube-system/kubeadm-config, with the fields of its
// ClusterConfiguration that a decision needs.
type KubeadmConfig struct {
	ResourceVersion string
	// ClusterConfiguration is the document's text, kept whole for the logbook.
	ClusterConfiguration string
	APIVersion           string
	KubernetesVersion    string
	ImageRepository      string
	// DNSDomain is networking.dnsDomain, "cluster.local" when unset.
	DNSDomain string
	DNS       KubeadmDNS
}

// KubeadmDNS is the dns section of a ClusterConfiguration.
type KubeadmDNS struct {
	Disabled        bool   `json:"disabled,omitempty"`
	ImageRepository string `json:"imageRepository,omitempty"`
	ImageTag        string `json:"imageTag,omitempty"`
}

// KubeProxy is DaemonSet kube-system/kube-proxy and its ConfigMap.
type KubeProxy struct {
	ResourceVersion string
	Image           string
	// Rollout counts nodes in place of replicas. Paused stands for update strategy OnDelete: nothing is then replaced by itself.
	Rollout Rollout
	Config  *ConfigMap
}
