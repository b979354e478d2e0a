// SPDX-License-Identifier: Apache-2.0

package terraform

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	tfjson "github.com/hashicorp/terraform-json"
)

// Plan is a saved plan for one step, with the guard's verdict. It can be applied once.
type Plan struct {
	Step Step
	// Offences are what the plan would do and may not. Notices are what it would do besides and may: changed outputs,
	// changes made outside of Terraform, tolerated updates.
	Offences []Offence
	Notices  []string
	module   *Module
	file     string
	// ephemeral are the variables that a plan does not keep, so that they are given again.
	ephemeral map[string]Secret
	applied   bool
}

// String names the plan. Nothing else of it is printed: what it holds is secret.
func (p *Plan) String() string { return "plan for " + p.Step.String() }

// GoString is String.
func (p *Plan) GoString() string { return p.String() }

// Discard deletes the saved plan. Close does it too.
func (p *Plan) Discard() error {
	if err := os.Remove(p.file); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("deleting a plan: %w", err)
	}
	return nil
}

// RefusedError says that a plan would do what its step may not do.
type RefusedError struct {
	Step     Step
	Offences []Offence
}

// Error implements error.
func (e *RefusedError) Error() string {
	lines := make([]string, 0, len(e.Offences)+1)
	lines = append(lines, fmt.Sprintf("Terraform's plan for %q does what this step may not do; nothing was changed:", e.Step.String()))
	for _, o := range e.Offences {
		lines = append(lines, "- "+o.String())
	}
	return strings.Join(lines, "\n")
}

// Plan makes a saved plan for the step and judges it. The state's cluster and contract are checked on what the plan
// itself has read, under the lock. Discard or Apply it.
func (m *Module) Plan(ctx context.Context, s Step) (*Plan, error) {
	machines, err := s.Machines()
	if err != nil {
		return nil, err
	}
	variables, err := m.variableFiles(s, machines)
	defer variables.remove()
	if err != nil {
		return nil, err
	}
	m.plans++
	// Made by us first, so that it is 0600: Terraform keeps the mode.
	file, err := m.folder.write(fmt.Sprintf("plan-%d", m.plans), nil)
	if err != nil {
		return nil, err
	}
	p := &Plan{Step: s, module: m, file: file}
	args := append([]string{"plan", "-json", "-input=false", "-out=" + file, m.lockTimeout()}, variables.args...)
	if _, err := m.run(ctx, args...); err != nil {
		return nil, errors.Join(m.asLocked(ctx, err), p.Discard())
	}
	if err := p.judge(ctx); err != nil {
		return nil, errors.Join(err, p.Discard())
	}
	return p, nil
}

// Idle makes sure that the module is at rest: its plan for the present map changes nothing. It gives the notices, or
// a *RefusedError.
func (m *Module) Idle(ctx context.Context, have Machines) ([]string, error) {
	p, err := m.Plan(ctx, Step{Kind: Idle, Have: have})
	if err != nil {
		return nil, err
	}
	if err := p.Discard(); err != nil {
		return nil, err
	}
	if len(p.Offences) > 0 {
		return nil, &RefusedError{Step: p.Step, Offences: p.Offences}
	}
	return p.Notices, nil
}

func (m *Module) lockTimeout() string { return "-lock-timeout=" + m.options.LockTimeout.String() }

// files are var files as arguments, in the order in which they override each other, and those that are deleted at once.
type files struct{ args, own []string }

func (f files) remove() {
	for _, file := range f.own {
		_ = os.Remove(file)
	}
}

func (m *Module) variableFiles(s Step, machines Machines) (files, error) {
	var f files
	for _, name := range m.options.VarFiles {
		f.args = append(f.args, "-var-file="+filepath.Join(m.options.Dir, name))
	}
	if len(m.options.Variables) > 0 {
		file, err := m.folder.writeJSON("variables.tfvars.json", revealed(m.options.Variables))
		if err != nil {
			return f, err
		}
		f.own = append(f.own, file)
	}
	file, err := m.writeVariables(s, machines)
	if err != nil {
		return f, err
	}
	f.own = append(f.own, file)
	for _, file := range f.own {
		f.args = append(f.args, "-var-file="+file)
	}
	return f, nil
}

// writeVariables writes the map of machines, and the user data of the one that is created, over whatever other files say.
func (m *Module) writeVariables(s Step, machines Machines) (string, error) {
	bootstrap := map[string]string{}
	if s.Kind == Add {
		bootstrap[s.Machine] = string(s.UserData)
		m.secrets.add(string(s.UserData))
	}
	return m.folder.writeJSON("machines.tfvars.json", map[string]any{"machines": machines, "bootstrap": bootstrap})
}

// judge reads the saved plan back and runs the guard over it.
func (p *Plan) judge(ctx context.Context) error {
	m := p.module
	data, err := m.run(ctx, "show", "-json", p.file)
	if err != nil {
		return err
	}
	plan, err := parsePlan(data)
	if err != nil {
		return err
	}
	m.learn(plan)
	value, err := priorOutput(plan)
	if err != nil {
		return err
	}
	if _, err := parseOutput(value, m.options.Cluster); err != nil {
		return err
	}
	p.ephemeral = ephemeral(plan, m.options.Variables)
	p.Offences = Guard(plan, p.Step, m.options.Tolerate)
	p.Notices = notices(plan, m.options.Tolerate)
	return nil
}

// learn takes what the plan marks as sensitive: an error of the apply may repeat it.
func (m *Module) learn(plan *tfjson.Plan) {
	if plan.Config != nil && plan.Config.RootModule != nil {
		for name, v := range plan.Config.RootModule.Variables {
			if given := plan.Variables[name]; v.Sensitive && given != nil {
				m.secrets.addAll(given.Value)
			}
		}
	}
	for _, rc := range plan.ResourceChanges {
		if rc.Change != nil {
			m.secrets.addMarked(rc.Change.Before, rc.Change.BeforeSensitive)
			m.secrets.addMarked(rc.Change.After, rc.Change.AfterSensitive)
		}
	}
	for _, c := range plan.OutputChanges {
		m.secrets.addMarked(c.Before, c.BeforeSensitive)
		m.secrets.addMarked(c.After, c.AfterSensitive)
	}
}
