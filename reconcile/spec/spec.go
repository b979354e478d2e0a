// SPDX-License-Identifier: Apache-2.0

// Package spec reads the Fleet, Release and Cluster documents of a fleet repository into checked values.
// It does not read files or a repository, does not look at any cluster, and asks no clock.
// Start with Parse; Effective gives one cluster with its release and defaults filled in, Schema the JSON Schema.
//
// The struct tags of the types are the one source of what a document may contain. The strict decoder, the defaults, the
// "not acted on yet" warnings and the JSON Schema all read them:
//
//	json      the key; for the revision: omitempty where absent and empty mean the same, omitzero where only absent is left out
//	desc      meaning, for people who write specs
//	acts      the capability with which the key starts to work; inherited by nested keys; none: it works
//	required  "true": the key must be there
//	needed    "true": the key must be there, here or by a release; no "not acted on yet", because nobody can leave it out
//	default   the value when the key is absent; {}: a mapping of defaults
//	enum      the allowed texts, comma-separated
//	min, max  limits of a whole number
//	format    a named rule for a text (formats.go), also for each text in a list or map
//	keys      the same for the keys of a map
//	unique    "true": no text twice in a list; a key's name: no two items with the same value there
//	empty     "true": the text may be empty
package spec

const (
	// Group is the API group of all documents that are ours.
	Group = "theseus.dev"
	// APIVersion is the one version of the formats that this package reads.
	APIVersion = Group + "/v1alpha1"
	// FleetFile is the file, at the top of the spec path, that holds the fleet.
	FleetFile = "fleet.yaml"
	// PlanFile is the base name of approved plans, which lie beside specs and are never part of them.
	PlanFile = "plan.yaml"
	// MaxFileBytes is the largest YAML file that is read.
	MaxFileBytes = 1 << 20
	// MaxFiles is the largest number of files below the spec path.
	MaxFiles = 20_000
)

// The kinds of our documents. ClusterStatus is written by Theseus itself; when the status branch is the spec branch it
// lies among the specs and is passed over.
const (
	KindFleet         = "Fleet"
	KindRelease       = "Release"
	KindCluster       = "Cluster"
	kindClusterStatus = "ClusterStatus"
)

// Capability names a part of Theseus; a key of a spec starts to work together with one.
type Capability string

// The capabilities, in the order in which they come.
const (
	MainJob       Capability = "main job"
	ControlPlanes Capability = "control plane"
	WholeClusters Capability = "whole clusters"
	Survives      Capability = "survives"
	Stages        Capability = "stages"
)

// Acts tells whether keys of the capability are acted on by this version of Theseus. A new capability adds itself here.
func (c Capability) Acts() bool {
	switch c {
	case "", MainJob, ControlPlanes:
		return true
	case WholeClusters, Survives, Stages:
		return false
	default:
		return false
	}
}
