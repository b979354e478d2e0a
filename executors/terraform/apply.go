// SPDX-License-Identifier: Apache-2.0

package terraform

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/theseus-gitops/theseus/reconcile/rollout"
)

// readAgain limits the look at the state after an apply, which is taken even when ctx has ended.
const readAgain = 2 * time.Minute

// Apply applies that saved plan and nothing else, once, and reads the state again, also after a failure or an
// interruption: the state then comes with the error, nil when it could not be read. When the state moved between plan
// and apply, nothing was changed and the error wraps rollout.ErrConflict.
func (m *Module) Apply(ctx context.Context, p *Plan) (*State, error) {
	if err := m.applicable(p); err != nil {
		return nil, err
	}
	p.applied = true
	defer func() { _ = p.Discard() }()
	// Without -auto-approve: should the plan file ever be missing here, Terraform refuses instead of applying the folder.
	args := []string{"apply", "-json", "-input=false", m.lockTimeout()}
	variables, err := m.again(ctx, p)
	defer variables.remove()
	if err != nil {
		return nil, err
	}
	args = append(args, variables.args...)
	_, applied := m.run(ctx, append(args, p.file)...)
	if applied != nil {
		applied = m.afterFailure(ctx, applied)
	}
	reading, cancel := context.WithTimeout(context.WithoutCancel(ctx), readAgain)
	defer cancel()
	state, err := m.State(reading)
	if err != nil {
		err = fmt.Errorf("reading the state after the apply: %w", err)
	}
	return state, errors.Join(applied, err)
}

// again are the variables that the apply of a saved plan wants once more: those that the plan does not hold, or all of them.
func (m *Module) again(ctx context.Context, p *Plan) (files, error) {
	tofu, err := m.tofu(ctx)
	if err != nil {
		return files{}, err
	}
	if tofu {
		machines, err := p.Step.Machines()
		if err != nil {
			return files{}, err
		}
		return m.variableFiles(p.Step, machines)
	}
	if len(p.ephemeral) == 0 {
		return files{}, nil
	}
	file, err := m.folder.writeJSON("ephemeral.tfvars.json", revealed(p.ephemeral))
	if err != nil {
		return files{}, err
	}
	return files{args: []string{"-var-file=" + file}, own: []string{file}}, nil
}

func (m *Module) applicable(p *Plan) error {
	switch {
	case p.module != m:
		return errors.New("the plan was made by another module")
	case len(p.Offences) > 0:
		return &RefusedError{Step: p.Step, Offences: p.Offences}
	case p.Step.Kind == Idle:
		return errors.New("the plan of an idle check is never applied")
	case p.applied:
		// A plan without prior state could be applied twice and would make machines twice (hashicorp/terraform#24078).
		return errors.New("the plan was applied already; make a new one")
	}
	return nil
}

// afterFailure gives a failed apply its meaning.
func (m *Module) afterFailure(ctx context.Context, failed error) error {
	if _, ok := said(failed, "Saved plan is stale", "Saved plan does not match the given state"); ok {
		return fmt.Errorf("the Terraform state moved between plan and apply, nothing was changed: %w", rollout.ErrConflict)
	}
	return errors.Join(m.asLocked(ctx, failed), m.rescue(ctx))
}

// errored is where Terraform saves a state that the backend did not take.
const errored = "errored.tfstate"

// rescue pushes a state that the backend did not take: otherwise what was made would be known to nobody. When that
// fails too, the file stays, as the only record there is.
func (m *Module) rescue(ctx context.Context) error {
	path := filepath.Join(m.options.Dir, errored)
	if _, err := os.Stat(path); err != nil {
		return nil // there is no such file, as it should be
	}
	if err := os.Chmod(path, 0o600); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	pushing, cancel := context.WithTimeout(context.WithoutCancel(ctx), readAgain)
	defer cancel()
	if _, err := m.run(pushing, "state", "push", m.lockTimeout(), errored); err != nil {
		return fmt.Errorf("the backend did not take the new state, which is in %s now: run `%s state push %s` there, else what was changed is lost to Terraform: %w", path, m.name(), errored, err)
	}
	if err := os.Remove(path); err != nil {
		return fmt.Errorf("%s was pushed but not deleted, and it holds secrets: %w", path, err)
	}
	return nil
}
