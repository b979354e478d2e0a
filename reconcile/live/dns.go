// SPDX-License-Identifier: Apache-2.0

package live

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"time"
)

// Keys of ConfigMap kube-system/coredns, and the names that Theseus gives its own traces there.
const (
	CorefileKey       = "Corefile"
	CorefileBackupKey = "Corefile-backup"
	// DNSRunAnnotation on the ConfigMap holds a DNSRun as JSON.
	DNSRunAnnotation = "theseus.dev/coredns-run"
	// DNSChangedAnnotation on the Deployment is the RFC 3339 time of our last change of its pod template.
	DNSChangedAnnotation = "theseus.dev/coredns-changed"
	// DNSCanaryName is that of the canary's pod and of its ConfigMap.
	DNSCanaryName = "theseus-coredns-canary"
)

// DNS is everything of CoreDNS in kube-system. Nil means that it does not exist.
type DNS struct {
	Config     *DNSConfig
	Deployment *DNSDeployment
	Role       *DNSRole
	Pods       []DNSPod
	// Canary tells that a canary of ours is there: one is being tried, or a killed run left it.
	Canary bool
}

// DNSConfig is ConfigMap kube-system/coredns.
type DNSConfig struct {
	ResourceVersion string
	Data            map[string]string
	// BinaryKeys are the keys of binaryData, sorted.
	BinaryKeys []string
	// Run is the newest run recorded on it; nil when there never was one.
	Run *DNSRun
	// RunUnreadable is why the annotation could not be read, "" when it could.
	RunUnreadable string
	Manager       Manager
}

// DNSRun records one change of CoreDNS: opened after its canary answered and before the first write
// to ConfigMap or Deployment, closed when it was verified or undone. While it is open, a crash can't
// make the migrated Corefile look like the original.
type DNSRun struct {
	// From and To are the container's image before and after.
	From string `json:"from"`
	To   string `json:"to"`
	// Corefile is the Hash of the Corefile before the run.
	Corefile string `json:"corefile"`
	// Candidate is the Hash of the Corefile that the run brings; equal to Corefile when the text stays.
	Candidate string `json:"candidate"`
	// Items are the config volume's items before the run; nil when it had none.
	Items []VolumeItem `json:"items,omitempty"`
	// KubeadmDNS is the dns section of kubeadm-config before the run.
	KubeadmDNS KubeadmDNS `json:"kubeadmDNS"`
	// Answers are the accepted answer codes of the canary by question; verify asks for no less.
	Answers map[string]string `json:"answers,omitempty"`
	// Before is the verified run that brought From: where the way back goes on from there. Nil when none is known.
	Before *DNSRun   `json:"before,omitempty"`
	Opened time.Time `json:"opened"`
	// Closed is the zero time while the run is open.
	Closed time.Time `json:"closed,omitzero"`
}

// Open reports whether the run is still under way.
func (r *DNSRun) Open() bool { return r != nil && r.Closed.IsZero() }

// Hash is how a run refers to a Corefile: "sha256:" and the hex digest of its bytes.
func Hash(text string) string {
	sum := sha256.Sum256([]byte(text))
	return "sha256:" + hex.EncodeToString(sum[:])
}

// VolumeItem is one key of a ConfigMap volume and the file it becomes.
type VolumeItem struct {
	Key  string `json:"key"`
	Path string `json:"path"`
	Mode *int32 `json:"mode,omitempty"`
}

// DNSDeployment is Deployment kube-system/coredns.
type DNSDeployment struct {
	ResourceVersion string
	// Image is that of the container named coredns, "" when there is no such container.
	Image string
	// Containers are the names of all containers of the pod template, in order.
	Containers []string
	// Volume is the volume that mounts ConfigMap coredns; nil when there is none.
	Volume *ConfigVolume
	// Changed is the time of our last change of the pod template, zero when we made none.
	Changed time.Time
	Rollout Rollout
	Manager Manager
}

// ConfigVolume is a pod template's volume of ConfigMap coredns.
type ConfigVolume struct {
	Name  string
	Items []VolumeItem
}

// Key is the ConfigMap key that the volume shows as Corefile: CorefileKey or CorefileBackupKey,
// or "" when items name neither.
func (v ConfigVolume) Key() string {
	if v.Items == nil {
		return CorefileKey
	}
	for _, it := range v.Items {
		if it.Key == CorefileKey || it.Key == CorefileBackupKey {
			return it.Key
		}
	}
	return ""
}

// Rollout is the progress of a Deployment, as the Deployment controller reports it.
type Rollout struct {
	Generation         int64
	ObservedGeneration int64
	// Wanted is spec.replicas; the others count pods of status.
	Wanted, Total, Updated, Unavailable int32
	// Paused is spec.paused: the controller then brings no new pods.
	Paused bool
	// Stuck is the message of a Progressing condition that is False, "" otherwise.
	Stuck string
}

// Complete reports whether every wanted pod is of the newest template and available, and no other is left.
func (r Rollout) Complete() bool {
	return r.ObservedGeneration >= r.Generation && r.Updated == r.Wanted && r.Total == r.Wanted && r.Unavailable == 0
}

// DNSPod is one pod with the label k8s-app=kube-dns.
type DNSPod struct {
	Name     string
	Node     string
	Image    string
	Ready    bool
	Deleting bool
	// Created is when it was made.
	Created  time.Time
	Restarts int32
	// Waiting and Message say why the coredns container is not running, "CrashLoopBackOff".
	Waiting string
	Message string
	// LastWords are the last log lines of the crashed coredns container, "" when they were not asked for or there are none.
	LastWords string
	// Sidecar says which other container keeps the pod from being Ready, and why, when the coredns container is Ready or
	// was not given its turn; "" otherwise. It speaks of the pod and not of the CoreDNS that is wanted.
	Sidecar string
}

// DNSRole is ClusterRole system:coredns.
type DNSRole struct {
	ResourceVersion string
	Rules           []PolicyRule
}

// PolicyRule is one rule of a ClusterRole.
type PolicyRule struct {
	APIGroups, Resources, Verbs []string
}

// ReadsEndpointSlices reports whether the role may list and watch discovery.k8s.io/endpointslices,
// which CoreDNS needs from 1.8.1 on.
func (r DNSRole) ReadsEndpointSlices() bool {
	has := func(list []string, want string) bool {
		return slices.Contains(list, want) || slices.Contains(list, "*")
	}
	covers := func(verb string) bool {
		return slices.ContainsFunc(r.Rules, func(p PolicyRule) bool {
			return has(p.APIGroups, "discovery.k8s.io") && has(p.Resources, "endpointslices") && has(p.Verbs, verb)
		})
	}
	return covers("list") && covers("watch")
}
