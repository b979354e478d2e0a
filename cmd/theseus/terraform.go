// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/theseus-gitops/theseus/executors/terraform"
	"github.com/theseus-gitops/theseus/reconcile/live"
	"github.com/theseus-gitops/theseus/reconcile/rollout"
	"github.com/theseus-gitops/theseus/reconcile/spec"
)

// opened is a module in a private folder with the files of the commit.
type opened struct {
	*terraform.Module
	folder string
}

// Close ends it and deletes its files.
func (o *opened) Close() error { return errors.Join(o.Module.Close(), os.RemoveAll(o.folder)) }

// openModule initialises the module that the spec names, from a commit's files as export writes them.
func openModule(ctx context.Context, cluster string, t spec.Terraform, secrets secretSource, export func(ctx context.Context, folder string) error) (*opened, error) {
	options, err := terraformOptions(ctx, cluster, t, secrets)
	if err != nil {
		return nil, err
	}
	folder, err := os.MkdirTemp("", "theseus-module-")
	if err != nil {
		return nil, fmt.Errorf("a folder for the module: %w", err)
	}
	if err := export(ctx, folder); err != nil {
		return nil, errors.Join(err, os.RemoveAll(folder))
	}
	options.Dir = filepath.Join(folder, filepath.FromSlash(t.Dir))
	m, err := terraform.Open(ctx, options)
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(folder))
	}
	return &opened{Module: m, folder: folder}, nil
}

// machines are a cluster's machines behind what a roll asks of them. Terraform is slow, so the state is read once and after
// each change of ours; a plan is always made against the real state, and Terraform refuses to apply one that it outran.
type machines struct {
	open   func(ctx context.Context) (*opened, error)
	module *opened
	state  *terraform.State
	// idle is the state of which a plan was seen to change nothing.
	idle mark
	// kept is the destroy plan of a machine that was judged before its member went.
	kept *terraform.Plan
}

// mark names one state.
type mark struct {
	lineage string
	serial  uint64
}

func markOf(s *terraform.State) mark { return mark{s.Lineage, s.Serial} }

// refresh forgets the state, so that the next look reads it again.
func (m *machines) refresh() { m.state = nil }

// close deletes the module's files.
func (m *machines) close() error {
	if m.module == nil {
		return nil
	}
	return m.module.Close()
}

// observe gives the machines as Terraform's state has them.
func (m *machines) observe(ctx context.Context) (*live.Machines, error) {
	if m.module == nil {
		module, err := m.open(ctx)
		if err != nil {
			return nil, moduleFailure(err)
		}
		m.module = module
	}
	if m.state == nil {
		state, err := m.module.State(ctx)
		if err != nil {
			return nil, moduleFailure(err)
		}
		m.state = state
	}
	return liveMachines(m.state, m.idle == markOf(m.state)), nil
}

// liveMachines turns a state into values.
func liveMachines(s *terraform.State, idle bool) *live.Machines {
	out := &live.Machines{Endpoint: s.Output.Endpoint, ActsOnServing: s.Output.ActsOnServing, Idle: idle}
	for _, name := range slices.Sorted(maps.Keys(s.Registry)) {
		asked, host := s.Registry[name], s.Output.Machines[name]
		created, _ := time.Parse(time.RFC3339, asked.Created) // an unreadable one counts as very old
		out.All = append(out.All, live.Machine{
			Name: name, Role: asked.Role, Pool: asked.Pool, KubernetesVersion: asked.KubernetesVersion, Image: asked.Image,
			FailureDomain: asked.FailureDomain, Created: created, Serving: asked.Serving, Values: asked.Values,
			Missing: s.Missing(name), Broken: s.Broken(name),
			Hostname: host.Hostname, Addresses: host.Addresses, ProviderID: host.ProviderID,
		})
	}
	return out
}

// check makes sure that the module plans no change of its own.
func (m *machines) check(ctx context.Context) error {
	if _, err := m.module.Idle(ctx, m.state.Registry); err != nil {
		return moduleFailure(err)
	}
	m.idle = markOf(m.state)
	return nil
}

// add has Terraform make a machine.
func (m *machines) add(ctx context.Context, wanted live.Machine, userData terraform.Secret) error {
	return m.step(ctx, terraform.Step{
		Kind: terraform.Add, Machine: wanted.Name, UserData: userData,
		New: terraform.Machine{
			Role: wanted.Role, Pool: wanted.Pool, KubernetesVersion: wanted.KubernetesVersion, Image: wanted.Image,
			FailureDomain: wanted.FailureDomain, Created: wanted.Created.Format(time.RFC3339), Serving: wanted.Serving, Values: valuesOf(wanted.Values),
		},
	})
}

// valuesOf is never null in Terraform: a null differs from an empty map there.
func valuesOf(values map[string]string) map[string]string {
	if values == nil {
		return map[string]string{}
	}
	return values
}

// change has Terraform take a machine out of the endpoint, destroy it, or drop its entry.
func (m *machines) change(ctx context.Context, kind terraform.Kind, machine string) error {
	return m.step(ctx, terraform.Step{Kind: kind, Machine: machine})
}

// rehearseDestroy plans a destruction and judges the plan, before something happens that no way leads back from.
func (m *machines) rehearseDestroy(ctx context.Context, machine string) error {
	plan, err := m.module.Plan(ctx, terraform.Step{Kind: terraform.Destroy, Machine: machine, Have: m.state.Registry})
	if err != nil {
		return moduleFailure(err)
	}
	if len(plan.Offences) > 0 {
		return errors.Join(moduleFailure(&terraform.RefusedError{Step: plan.Step, Offences: plan.Offences}), plan.Discard())
	}
	m.kept = plan
	return nil
}

// step plans, judges and applies one change of the map of machines, and takes over the state that it leaves.
func (m *machines) step(ctx context.Context, s terraform.Step) error {
	s.Have = m.state.Registry
	plan := m.kept
	m.kept = nil
	if plan == nil || plan.Step.Kind != s.Kind || plan.Step.Machine != s.Machine {
		made, err := m.module.Plan(ctx, s)
		if err != nil {
			return moduleFailure(err)
		}
		plan = made
	}
	idle := m.idle == markOf(m.state)
	state, err := m.module.Apply(ctx, plan)
	m.state = state // nil after an error that hides it: the next look reads it
	if state != nil && idle && err == nil {
		m.idle = markOf(state)
	}
	if err != nil {
		return moduleFailure(err)
	}
	return nil
}

// moduleFailure makes stalls of what only a person can change in a module or its state.
func moduleFailure(err error) error {
	var unfit *terraform.UnfitError
	var refused *terraform.RefusedError
	switch {
	case errors.As(err, &refused):
		return fmt.Errorf("%w", &rollout.Failure{
			Reason: "TerraformPlanRefused", Message: refused.Error(), Elsewhere: true,
			Remedy: "run `theseus module check` on the module with --plan; plan it yourself with the map that `theseus machines` prints, and apply or remove what is not of the machines",
		})
	case errors.As(err, &unfit):
		return fmt.Errorf("%w", &rollout.Failure{Reason: "TerraformModuleUnfit", Message: unfit.Problem, Remedy: unfit.Remedy, Elsewhere: true})
	}
	return err
}
