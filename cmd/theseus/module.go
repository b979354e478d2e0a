// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/theseus-gitops/theseus/executors/terraform/module"
)

func (a *app) moduleCommand() *cobra.Command {
	c := &cobra.Command{Use: "module", Short: "Look at Terraform modules", Args: cobra.ArbitraryArgs, RunE: unknownCommand}
	c.AddCommand(a.moduleCheckCommand())
	return c
}

func (a *app) moduleCheckCommand() *cobra.Command {
	var o output
	var f rehearsalFlags
	c := &cobra.Command{
		Use:   "check DIR",
		Short: "Check that a Terraform module lets machines be replaced one after another",
		Long: `Check reads the *.tf files of a root module, its local child modules included, and names every place that breaks the
contract, as FILE:LINE:COLUMN below DIR, with what was found, what is wanted and how to change it. It runs no
Terraform and needs no credentials. JSON and override files are named, but not read.

With --plan, and once the files have no error, it also makes the plans of a roll from the present state: nothing, one
machine more, one out of the endpoint, one less. Each is judged as a roll judges it, and thrown away; nothing is ever
applied, but each plan takes the state's lock. What a provider does with a key more or less shows only there.

The contract, version 1: Theseus hands the module a map of machines and changes nothing in it but to add a key, flip
serving, and remove a key. So the module has
  variable "machines"                 without default, not null, never {}
  variable "bootstrap"                sensitive: a machine's user data, only while that machine is created
  resource "terraform_data" "machine" the registry: for_each = var.machines, input = each.value
  output "theseus"                    contract, cluster, endpoint, acts_on_serving, machines, shared_addresses
and all that a machine has is made with for_each over the same keys, reaches its siblings by [each.key] alone, and
ignores later changes of user data.

docs/terraform-contract.md has a complete example, the way from count to for_each, and what each [code] means.

Exit codes: 0 no errors (warnings do not count), 20 errors, 1 the folder can't be read or no plan made, 2 usage.`,
		Example: `  theseus module check terraform/seed-eu-1
  theseus module check terraform/seed-eu-1 --plan --cluster seed-eu-1 --var-file seed-eu-1.tfvars --env OS_CLOUD
  theseus module check . -o json | jq -r '.[] | select(.severity == "error") | .code' | sort | uniq -c`,
		Args: one("DIR"),
		RunE: func(c *cobra.Command, args []string) error {
			if err := f.check(c); err != nil {
				return err
			}
			return a.moduleCheck(c.Context(), o, args[0], f)
		},
	}
	o.bind(c)
	f.bind(c)
	return c
}

func (a *app) moduleCheck(ctx context.Context, o output, dir string, f rehearsalFlags) error {
	if err := o.check(); err != nil {
		return err
	}
	result, err := module.Check(module.FromDisk(dir))
	if err != nil {
		return fmt.Errorf("folder %s: %w", dir, err)
	}
	errors, warnings := result.Findings.Errors(), len(result.Findings)-result.Findings.Errors()
	all := []judgement{}
	for _, finding := range result.Findings {
		all = append(all, judgement{Finding: finding})
	}
	summary := fmt.Sprintf("%s, %s", count(result.Files, "file"), count(result.Resources, "resource"))
	switch {
	case f.plan && errors > 0:
		_, _ = fmt.Fprintln(a.std.err, "no plan is made before the errors in the files are mended")
	case f.plan:
		wrong, plans, err := a.rehearse(ctx, dir, f)
		if err != nil {
			return err
		}
		all, errors = append(all, wrong...), len(wrong)
		summary += ", " + count(plans, "plan")
	}
	if !o.text() {
		if err := o.write(a.std.out, all); err != nil {
			return err
		}
	} else {
		for _, j := range all {
			_, _ = fmt.Fprintln(a.std.out, visible(j.String()))
		}
		_, _ = fmt.Fprintf(a.std.out, "%s; %s, %s\n", summary, count(errors, "error"), count(warnings, "warning"))
	}
	if errors > 0 {
		return exitWith(exitInvalid)
	}
	return nil
}
