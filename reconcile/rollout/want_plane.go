// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/theseus-gitops/theseus/reconcile/live"
	"github.com/theseus-gitops/theseus/reconcile/skew"
)

// WantPlane is what the spec says of the control plane's machines.
type WantPlane struct {
	Replicas   int
	Kubernetes skew.Version
	// Image is the resolved id of the base image.
	Image string
	// ImageRepository of kubeadm's images and EtcdTag of etcd's; "" leaves what kubeadm-config has, or kubeadm's own.
	ImageRepository, EtcdTag string
	// FailureDomains are kept level; nil leaves new machines where the ones are that they replace.
	FailureDomains []string
	Values         map[string]string
	// Surge and Unavailable are how many machines there may be above and below Replicas during a roll.
	Surge, Unavailable int
	StableFor          time.Duration
	Timeouts           Timeouts
	// Attempts is how many machines may fail before the target is given up.
	Attempts int
	Consent  Consent
	// Snapshot tells that there is a place for etcd snapshots.
	Snapshot bool
	// RollAfter makes machines outdated that were created before it, once it has passed; zero for never.
	RollAfter time.Time
	// Files are the host files that a machine gets from its image or from the join.
	Files []string
	// Taints of new Nodes; nil: those of the present ones.
	Taints []live.Taint
	// EndsTLS: the endpoint ends TLS by itself, so that nobody can see which API server is behind it.
	EndsTLS bool
	// ApproveCSR: a new kubelet's serving certificate is approved when its names match.
	ApproveCSR bool
}

// Timeouts limit the waits of one machine's replacement, each from the start of its own.
type Timeouts struct{ Create, Join, Drain, Detach, Destroy time.Duration }

// Consent is to what a drain may destroy.
type Consent struct{ EmptyDir, Unmanaged, LocalVolumes bool }

// serves reports whether the domain is one that machines may be in.
func (w WantPlane) serves(domain string) bool {
	return len(w.FailureDomains) == 0 || slices.Contains(w.FailureDomains, domain)
}

// target names what machines are made for. Machines of another target are not, once made, wanted any more.
func (w WantPlane) target() string {
	text := fmt.Sprintf("control-plane %s, image %s", w.Kubernetes, w.Image)
	if w.EtcdTag != "" {
		text += ", etcd " + w.EtcdTag
	}
	if len(w.Values) > 0 {
		values, _ := json.Marshal(w.Values) // a map of texts has no way to fail
		sum := sha256.Sum256(values)
		text += ", values " + hex.EncodeToString(sum[:4])
	}
	return text
}
