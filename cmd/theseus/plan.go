// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"

	"github.com/spf13/cobra"
)

type planFlags struct {
	fleet  fleetFlags
	output output
	log    logFlags
}

func (a *app) planCommand() *cobra.Command {
	var f planFlags
	c := &cobra.Command{
		Use:   "plan --repo URL [flags]",
		Short: "Show what reconcile would do, and why, step by step",
		Long: `Plan looks at each cluster and shows every step from here to what the spec wants, each with its reason. It changes
nothing, neither in the clusters nor in the repository.

A plan is the very function that decides in reconcile, played forward: what it shows is what will be done, as long
as the cluster behaves.

Exit codes, the first that applies: 22 stalled, 20 invalid spec, 30 unreachable or passing error, 11 waiting,
10 steps to do, 0 everything is as wanted; 2 usage, 130 after Ctrl-C, 143 after SIGTERM.`,
		Example: `  theseus plan --repo https://git.example.com/fleet.git --repo-secret fleet --secrets ./secrets
  theseus plan --repo ./fleet --cluster seed-eu-1 --secrets ./secrets -o json`,
		Args: none,
		RunE: func(c *cobra.Command, _ []string) error { return a.plan(c.Context(), f) },
	}
	f.fleet.bind(c)
	f.fleet.bindClusters(c)
	f.output.bind(c)
	f.log.bind(c)
	return c
}

func (a *app) plan(ctx context.Context, f planFlags) error {
	if err := f.output.check(); err != nil {
		return err
	}
	pass, err := a.pass(ctx, f.fleet, f.log)
	if err != nil {
		return err
	}
	defer pass.end()
	result, err := pass.Plan(ctx)
	if err != nil {
		return passError(err, true)
	}
	if ctx.Err() != nil { // what was looked at in the meantime is not the whole
		return ctx.Err()
	}
	pass.end()
	if err := a.printPlan(f.output, pass.repo.origin(), result); err != nil {
		return err
	}
	return exitWith(detailedCode(result))
}
