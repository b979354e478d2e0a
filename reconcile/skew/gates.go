// SPDX-License-Identifier: Apache-2.0

package skew

import (
	_ "embed"
	"fmt"
	"strings"
)

// GateFate is what a program makes of a feature gate that its configuration sets.
type GateFate int

const (
	// GateTaken is a gate that the program knows and lets be set so, or one of which nothing is known here.
	GateTaken GateFate = iota
	// GateUnknown is a gate that the program does not know: it was removed, or is of a later version.
	GateUnknown
	// GateLocked is a gate that can no longer be set to anything but its default.
	GateLocked
)

// gate is when a program has a feature gate: from the first minor to the last, locked to value from the minor lock on,
// 0 for never.
type gate struct {
	first, last, lock uint64
	value             bool
}

// Newest minors that the tables below were made from. Later ones may have gates that are not in them.
const (
	kubeadmGatesTo = 38
	kubeletGatesTo = 38
	// Of kubelets before this one only its own list was read.
	kubeletGatesFrom = 33
)

// kubeadmGates are those of kubeadm 1.31 and later, from cmd/kubeadm/app/features/features.go of v1.33.13, v1.34.4, v1.35.4,
// v1.36.3, v1.37.2 and v1.38.0-beta.0; before 1.33 from https://kubernetes.io/docs/reference/setup-tools/kubeadm/kubeadm-init/#feature-gates.
//
//nolint:gochecknoglobals // read-only table
var kubeadmGates = map[string]gate{
	"ControlPlaneKubeletLocalMode":     {first: 31, last: 35, lock: 35, value: true},
	"EtcdLearnerMode":                  {first: 27, last: 32, lock: 32, value: true},
	"NodeLocalCRISocket":               {first: 32, last: 36, lock: 36, value: true},
	"PublicKeysECDSA":                  {first: 19, last: 36},
	"RootlessControlPlane":             {first: 22, last: kubeadmGatesTo},
	"WaitForAllControlPlaneComponents": {first: 30, last: 34, lock: 34, value: true},
}

//go:embed kubelet_gates.txt
var kubeletGates string

// KubeadmGate tells what kubeadm of that Kubernetes, 1.31 or later, makes of a gate in ClusterConfiguration.
func KubeadmGate(kubernetes Version, name string, value bool) GateFate {
	g, known := kubeadmGates[name]
	if !known && kubernetes.Minor > kubeadmGatesTo {
		return GateTaken
	}
	return g.fate(kubernetes.Minor, kubeadmGatesTo, value)
}

// KubeletGate tells what the kubelet of that Kubernetes makes of a gate in KubeletConfiguration. A kubelet does not start
// with a gate that it does not know, nor with one set against its lock.
func KubeletGate(kubernetes Version, name string, value bool) GateFate {
	if name == "AllAlpha" || name == "AllBeta" || kubernetes.Minor < kubeletGatesFrom {
		return GateTaken
	}
	g, known := kubeletGate(name)
	if !known && kubernetes.Minor > kubeletGatesTo {
		return GateTaken
	}
	return g.fate(kubernetes.Minor, kubeletGatesTo, value)
}

// fate of a gate in a table that reaches to a minor. A gate that is in the table's newest minor may live on in later ones.
func (g gate) fate(minor, to uint64, value bool) GateFate {
	switch {
	case minor < g.first || minor > g.last && g.last != to:
		return GateUnknown
	case g.lock != 0 && minor >= g.lock && value != g.value:
		return GateLocked
	}
	return GateTaken
}

// kubeletGate finds a gate's line in the table.
func kubeletGate(name string) (gate, bool) {
	if name == "" || strings.ContainsAny(name, " \n#") {
		return gate{}, false
	}
	_, rest, found := strings.Cut(kubeletGates, "\n"+name+" ")
	if !found {
		return gate{}, false
	}
	line, _, _ := strings.Cut(rest, "\n")
	var g gate
	if n, _ := fmt.Sscanf(line, "%d %d %d %t", &g.first, &g.last, &g.lock, &g.value); n < 2 {
		return gate{}, false
	}
	return g, true
}
