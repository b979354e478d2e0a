// SPDX-License-Identifier: Apache-2.0

package spec

// SecretRef names a Secret. On a workstation its keys are files below the directory given by --secrets.
type SecretRef struct {
	Name      string `json:"name" required:"true" format:"object-name" desc:"Name of the Secret."`
	Key       string `json:"key,omitzero" format:"secret-key" desc:"Key in the Secret; omitted: every key that the use knows."`
	Namespace string `json:"namespace,omitzero" format:"dns-label" desc:"Namespace of the Secret; omitted: the job's own."`
}

// SecretKey names one key of a Secret.
type SecretKey struct {
	Name      string `json:"name" required:"true" format:"object-name" desc:"Name of the Secret."`
	Key       string `json:"key" required:"true" format:"secret-key" desc:"Key in the Secret."`
	Namespace string `json:"namespace,omitzero" format:"dns-label" desc:"Namespace of the Secret; omitted: the job's own."`
}

// Access is the one way to the cluster's API.
type Access struct {
	Kubeconfig       *Kubeconfig `json:"kubeconfig,omitzero" desc:"Reach the cluster with a kubeconfig."`
	InCluster        bool        `json:"inCluster" default:"false" desc:"The cluster is the one that the job runs in; its service account is used."`
	AllowExec        bool        `json:"allowExec" default:"false" desc:"The kubeconfig may start a credential plugin, which runs a program that the spec's author chooses."`
	AllowInsecureTLS bool        `json:"allowInsecureTLS" default:"false" desc:"The kubeconfig may turn off verification of the server's certificate."`
}

// Kubeconfig is where a kubeconfig is found.
type Kubeconfig struct {
	SecretRef *SecretKey `json:"secretRef,omitzero" desc:"Key of a Secret that holds the kubeconfig."`
	Path      string     `json:"path,omitzero" desc:"File on the machine that runs Theseus."`
}
