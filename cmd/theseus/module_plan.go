// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/theseus-gitops/theseus/executors/terraform"
	"github.com/theseus-gitops/theseus/executors/terraform/module"
	"github.com/theseus-gitops/theseus/reconcile/spec"
)

// planCode is the code of what only a plan shows.
const planCode module.Code = "plan"

// rehearsalFlags say how the module's plans are made: what a spec says below terraform.
type rehearsalFlags struct {
	plan      bool
	cluster   string
	binary    string
	workspace string
	varFiles  []string
	env       []string
}

func (f *rehearsalFlags) bind(c *cobra.Command) {
	c.Flags().BoolVar(&f.plan, "plan", false, "also make the plans of a roll (one machine more, one less, one out of the endpoint), judge them, and throw them away")
	c.Flags().StringVar(&f.cluster, "cluster", "", "with --plan: the cluster whose state it is, as in output theseus")
	c.Flags().StringVar(&f.binary, "binary", "terraform", "with --plan: terraform, tofu, or a path")
	c.Flags().StringVar(&f.workspace, "workspace", "", "with --plan: the workspace (default: default)")
	c.Flags().StringArrayVar(&f.varFiles, "var-file", nil, "with --plan: a variable file below DIR; may be given again for more")
	c.Flags().StringArrayVar(&f.env, "env", nil, "with --plan: name of an environment variable that the providers need, such as OS_CLOUD; may be given again for more")
}

func (f *rehearsalFlags) check(c *cobra.Command) error {
	if f.plan {
		if f.cluster == "" {
			return usage("--plan needs --cluster NAME: no plan is made for another cluster's state")
		}
		return nil
	}
	for _, name := range []string{"cluster", "binary", "workspace", "var-file", "env"} {
		if c.Flags().Changed(name) {
			return usage("--%s is for --plan", name)
		}
	}
	return nil
}

func (f *rehearsalFlags) options(dir string) (terraform.Options, error) {
	o := terraform.Options{
		Dir: dir, Binary: f.binary, Cluster: f.cluster, Workspace: f.workspace, VarFiles: f.varFiles,
		Environ: os.Environ(), Env: map[string]terraform.Secret{}, LockTimeout: 2 * time.Minute,
	}
	for _, name := range f.env {
		value, ok := os.LookupEnv(name)
		if !ok {
			return o, usage("--env %s: there is no such environment variable", name)
		}
		o.Env[name] = terraform.Secret(value)
	}
	return o, nil
}

// judgement is a finding, or what a plan would do and may not.
type judgement struct {
	module.Finding
	// Step and Address are of a plan.
	Step    string `json:"step,omitempty"`
	Address string `json:"address,omitempty"`
}

// rehearse makes the plans and gives what is wrong with them. What they may do besides is told on stderr, with the progress.
func (a *app) rehearse(ctx context.Context, dir string, f rehearsalFlags) (wrong []judgement, plans int, err error) {
	options, err := f.options(dir)
	if err != nil {
		return nil, 0, err
	}
	_, _ = fmt.Fprintf(a.std.err, "%s init\n", f.binary)
	m, err := terraform.Open(ctx, options)
	if err != nil {
		return nil, 0, err
	}
	defer func() { err = errors.Join(err, m.Close()) }()
	rehearsals, err := m.Rehearse(ctx, time.Now(), func(s terraform.Step) { _, _ = fmt.Fprintf(a.std.err, "%s plan: %s\n", f.binary, s) })
	if err != nil {
		return nil, 0, err
	}
	for _, r := range rehearsals {
		for _, n := range r.Notices {
			_, _ = fmt.Fprintf(a.std.err, "notice: %s: %s\n", r.Step, n)
		}
		for _, o := range r.Offences {
			wrong = append(wrong, judgement{
				Finding: module.Finding{Severity: spec.Error, Code: planCode, Message: o.Action + ": " + o.Why},
				Step:    r.Step.String(), Address: o.Address,
			})
		}
		if r.Step.Kind == terraform.Idle && len(r.Offences) > 0 {
			_, _ = fmt.Fprintln(a.std.err, "the other plans were not made: what the idle check found would be in each of them")
		}
	}
	return wrong, len(rehearsals), nil
}

// String is the line that people read.
func (j judgement) String() string {
	if j.Step == "" {
		return j.Finding.String()
	}
	return fmt.Sprintf("plan for %q: %s: %s: %s [%s]", j.Step, j.Address, j.Severity, j.Message, j.Code)
}
