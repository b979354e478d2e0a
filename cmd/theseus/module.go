// SPDX-License-Identifier: Apache-2.0

package main

import (
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
	c := &cobra.Command{
		Use:   "check DIR",
		Short: "Check that a Terraform module lets machines be replaced one after another",
		Long: `Check reads the *.tf files of a root module, its local child modules included, and names every place that breaks the
contract, as FILE:LINE:COLUMN below DIR, with what was found, what is wanted and how to change it. It runs no
Terraform and needs no credentials. JSON and override files are named, but not read.

The contract, version 1: Theseus hands the module a map of machines and changes nothing in it but to add a key, flip
serving, and remove a key. So the module has
  variable "machines"                 without default, not null, never {}
  variable "bootstrap"                sensitive: a machine's user data, only while that machine is created
  resource "terraform_data" "machine" the registry: for_each = var.machines, input = each.value
  output "theseus"                    contract, cluster, endpoint, acts_on_serving, machines, shared_addresses
and all that a machine has is made with for_each over the same keys, reaches its siblings by [each.key] alone, and
ignores later changes of user data.

docs/terraform-contract.md has a complete example, the way from count to for_each, and what each [code] means.

Exit codes: 0 no errors (warnings do not count), 20 errors, 1 the folder can't be read.`,
		Example: `  theseus module check terraform/seed-eu-1
  theseus module check . -o json | jq -r '.[] | select(.severity == "error") | .code' | sort | uniq -c`,
		Args: arguments(cobra.ExactArgs(1)),
		RunE: func(_ *cobra.Command, args []string) error { return a.moduleCheck(o, args[0]) },
	}
	o.bind(c)
	return c
}

func (a *app) moduleCheck(o output, dir string) error {
	if err := o.check(); err != nil {
		return err
	}
	result, err := module.Check(module.FromDisk(dir))
	if err != nil {
		return fmt.Errorf("folder %s: %w", dir, err)
	}
	errors := result.Findings.Errors()
	if !o.text() {
		findings := result.Findings
		if findings == nil {
			findings = module.Findings{}
		}
		if err := o.write(a.std.out, findings); err != nil {
			return err
		}
	} else {
		_, _ = fmt.Fprint(a.std.out, result.Findings.String())
		_, _ = fmt.Fprintf(a.std.out, "%s, %s; %s, %s\n", count(result.Files, "file"), count(result.Resources, "resource"),
			count(errors, "error"), count(len(result.Findings)-errors, "warning"))
	}
	if errors > 0 {
		return exitWith(exitInvalid)
	}
	return nil
}
