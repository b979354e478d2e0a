// SPDX-License-Identifier: Apache-2.0

package spec

// ControlPlane is what is wanted of the control-plane machines.
type ControlPlane struct {
	Replicas                    int                 `json:"replicas,omitzero" min:"1" desc:"Number of machines; odd, so that etcd keeps a quorum."`
	FailureDomains              []string            `json:"failureDomains,omitempty" unique:"true" desc:"Failure domains over which machines are kept level."`
	Values                      map[string]string   `json:"values,omitempty" empty:"true" desc:"Passed to the Terraform module; a change makes machines outdated."`
	Rollout                     ControlPlaneRollout `json:"rollout" default:"{}" desc:"How machines are replaced."`
	Timeouts                    Timeouts            `json:"timeouts" default:"{}" desc:"Limits, each from the start of its own wait."`
	Attempts                    int                 `json:"attempts" default:"2" min:"1" desc:"Machines tried per target before the cluster is stalled."`
	Drain                       Drain               `json:"drain" default:"{}" desc:"Consent to what a drain may destroy."`
	Join                        Join                `json:"join" default:"{}" desc:"What a joining machine needs and kubeadm stores nowhere."`
	ProvidedByImage             []string            `json:"providedByImage,omitempty" format:"absolute-path" unique:"true" desc:"Host files that the base image already has."`
	ApproveServingCSR           bool                `json:"approveServingCSR" default:"false" desc:"Approve a new machine's kubelet serving certificate when its names match."`
	RollAfter                   Time                `json:"rollAfter,omitzero" desc:"Machines created before this time are outdated, once it has passed."`
	RollBeforeCertificateExpiry Duration            `json:"rollBeforeCertificateExpiry,omitzero" acts:"whole clusters" desc:"Machines are outdated so long before their certificates expire."`
	MaxMachineAge               Duration            `json:"maxMachineAge,omitzero" acts:"whole clusters" desc:"Older machines are outdated."`
	Remediation                 *Remediation        `json:"remediation,omitzero" acts:"survives" desc:"Replace unhealthy machines; omitted: never."`
}

// ControlPlaneRollout is the budget of a roll of the control plane.
type ControlPlaneRollout struct {
	MaxSurge       int      `json:"maxSurge" default:"1" min:"0" max:"1" desc:"Machines above replicas during a roll. 0 removes first, and needs 3 or more replicas and maxUnavailable 1."`
	MaxUnavailable int      `json:"maxUnavailable" default:"0" min:"0" max:"1" desc:"Machines below replicas during a roll."`
	StableFor      Duration `json:"stableFor" default:"60s" desc:"How long a new machine must be healthy before an old one goes."`
}

// Timeouts limit the waits of a machine's replacement.
type Timeouts struct {
	Create  Duration `json:"create" default:"20m" desc:"Terraform's creation of a machine."`
	Join    Duration `json:"join" default:"15m" desc:"From the created machine to a joined, ready Node."`
	Drain   Duration `json:"drain" default:"10m" desc:"Eviction of a machine's pods."`
	Detach  Duration `json:"detach" default:"10m" desc:"Detaching of a machine's volumes."`
	Destroy Duration `json:"destroy" default:"20m" desc:"Terraform's destruction of a machine."`
}

// Drain is consent to what a drain may destroy.
type Drain struct {
	DeleteEmptyDirData bool `json:"deleteEmptyDirData" default:"false" desc:"Pods with emptyDir volumes may be evicted; their data is lost."`
	EvictUnmanaged     bool `json:"evictUnmanaged" default:"false" desc:"Pods that no controller brings back may be evicted."`
	LoseLocalVolumes   bool `json:"loseLocalVolumes" default:"false" desc:"Volumes that live on the machine may be lost."`
}

// Join is what a joining control-plane machine needs and kubeadm stores nowhere.
type Join struct {
	NodeRegistration NodeRegistration `json:"nodeRegistration" default:"{}" desc:"kubeadm's nodeRegistration; what is omitted is taken from the present control-plane nodes."`
	BindPort         int              `json:"bindPort" default:"6443" min:"1" max:"65535" desc:"Port of the API server on the machine."`
	Files            []JoinFile       `json:"files,omitempty" unique:"path" desc:"Host files that the machine needs before it joins."`
	KubeadmPath      string           `json:"kubeadmPath" default:"/usr/bin/kubeadm" format:"absolute-path" desc:"kubeadm on the machine."`
	UserDataTemplate string           `json:"userDataTemplate,omitzero" desc:"Template of the machine's cloud-init user data; omitted: the built-in one."`
}

// NodeRegistration has the fields of kubeadm's type of that name which can't be read back from a cluster.
type NodeRegistration struct {
	Taints           []Taint    `json:"taints,omitzero" desc:"Taints of the Node; an empty list keeps an untainted plane untainted, omitted: as the present nodes."`
	KubeletExtraArgs []Argument `json:"kubeletExtraArgs,omitempty" desc:"Arguments of the kubelet, as in kubeadm's v1beta4: a name may come twice."`
	CRISocket        string     `json:"criSocket,omitzero" desc:"Socket of the container runtime."`
	// Not in the format's first list: without it no machine with cgroup v1 can join from Kubernetes 1.35 on.
	IgnorePreflightErrors []string `json:"ignorePreflightErrors,omitempty" unique:"true" desc:"kubeadm's checks that may fail on a machine, SystemVerification for example."`
}

// Taint keeps pods without a matching toleration away from a Node.
type Taint struct {
	Key    string `json:"key" required:"true" format:"label-key" desc:"Key of the taint."`
	Value  string `json:"value,omitzero" format:"label-value" empty:"true" desc:"Value of the taint."`
	Effect string `json:"effect" required:"true" enum:"NoSchedule,PreferNoSchedule,NoExecute" desc:"What it does to pods that don't tolerate it."`
}

// Argument is one command-line argument, without dashes.
type Argument struct {
	Name  string `json:"name" required:"true" format:"argument-name" desc:"Name, without leading dashes."`
	Value string `json:"value" required:"true" empty:"true" desc:"Value."`
}

// JoinFile is a host file written by user data; its content comes from a Secret.
type JoinFile struct {
	Path      string    `json:"path" required:"true" format:"absolute-path" desc:"Where the file goes."`
	Mode      string    `json:"mode" default:"0600" format:"file-mode" desc:"Permissions, as a quoted octal text."`
	SecretRef SecretKey `json:"secretRef" required:"true" desc:"Where its content is."`
}

// Remediation replaces machines that stay unhealthy.
type Remediation struct {
	UnhealthyFor Duration `json:"unhealthyFor" required:"true" desc:"How long a machine must have been unhealthy."`
	MaxPerDay    int      `json:"maxPerDay" default:"1" min:"1" desc:"Replacements a day."`
}
