// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/theseus-gitops/theseus/test/lab/parts"
)

// The lab's machines are made by Terraform, from the module that the repository gives as its smallest example: so a lab
// is what a user has, and the module is tried whenever a lab comes up.
const (
	moduleFolder = "terraform"
	moduleFile   = "main.tf"
	tfvarsFile   = "lab.tfvars"
)

// asked is an entry of the module's machines: the Terraform contract, version 1.
type asked struct {
	Role              string            `json:"role"`
	Pool              string            `json:"pool"`
	KubernetesVersion string            `json:"kubernetes_version"`
	Image             string            `json:"image"`
	FailureDomain     string            `json:"failure_domain"`
	Created           string            `json:"created"`
	Serving           bool              `json:"serving"`
	Values            map[string]string `json:"values"`
}

// Module is the root module that made the lab's machines, as files by name: with BackendConfig it makes further ones.
func (c *Cluster) Module() (map[string]string, error) {
	example := filepath.Join(c.options.Source, "..", "..", "examples", "terraform", "lab", moduleFile)
	text, err := os.ReadFile(example)
	if err != nil {
		return nil, fmt.Errorf("reading the lab's Terraform module: %w", err)
	}
	return map[string]string{
		moduleFile: string(text),
		tfvarsFile: fmt.Sprintf("cluster = %q\nservice = %q\nendpoint = %q\nacts_on_serving = %t\n",
			c.Name, c.Service(), c.Config.EndpointAddress(), !c.options.HealthChecked),
	}, nil
}

// ModuleDir is the folder with the module.
func (c *Cluster) ModuleDir() string { return filepath.Join(c.Dir, moduleFolder) }

// BackendConfig is where the lab's Terraform state is.
func (c *Cluster) BackendConfig() map[string]string {
	state := c.Service() + "/state/" + c.Name
	return map[string]string{"address": state, "lock_address": state, "unlock_address": state}
}

// ensureModule writes the module into the lab's folder and initializes it.
func (c *Cluster) ensureModule(ctx context.Context) error {
	files, err := c.Module()
	if err != nil {
		return err
	}
	if err := os.MkdirAll(c.ModuleDir(), 0o700); err != nil {
		return fmt.Errorf("making the module's folder: %w", err)
	}
	for name, text := range files {
		if err := c.writeRaw(filepath.Join(moduleFolder, name), []byte(text)); err != nil {
			return err
		}
	}
	args := []string{"init", "-input=false", "-no-color", "-reconfigure"}
	config := c.BackendConfig()
	for _, key := range slices.Sorted(maps.Keys(config)) {
		args = append(args, "-backend-config="+key+"="+config[key])
	}
	return c.terraform(ctx, args...)
}

// apply asks Terraform for these machines; user data is of those that are new.
func (c *Cluster) apply(ctx context.Context, machines map[string]asked, userData map[string]string) error {
	const file = "machines.tfvars.json"
	path := filepath.Join(moduleFolder, file)
	if err := c.writeFile(path, map[string]any{"machines": machines, "bootstrap": userData}); err != nil {
		return err
	}
	defer func() { _ = os.Remove(filepath.Join(c.Dir, path)) }() // Down removes the folder
	return c.terraform(ctx, "apply", "-input=false", "-no-color", "-auto-approve", "-var-file="+tfvarsFile, "-var-file="+file)
}

func (c *Cluster) terraform(ctx context.Context, args ...string) error {
	program, err := c.Terraform(ctx)
	if err != nil {
		return err
	}
	// A configuration file that is named and missing is a warning at every call: this one is empty.
	if err := c.writeRaw("terraform.rc", nil); err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Dir = c.ModuleDir()
	cmd.Env = append(os.Environ(), "TF_IN_AUTOMATION=1", "CHECKPOINT_DISABLE=1", "TF_CLI_CONFIG_FILE="+filepath.Join(c.Dir, "terraform.rc"))
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s %s: %w\n%s", filepath.Base(program), args[0], err, bytes.TrimSpace(out))
	}
	return nil
}

// Terraform is the program terraform, or OpenTofu where there is none.
func (c *Cluster) Terraform(ctx context.Context) (string, error) {
	if path, err := exec.LookPath("terraform"); err == nil {
		return path, nil
	}
	cache, err := parts.Open(c.options.Root, c.options.Source, c.options.Out)
	if err != nil {
		return "", err
	}
	return cache.Tofu(ctx)
}

// registry reads from the state which machines were asked for. There may be no state yet.
func (c *Cluster) registry(ctx context.Context) (map[string]asked, error) {
	var state json.RawMessage
	if err := c.cloud.get(ctx, "/state/"+c.Name, &state); err != nil {
		return nil, err
	}
	return readRegistry(state)
}

func readRegistry(state []byte) (map[string]asked, error) {
	machines := map[string]asked{}
	if len(state) == 0 {
		return machines, nil
	}
	var parsed struct {
		Resources []struct {
			Mode, Type, Name string
			Instances        []struct {
				Key        string `json:"index_key"`
				Attributes struct {
					Input struct{ Value asked }
				}
			}
		}
	}
	if err := json.Unmarshal(state, &parsed); err != nil {
		return nil, fmt.Errorf("reading the lab's Terraform state: %w", err)
	}
	for _, r := range parsed.Resources {
		if r.Mode != "managed" || r.Type != "terraform_data" || r.Name != "machine" {
			continue
		}
		for _, instance := range r.Instances {
			machines[instance.Key] = instance.Attributes.Input.Value
		}
	}
	return machines, nil
}

// Machines are the names of the machines that Terraform has, in order.
func (c *Cluster) Machines(ctx context.Context) ([]string, error) {
	registry, err := c.registry(ctx)
	if err != nil {
		return nil, err
	}
	return slices.SortedFunc(maps.Keys(registry), func(a, b string) int {
		if len(a) != len(b) {
			return len(a) - len(b)
		}
		return strings.Compare(a, b)
	}), nil
}
