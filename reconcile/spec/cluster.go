// SPDX-License-Identifier: Apache-2.0

package spec

// Cluster is what is wanted of one cluster.
type Cluster struct {
	APIVersion string      `json:"apiVersion" required:"true" enum:"theseus.dev/v1alpha1" desc:"Version of this format."`
	Kind       string      `json:"kind" required:"true" enum:"Cluster" desc:"Kind of this document."`
	Metadata   Metadata    `json:"metadata" required:"true" desc:"Name and labels of the cluster."`
	Spec       ClusterSpec `json:"spec" required:"true" desc:"What is wanted."`
}

// Metadata names a cluster and labels it for the selectors of stages.
type Metadata struct {
	Name   string            `json:"name" required:"true" format:"dns-label" desc:"Name of the cluster, unique in the fleet; also the beginning of its machines' names."`
	Labels map[string]string `json:"labels,omitempty" keys:"label-key" format:"label-value" empty:"true" desc:"Labels, for the selectors of stages."`
}

// ClusterSpec is the content of a Cluster.
type ClusterSpec struct {
	Release           string        `json:"release,omitzero" acts:"stages" format:"dns-label" desc:"Release that gives the versions which this spec leaves out."`
	KubernetesVersion Version       `json:"kubernetesVersion,omitzero" needed:"true" acts:"control plane" desc:"Kubernetes version of machines, API server and all; needed, here or by the release."`
	BaseImage         string        `json:"baseImage,omitzero" acts:"control plane" desc:"Logical name of fleet.images (then place is needed), or an image id; {kubernetesVersion} is replaced."`
	Place             string        `json:"place,omitzero" acts:"control plane" desc:"Which id of fleet.images."`
	Hops              []Hop         `json:"hops,omitzero" acts:"whole clusters" desc:"One stop per Kubernetes minor between live and wanted; needed when more than one minor is crossed and the known versions can't fill it."`
	ImageRepository   string        `json:"imageRepository,omitzero" acts:"control plane" format:"image-repository" desc:"Repository of kubeadm's images."`
	CoreDNS           CoreDNS       `json:"coreDNS" default:"{}" acts:"main job" desc:"CoreDNS of the cluster."`
	Etcd              Etcd          `json:"etcd" default:"{}" acts:"control plane" desc:"etcd of the cluster."`
	ControlPlane      *ControlPlane `json:"controlPlane,omitzero" acts:"control plane" desc:"Control-plane machines and how they are replaced."`
	Workers           []Worker      `json:"workers,omitempty" acts:"whole clusters" unique:"name" desc:"Worker pools, in the order in which they are rolled."`
	Endpoint          Endpoint      `json:"endpoint" default:"{}" acts:"control plane" desc:"What stands in front of the API servers."`
	Terraform         *Terraform    `json:"terraform,omitzero" acts:"control plane" desc:"The Terraform root module that makes the machines."`
	Access            Access        `json:"access" required:"true" acts:"main job" desc:"How the cluster's API is reached: exactly one way."`
	HealthChecks      []HealthCheck `json:"healthChecks,omitempty" acts:"stages" unique:"name" desc:"Questions asked before a roll, between machines and after it."`
	Suspend           string        `json:"suspend,omitzero" acts:"stages" desc:"A reason; while it is there, nothing starts."`
	Override          *Override     `json:"override,omitzero" acts:"stages" desc:"Gates that are passed over for this cluster; recorded in its history."`
	Optional          bool          `json:"optional" default:"false" acts:"stages" desc:"A suspended or failed cluster does not hold the next stage back."`
	// Retry acts from the first capability on: the revision holds it, and a failed CoreDNS target is remembered per revision.
	Retry string `json:"retry,omitzero" acts:"main job" desc:"Any text; a new value clears stalls that come from memory."`
}

// RollsMachines reports whether the spec has the control plane's machines replaced: that needs to know what is wanted of
// them and the module that makes them. No spec does so before the capability acts.
func (s ClusterSpec) RollsMachines() bool {
	return ControlPlanes.Acts() && s.ControlPlane != nil && s.Terraform != nil
}

// CoreDNS is what is wanted of the cluster's CoreDNS.
type CoreDNS struct {
	ImageTag              string `json:"imageTag,omitzero" format:"oci-tag" desc:"Wanted tag; without it CoreDNS is left alone."`
	ImageRepository       string `json:"imageRepository,omitzero" format:"image-repository" desc:"Wanted repository, without the image's name; omitted: the present one."`
	SkipCorefileMigration bool   `json:"skipCorefileMigration" default:"false" desc:"Change the image and keep the Corefile, whatever the migration library thinks."`
	TakeOver              bool   `json:"takeOver" default:"false" desc:"Act although another manager (Helm, Flux, Argo CD) owns CoreDNS."`
}

// Etcd is what is wanted of the stacked etcd members.
type Etcd struct {
	ImageTag string    `json:"imageTag,omitzero" format:"oci-tag" desc:"Written to kubeadm-config before the first join; omitted: what kubeadm of the Kubernetes patch ships."`
	Snapshot *Snapshot `json:"snapshot,omitzero" desc:"Where a snapshot is stored before a roll; needed for a plane of one machine."`
}

// Snapshot is a place for etcd snapshots.
type Snapshot struct {
	To        string     `json:"to" required:"true" format:"snapshot-target" desc:"A directory, or s3://bucket/prefix."`
	SecretRef *SecretRef `json:"secretRef,omitzero" desc:"Credentials of the object store."`
}

// Endpoint is what stands in front of the API servers.
type Endpoint struct {
	Mode string `json:"mode" default:"loadBalancer" enum:"loadBalancer,terminating,vip" desc:"How it is proved that a new API server is seen through the endpoint: loadBalancer passes TLS through, terminating ends it, vip is an address that moves."`
}

// Override names gates that this cluster passes over.
type Override struct {
	Gates  []string `json:"gates" required:"true" enum:"window,soak,stage,freeze" unique:"true" desc:"The gates."`
	Reason string   `json:"reason" required:"true" desc:"Why; recorded in the cluster's history."`
}
