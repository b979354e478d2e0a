// SPDX-License-Identifier: Apache-2.0

// Package status makes what people and programs read about a cluster: its status document, the fleet's page, commit messages.
// It does not read or write a repository (gitsource does), and nothing is ever decided from it (rollout reads live and the logbook).
// Start at Update, which turns the report of a pass into a document; Commit.Files is the whole commit.
package status

import (
	"time"
)

// What every status document begins with.
const (
	APIVersion = "theseus.dev/v1alpha1"
	Kind       = "ClusterStatus"
	// HistoryLimit is how many rolls a document remembers; older ones are in Git.
	HistoryLimit = 20
)

// Document is one cluster's file on the status branch. Nothing in it changes while nothing happens.
type Document struct {
	APIVersion string   `yaml:"apiVersion" json:"apiVersion"`
	Kind       string   `yaml:"kind" json:"kind"`
	Metadata   Metadata `yaml:"metadata" json:"metadata"`
	Status     Status   `yaml:"status" json:"status"`
}

// Metadata names the cluster, with the labels of its spec.
type Metadata struct {
	Name   string            `yaml:"name" json:"name"`
	Labels map[string]string `yaml:"labels,omitempty" json:"labels,omitempty"`
}

// Status is what is known of a cluster.
type Status struct {
	// Stage is the fleet's stage that the cluster belongs to, "" when it belongs to none.
	Stage string `yaml:"stage,omitempty" json:"stage,omitempty"`
	// ObservedRevision is the hash of the effective spec that the rest was made from.
	ObservedRevision string `yaml:"observedRevision,omitempty" json:"observedRevision,omitempty"`
	// Conditions follow kstatus: Ready is always there, Reconciling and Stalled only while they are True
	// (https://github.com/kubernetes-sigs/cli-utils/blob/master/pkg/kstatus/README.md).
	Conditions []Condition `yaml:"conditions" json:"conditions"`
	Want       Versions    `yaml:"want,omitempty" json:"want,omitzero"`
	// Live is nil when the cluster was never observed.
	Live *Live `yaml:"live,omitempty" json:"live,omitempty"`
	// Machines are those that Terraform's state has, sorted by name; none when the spec leaves machines alone.
	Machines []Machine `yaml:"machines,omitempty" json:"machines,omitempty"`
	// Plan is nil when nothing is under way or wanted.
	Plan    *Plan    `yaml:"plan,omitempty" json:"plan,omitempty"`
	Failure *Failure `yaml:"failure,omitempty" json:"failure,omitempty"`
	Notices []string `yaml:"notices,omitempty" json:"notices,omitempty"`
	// History holds the newest HistoryLimit rolls, newest first.
	History []Entry `yaml:"history,omitempty" json:"history,omitempty"`
}

// Condition types.
const (
	Ready       = "Ready"
	Reconciling = "Reconciling"
	StalledType = "Stalled"
)

// Condition is one kstatus condition.
type Condition struct {
	Type string `yaml:"type" json:"type"`
	// Status is "True" or "False".
	Status  string `yaml:"status" json:"status"`
	Reason  string `yaml:"reason" json:"reason"`
	Message string `yaml:"message,omitempty" json:"message,omitempty"`
	// LastTransitionTime moves only when Status changes.
	LastTransitionTime time.Time `yaml:"lastTransitionTime" json:"lastTransitionTime"`
}

// Versions names what a cluster is to run, runs or ran.
type Versions struct {
	KubernetesVersion string `yaml:"kubernetesVersion,omitempty" json:"kubernetesVersion,omitempty"`
	BaseImage         string `yaml:"baseImage,omitempty" json:"baseImage,omitempty"`
	CoreDNS           string `yaml:"coreDNS,omitempty" json:"coreDNS,omitempty"`
}

