// SPDX-License-Identifier: Apache-2.0

package skew

// kubeadmCoreDNS is the CoreDNS that kubeadm of each Kubernetes minor deploys, from CoreDNSVersion in
// kubernetes/kubernetes cmd/kubeadm/app/constants/constants.go at the newest patch read of each minor.
//
//nolint:gochecknoglobals // read-only table
var kubeadmCoreDNS = map[uint64]Version{
	22: {Major: 1, Minor: 8, Patch: 4},
	23: {Major: 1, Minor: 8, Patch: 6},
	24: {Major: 1, Minor: 8, Patch: 6},
	25: {Major: 1, Minor: 9, Patch: 3},
	26: {Major: 1, Minor: 9, Patch: 3},
	27: {Major: 1, Minor: 10, Patch: 1},
	28: {Major: 1, Minor: 10, Patch: 1},
	29: {Major: 1, Minor: 11, Patch: 1},
	30: {Major: 1, Minor: 11, Patch: 3},
	31: {Major: 1, Minor: 11, Patch: 3},
	32: {Major: 1, Minor: 11, Patch: 3},
	33: {Major: 1, Minor: 12, Patch: 0},
	34: {Major: 1, Minor: 12, Patch: 1},
	35: {Major: 1, Minor: 13, Patch: 1},
	36: {Major: 1, Minor: 14, Patch: 2},
	37: {Major: 1, Minor: 14, Patch: 6},
	38: {Major: 1, Minor: 15, Patch: 0},
}

// KubeadmCoreDNS returns the CoreDNS version that kubeadm of that Kubernetes minor deploys by default, and whether it is
// known. A later patch of the same minor may ship a newer one, so the answer is good for a hint ("the wanted tag is older
// than what this Kubernetes ships", kubernetes-sigs/cluster-api#6429), never for a decision.
func KubeadmCoreDNS(kubernetes Version) (Version, bool) {
	if kubernetes.Major != 1 {
		return Version{}, false
	}
	v, ok := kubeadmCoreDNS[kubernetes.Minor]
	return v, ok
}
