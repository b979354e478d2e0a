// SPDX-License-Identifier: Apache-2.0

package spec

// Release is a named set of versions that clusters refer to by spec.release.
type Release struct {
	APIVersion string          `json:"apiVersion" required:"true" enum:"theseus.dev/v1alpha1" desc:"Version of this format."`
	Kind       string          `json:"kind" required:"true" enum:"Release" desc:"Kind of this document."`
	Metadata   ReleaseMetadata `json:"metadata" required:"true" desc:"Name of the release."`
	Spec       ReleaseSpec     `json:"spec" required:"true" acts:"stages" desc:"The versions. A cluster's own field wins."`
}

// ReleaseMetadata names a release.
type ReleaseMetadata struct {
	Name string `json:"name" required:"true" format:"dns-label" desc:"Name, as in the clusters' spec.release."`
}

// ReleaseSpec is the content of a Release.
type ReleaseSpec struct {
	KubernetesVersion Version    `json:"kubernetesVersion,omitzero" desc:"Kubernetes version of machines, API server and all."`
	BaseImage         string     `json:"baseImage,omitzero" desc:"Logical name of fleet.images, or an image id; {kubernetesVersion} is replaced."`
	CoreDNS           ReleaseTag `json:"coreDNS" default:"{}" desc:"CoreDNS of the release."`
	Etcd              ReleaseTag `json:"etcd" default:"{}" desc:"etcd of the release."`
	Hops              []Hop      `json:"hops,omitzero" desc:"Stops on the way when more than one Kubernetes minor is crossed."`
}

// ReleaseTag is the version of one image.
type ReleaseTag struct {
	ImageTag string `json:"imageTag,omitzero" format:"oci-tag" desc:"Tag of the image."`
}

// Hop is a stop at one Kubernetes minor between the live and the wanted version.
type Hop struct {
	KubernetesVersion Version `json:"kubernetesVersion" required:"true" desc:"Kubernetes version of the hop."`
	BaseImage         string  `json:"baseImage,omitzero" desc:"Base image of the hop; omitted: the cluster's, with {kubernetesVersion} replaced by the hop's."`
	EtcdImageTag      string  `json:"etcdImageTag,omitzero" format:"oci-tag" desc:"etcd image tag of the hop; omitted: what kubeadm of that version ships."`
}
