// SPDX-License-Identifier: Apache-2.0

package skew

import "fmt"

// kubeadmEtcd is the tag of etcd's image that kubeadm of each Kubernetes patch deploys, from DefaultEtcdVersion in
// kubernetes/kubernetes cmd/kubeadm/app/constants/constants.go at that tag. It moves within a minor, so only patches that
// were read are here.
//
//nolint:gochecknoglobals // read-only table
var kubeadmEtcd = map[string]string{
	"v1.31.14": "3.5.24-0",
	"v1.32.13": "3.5.24-0",
	"v1.33.13": "3.5.24-0",
	"v1.34.0":  "3.6.4-0",
	"v1.34.4":  "3.6.5-0",
	"v1.35.0":  "3.6.6-0",
	"v1.35.4":  "3.6.6-0",
	"v1.36.0":  "3.6.8-0",
	"v1.36.3":  "3.6.8-0",
	"v1.37.0":  "3.7.0-0",
	"v1.37.2":  "3.7.0-0",
}

// KubeadmEtcd is the tag of etcd's image that kubeadm of exactly that Kubernetes deploys by itself, "" when it is not known.
func KubeadmEtcd(kubernetes Version) string { return kubeadmEtcd[kubernetes.String()] }

// EtcdBase says why members of version from must not see one of version to join them, "" when they may. etcd goes up one
// minor at a time. Before 3.6 every member must have at least 3.5.26, or members that were removed come back
// (etcd-io/etcd#20967) and promotions are lost (etcd-io/etcd#19557); before 3.7 at least 3.6.11 (etcd-io/website#1165, #1168).
func EtcdBase(from, to Version) string {
	least := Version{}
	switch {
	case to.Major != from.Major || to.Minor > from.Minor+1:
		return fmt.Sprintf("etcd goes up one minor at a time, from %s to %d.%d first", bare(from), from.Major, from.Minor+1)
	case to.Minor <= from.Minor:
		return ""
	case to.Minor == 6:
		least = Version{Major: 3, Minor: 5, Patch: 26}
	case to.Minor == 7:
		least = Version{Major: 3, Minor: 6, Patch: 11}
	}
	if from.Core().Compare(least) < 0 {
		return fmt.Sprintf("etcd %d.%d needs every member to have %s or later before", to.Major, to.Minor, bare(least))
	}
	return ""
}

// bare is a version as etcd writes it.
func bare(v Version) string { return v.String()[1:] }
