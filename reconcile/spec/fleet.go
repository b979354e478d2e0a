// SPDX-License-Identifier: Apache-2.0

package spec

// Fleet is the document in fleet.yaml: what holds for all clusters together.
type Fleet struct {
	APIVersion string    `json:"apiVersion" required:"true" enum:"theseus.dev/v1alpha1" desc:"Version of this format."`
	Kind       string    `json:"kind" required:"true" enum:"Fleet" desc:"Kind of this document."`
	Spec       FleetSpec `json:"spec" required:"true" desc:"What holds for all clusters together."`
}

// FleetSpec is the content of a Fleet.
type FleetSpec struct {
	Stages []Stage                      `json:"stages,omitempty" acts:"stages" unique:"name" desc:"Environments in the order in which a change reaches them. A cluster belongs to exactly one."`
	Images map[string]map[string]string `json:"images,omitempty" acts:"control plane" desc:"Logical image name, then place, to the image's id there."`
	Freeze *Freeze                      `json:"freeze,omitzero" acts:"stages" desc:"While it is there, no cluster of these stages starts a change."`
	Status StatusTarget                 `json:"status" default:"{}" desc:"Where status is committed in this repository."`
}

// Stage is an environment and the gates before it.
type Stage struct {
	Name              string        `json:"name" required:"true" format:"dns-label" desc:"Name of the stage."`
	Selector          LabelSelector `json:"selector" required:"true" desc:"Which clusters belong to the stage, by their metadata.labels."`
	MaxConcurrent     int           `json:"maxConcurrent" default:"1" min:"1" desc:"How many clusters of the stage may change at the same time."`
	StopAfterFailures int           `json:"stopAfterFailures" default:"1" min:"1" desc:"After so many failed clusters no further cluster of the stage starts."`
	Soak              Duration      `json:"soak" default:"0s" desc:"How long a version must have been proven in the stage before."`
	Approval          string        `json:"approval" default:"none" enum:"none,plan" desc:"plan: a cluster starts only when a merged plan.yaml has the hash of its present plan."`
	Windows           []Window      `json:"windows,omitempty" desc:"When changes may start. A deny wins; with any allow, one must be active."`
}

// Window is a recurring span of time in which changes may start (Allow) or may not (Deny).
type Window struct {
	Allow    string   `json:"allow,omitzero" format:"cron" desc:"When an allowed span begins, as a cron expression of five fields."`
	Deny     string   `json:"deny,omitzero" format:"cron" desc:"When a denied span begins, as a cron expression of five fields."`
	Duration Duration `json:"duration" required:"true" desc:"How long the span lasts."`
	TimeZone string   `json:"timeZone" default:"UTC" format:"time-zone" desc:"IANA time zone of the cron expression."`
	Reason   string   `json:"reason,omitzero" desc:"Why, shown to whoever waits."`
}

// Freeze stops the start of changes.
type Freeze struct {
	Reason string   `json:"reason" required:"true" desc:"Why, shown to whoever waits."`
	Stages []string `json:"stages,omitempty" format:"dns-label" unique:"true" desc:"The frozen stages; omitted: all."`
}

// StatusTarget is where status documents are committed.
type StatusTarget struct {
	Branch string `json:"branch" default:"theseus/status" format:"git-branch" desc:"Branch for status; may be the branch of the specs."`
	Path   string `json:"path" default:"status" format:"repo-path" desc:"Folder for status, relative to the repository's root."`
}
