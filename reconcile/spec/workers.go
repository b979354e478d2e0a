// SPDX-License-Identifier: Apache-2.0

package spec

// Kinds of worker pools.
const (
	WorkerTerraform         = "terraform"
	WorkerMachineDeployment = "machineDeployment"
)

// Worker is a pool of worker machines: made by the Terraform module, or by a MachineDeployment of machine-controller or
// Cluster API.
type Worker struct {
	Name           string            `json:"name" required:"true" format:"dns-label" desc:"Name of the pool; part of its machines' names."`
	Kind           string            `json:"kind" required:"true" enum:"terraform,machineDeployment" desc:"Who makes the machines."`
	Replicas       *int              `json:"replicas,omitzero" min:"0" desc:"Number of machines; needed for terraform."`
	FailureDomains []string          `json:"failureDomains,omitempty" unique:"true" desc:"Failure domains over which machines are kept level."`
	Values         map[string]string `json:"values,omitempty" empty:"true" desc:"Passed to the Terraform module; a change makes machines outdated."`
	Rollout        WorkerRollout     `json:"rollout" default:"{}" desc:"How machines are replaced."`
	Timeouts       Timeouts          `json:"timeouts" default:"{}" desc:"Limits, each from the start of its own wait."`
	Drain          Drain             `json:"drain" default:"{}" desc:"Consent to what a drain may destroy."`
	Paused         bool              `json:"paused" default:"false" desc:"The pool is not rolled."`
	Ref            *ObjectRef        `json:"ref,omitzero" desc:"The MachineDeployment; needed for machineDeployment."`
	VersionPath    string            `json:"versionPath,omitzero" desc:"Where in the MachineDeployment the Kubernetes version stands; omitted: the place its API defines."`
	ImagePath      string            `json:"imagePath,omitzero" desc:"Where in the MachineDeployment the image stands."`
}

// WorkerRollout is the budget of a roll of a worker pool; numbers of machines, or percent of replicas.
type WorkerRollout struct {
	MaxSurge       IntOrPercent `json:"maxSurge" default:"1" desc:"Machines above replicas during a roll."`
	MaxUnavailable IntOrPercent `json:"maxUnavailable" default:"0" desc:"Machines below replicas during a roll."`
	StableFor      Duration     `json:"stableFor" default:"0s" desc:"How long a new machine must be healthy before an old one goes."`
}

// ObjectRef names an object in the target cluster.
type ObjectRef struct {
	APIVersion string `json:"apiVersion" required:"true" desc:"API version of the object."`
	Namespace  string `json:"namespace" required:"true" format:"dns-label" desc:"Namespace of the object."`
	Name       string `json:"name" required:"true" format:"object-name" desc:"Name of the object."`
}
