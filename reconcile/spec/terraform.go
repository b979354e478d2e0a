// SPDX-License-Identifier: Apache-2.0

package spec

// Terraform is the user's root module and how it is run.
type Terraform struct {
	Dir           string            `json:"dir" required:"true" format:"repo-path" desc:"Folder of the root module, relative to the repository's root, never outside it."`
	Binary        string            `json:"binary" default:"terraform" desc:"Program that is run: terraform, tofu, or a path."`
	Workspace     string            `json:"workspace,omitzero" desc:"Workspace that must be selected; omitted: default."`
	BackendConfig map[string]string `json:"backendConfig,omitempty" empty:"true" desc:"Backend settings given to init."`
	VarFiles      []string          `json:"varFiles,omitempty" format:"relative-path" desc:"Variable files, relative to dir."`
	VariablesFrom []SecretRef       `json:"variablesFrom,omitempty" desc:"Secrets whose keys become variables, by a file."`
	EnvFrom       []SecretRef       `json:"envFrom,omitempty" desc:"Secrets whose keys become environment variables, for provider credentials."`
	Tolerate      []Toleration      `json:"tolerate,omitempty" desc:"Perpetual updates that don't make the module's plan busy."`
	LockTimeout   Duration          `json:"lockTimeout" default:"2m" desc:"How long to wait for the state's lock."`
}

// Toleration names attributes of a resource whose update is expected in every plan.
type Toleration struct {
	Address    string   `json:"address" required:"true" desc:"Address of the resource."`
	Attributes []string `json:"attributes" required:"true" unique:"true" desc:"The attributes that may change."`
}
