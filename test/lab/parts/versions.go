// SPDX-License-Identifier: Apache-2.0

package parts

import "fmt"

// cniVersion is of the network plugins; any Kubernetes does with it.
const cniVersion = "v1.10.0"

// Versions are what one Kubernetes version is put together with. Names of images
// are those that kubeadm of that version looks for.
type Versions struct {
	Kubernetes string
	Etcd       string
	// EtcdTag is the image's, which has a build number.
	EtcdTag string
	Pause   string
	// CoreDNS are the versions that a cluster may move between; the first is
	// kubeadm's own.
	CoreDNS []string
}

// First is the Kubernetes version that the lab's clusters begin with, Second the one that they go on to.
const (
	First  = "v1.36.3"
	Second = "v1.37.2"
)

// Supported are the Kubernetes versions that the lab can build. A new one is an
// entry here and a mod file in parts/kubernetes.
func Supported() []Versions {
	return []Versions{{
		Kubernetes: First,
		// kubeadm's own default is 3.6.8, which is too old to go on to etcd 3.7.
		Etcd: "v3.6.16", EtcdTag: "3.6.16-0",
		Pause:   "3.10.2",
		CoreDNS: []string{"v1.14.2", "v1.14.6"},
	}, {
		Kubernetes: Second,
		Etcd:       "v3.7.3", EtcdTag: "3.7.3-0",
		Pause:   "3.10.2",
		CoreDNS: []string{"v1.14.6", "v1.14.2"},
	}}
}

// Machine is a machine image that the lab's scenarios use.
type Machine struct {
	Release    Release
	Kubernetes string
}

// Machines are all of them: a new base image alone, and a new version with it.
func Machines() []Machine {
	return []Machine{{Debian12, First}, {Debian13, First}, {Debian13, Second}}
}

// VersionsOf looks a Kubernetes version up.
func VersionsOf(kubernetes string) (Versions, error) {
	var known []string
	for _, v := range Supported() {
		if v.Kubernetes == kubernetes {
			return v, nil
		}
		known = append(known, v.Kubernetes)
	}
	return Versions{}, fmt.Errorf("kubernetes %q: the lab builds %v only: add it to parts.Supported", kubernetes, known)
}

// EnvtestPart is the folder for envtest with this version's parts.
func (v Versions) EnvtestPart() Part { return Envtest(Kubernetes(v.Kubernetes), Etcd(v.Etcd)) }