// Live is what was last observed of the cluster.
type Live struct {
	// KubernetesVersion is that of the API server that answered.
	KubernetesVersion string `yaml:"kubernetesVersion,omitempty" json:"kubernetesVersion,omitempty"`
	// KubeletVersions are those of all Nodes, each once, lowest first.
	KubeletVersions []string `yaml:"kubeletVersions,omitempty" json:"kubeletVersions,omitempty"`
	// BaseImages are those of all machines, Etcd the versions of all members; each once, lowest first.
	BaseImages []string `yaml:"baseImages,omitempty" json:"baseImages,omitempty"`
	Etcd       []string `yaml:"etcd,omitempty" json:"etcd,omitempty"`
	// CoreDNS is the tag of the Deployment's image; its digest when it has no tag.
	CoreDNS string `yaml:"coreDNS,omitempty" json:"coreDNS,omitempty"`
	// CoreDNSBefore is the tag that ran before, while the one in CoreDNS is not verified yet.
	CoreDNSBefore string `yaml:"coreDNSBefore,omitempty" json:"coreDNSBefore,omitempty"`
	// StaleSince is the first pass that could not observe the cluster any more, zero while it can be observed.
	StaleSince time.Time `yaml:"staleSince,omitempty" json:"staleSince,omitzero"`
}

// Plan is how far a change is.
type Plan struct {
	Done  int `yaml:"done" json:"done"`
	Total int `yaml:"total" json:"total"`
	// Current is the step under way or the next one; nil when there is none.
	Current *Step  `yaml:"current,omitempty" json:"current,omitempty"`
	Hash    string `yaml:"hash,omitempty" json:"hash,omitempty"`
}

// Step is one step of a plan.
type Step struct {
	Step    string `yaml:"step" json:"step"`
	Subject string `yaml:"subject,omitempty" json:"subject,omitempty"`
	Why     string `yaml:"why,omitempty" json:"why,omitempty"`
}

// Failure is why a cluster can't go on.
type Failure struct {
	Reason  string `yaml:"reason" json:"reason"`
	Message string `yaml:"message" json:"message"`
	Remedy  string `yaml:"remedy,omitempty" json:"remedy,omitempty"`
	Runbook string `yaml:"runbook,omitempty" json:"runbook,omitempty"`
}

// Entry is one roll that ended.
type Entry struct {
	Revision string   `yaml:"revision,omitempty" json:"revision,omitempty"`
	From     Versions `yaml:"from,omitempty" json:"from,omitzero"`
	To       Versions `yaml:"to,omitempty" json:"to,omitzero"`
	// Attempted is what the spec wanted, as far as the roll did not reach it.
	Attempted Versions  `yaml:"attempted,omitempty" json:"attempted,omitzero"`
	Started   time.Time `yaml:"started" json:"started"`
	Ended     time.Time `yaml:"ended" json:"ended"`
	// Outcome is Outcome.Reason of how it ended, "Converged".
	Outcome string      `yaml:"outcome" json:"outcome"`
	Steps   []TakenStep `yaml:"steps,omitempty" json:"steps,omitempty"`
}

// TakenStep is one step of a roll that ended, and how long it took.
type TakenStep struct {
	Step     string   `yaml:"step" json:"step"`
	Subject  string   `yaml:"subject,omitempty" json:"subject,omitempty"`
	Duration Duration `yaml:"duration" json:"duration"`
}

// Duration is a time.Duration, written as Go writes it ("1m30s").
type Duration time.Duration

// String writes it as Go does.
func (d Duration) String() string { return time.Duration(d).String() }

// MarshalText implements encoding.TextMarshaler.
func (d Duration) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (d *Duration) UnmarshalText(text []byte) error {
	parsed, err := time.ParseDuration(string(text))
	if err != nil {
		return err
	}
	*d = Duration(parsed)
	return nil
}

// condition returns the condition of a type; its zero value when it is not there.
func (s Status) condition(kind string) Condition {
	for _, c := range s.Conditions {
		if c.Type == kind {
			return c
		}
	}
	return Condition{}
}
