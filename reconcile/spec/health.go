// SPDX-License-Identifier: Apache-2.0

package spec

// HealthCheck is one question about the cluster's users; exactly one of CEL, HTTP and Job is set.
type HealthCheck struct {
	Name string     `json:"name" required:"true" format:"dns-label" desc:"Name of the check."`
	CEL  *CELCheck  `json:"cel,omitzero" desc:"An expression over Kubernetes objects."`
	HTTP *HTTPCheck `json:"http,omitzero" desc:"A request."`
	Job  *JobCheck  `json:"job,omitzero" desc:"A Job that must succeed."`
}

// CELCheck asks an expression of one object, or of each that a selector matches.
type CELCheck struct {
	APIVersion string         `json:"apiVersion" required:"true" desc:"API version of the objects, for example apps/v1."`
	Kind       string         `json:"kind" required:"true" desc:"Kind of the objects."`
	Namespace  string         `json:"namespace,omitzero" format:"dns-label" desc:"Namespace of the objects; omitted: cluster-wide."`
	Name       string         `json:"name,omitzero" format:"object-name" desc:"The object; either name or selector."`
	Selector   *LabelSelector `json:"selector,omitzero" desc:"The objects; either name or selector."`
	Expression string         `json:"expression" required:"true" desc:"CEL expression that must be true."`
}

// HTTPCheck asks a URL.
type HTTPCheck struct {
	URL    string `json:"url" required:"true" format:"http-url" desc:"What is asked, with GET."`
	Status int    `json:"status" default:"200" min:"100" max:"599" desc:"The status code that means healthy."`
}

// JobCheck runs a Job.
type JobCheck struct {
	Namespace string `json:"namespace" required:"true" format:"dns-label" desc:"Namespace in which the Job runs."`
	Template  Object `json:"template" required:"true" desc:"The Job's template: metadata and spec as in batch/v1; not checked here."`
}

// Object is content that another program defines and checks.
type Object map[string]any
