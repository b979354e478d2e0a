// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/theseus-gitops/theseus/executors/terraform"
	"github.com/theseus-gitops/theseus/reconcile/spec"
)

type machinesFlags struct {
	fleet  fleetFlags
	format string
}

func (a *app) machinesCommand() *cobra.Command {
	var f machinesFlags
	c := &cobra.Command{
		Use:   "machines CLUSTER --repo URL [flags]",
		Short: "Print the machines of a cluster as Terraform's state has them, for plans of your own",
		Long: `Machines reads the cluster's Terraform state, through the module that spec.terraform names in the repository, and
prints the present map of machines: what variable machines must hold in every plan that you make yourself. A plan with
an older map would remove machines. Nothing is changed, and nothing else of the state is shown.

Exit codes: 0, 1 the state can't be read, 2 usage, no such cluster, or a cluster without spec.terraform.`,
		Example: `  theseus machines seed-eu-1 --repo https://git.example.com/fleet.git --secrets ./secrets > machines.auto.tfvars
  theseus machines seed-eu-1 --repo ./fleet --secrets ./secrets -o json > machines.auto.tfvars.json`,
		Args: one("CLUSTER"),
		RunE: func(c *cobra.Command, args []string) error { return a.machines(c.Context(), f, args[0]) },
	}
	f.fleet.bind(c)
	c.Flags().StringVarP(&f.format, "output", "o", "tfvars", "tfvars, or json for a .tfvars.json file")
	return c
}

func (a *app) machines(ctx context.Context, f machinesFlags, name string) error {
	if f.format != "tfvars" && f.format != "json" {
		return usage("-o %q: want tfvars or json", f.format)
	}
	secrets := secretSource{dir: f.fleet.secrets}
	repo, err := f.fleet.open(ctx, secrets)
	if err != nil {
		return err
	}
	repo.warn = a.warn
	head, err := repo.Head(ctx)
	if err != nil {
		return err
	}
	cluster, err := repo.cluster(ctx, head, name)
	if err != nil {
		return err
	}
	state, err := terraformState(ctx, repo, head, cluster, secrets)
	if err != nil {
		return err
	}
	text, err := state.Registry.Format(f.format == "json")
	if err != nil {
		return err
	}
	_, err = a.std.out.Write(text)
	return err
}

// cluster is one effective spec of a commit.
func (r *repository) cluster(ctx context.Context, head, name string) (spec.EffectiveCluster, error) {
	files, err := r.Files(ctx, head)
	if err != nil {
		return spec.EffectiveCluster{}, err
	}
	specs, problems := spec.Parse(files)
	var there []string
	for _, c := range specs.Clusters {
		if c.Metadata.Name == name {
			return specs.Effective(c)
		}
		there = append(there, c.Metadata.Name)
	}
	for _, p := range problems.ForCluster(name) {
		if p.Severity == spec.Error {
			return spec.EffectiveCluster{}, fmt.Errorf("cluster %s: %s (`theseus validate` shows all)", name, p)
		}
	}
	return spec.EffectiveCluster{}, usage("cluster %s: no such cluster in the specs; there are: %s", name, some(there))
}

// terraformState reads the state through the module as it is in the commit, in a private folder.
func terraformState(ctx context.Context, repo *repository, head string, cluster spec.EffectiveCluster, secrets secretSource) (state *terraform.State, err error) {
	t := cluster.Spec.Terraform
	if t == nil {
		return nil, usage("cluster %s: its spec names no Terraform module: set spec.terraform.dir", cluster.Name)
	}
	m, err := openModule(ctx, cluster.Name, *t, secrets, func(ctx context.Context, folder string) error { return repo.export(ctx, head, folder) })
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, m.Close()) }()
	return m.State(ctx)
}

// terraformOptions are a spec's, with its secrets.
func terraformOptions(ctx context.Context, cluster string, t spec.Terraform, secrets secretSource) (terraform.Options, error) {
	o := terraform.Options{
		Binary: t.Binary, Cluster: cluster, Workspace: t.Workspace, VarFiles: t.VarFiles, Environ: os.Environ(),
		Tolerate: t.Tolerate, LockTimeout: t.LockTimeout.Std(), BackendConfig: map[string]terraform.Secret{},
	}
	for key, value := range t.BackendConfig {
		o.BackendConfig[key] = terraform.Secret(value)
	}
	var err error
	if o.Variables, err = secrets.each(ctx, "variablesFrom", t.VariablesFrom); err != nil {
		return o, err
	}
	o.Env, err = secrets.each(ctx, "envFrom", t.EnvFrom)
	return o, err
}

// each gives the keys of secrets as Terraform's variables or environment; later ones win.
func (s secretSource) each(ctx context.Context, field string, refs []spec.SecretRef) (map[string]terraform.Secret, error) {
	out := map[string]terraform.Secret{}
	for i, ref := range refs {
		var data map[string][]byte
		var err error
		if ref.Key == "" {
			data, err = s.all(ctx, ref.Namespace, ref.Name)
		} else {
			data = map[string][]byte{}
			data[ref.Key], err = s.key(ctx, ref.Namespace, ref.Name, ref.Key)
		}
		if err != nil {
			return nil, fmt.Errorf("terraform.%s[%d]: %w", field, i, err)
		}
		for key, value := range data {
			out[key] = terraform.Secret(value)
		}
	}
	return out, nil
}
