// SPDX-License-Identifier: Apache-2.0

package terraform

import (
	"context"
	"maps"
	"slices"
	"time"
)

// Rehearsal is a plan of the kind that a roll makes, judged and thrown away.
type Rehearsal struct {
	Step     Step
	Offences []Offence
	Notices  []string
}

// Rehearse plans one step of every kind that a roll has, from the present state: nothing, one machine more, one that
// leaves the endpoint, one less. It changes nothing, but takes the state's lock for each plan. A module that is not at
// rest is rehearsed no further, because what is left to change would be in every plan. tell hears of each plan before it is made.
func (m *Module) Rehearse(ctx context.Context, now time.Time, tell func(Step)) ([]Rehearsal, error) {
	state, err := m.State(ctx)
	if err != nil {
		return nil, err
	}
	var out []Rehearsal
	for _, step := range rehearsed(state, m.options.Cluster, now) {
		tell(step)
		plan, err := m.Plan(ctx, step)
		if err != nil {
			return out, err
		}
		out = append(out, Rehearsal{Step: step, Offences: plan.Offences, Notices: plan.Notices})
		if err := plan.Discard(); err != nil {
			return out, err
		}
		if step.Kind == Idle && len(plan.Offences) > 0 {
			return out, nil
		}
	}
	return out, nil
}

// rehearsed are the steps: about the first machine by name, and one that would be made like it.
func rehearsed(state *State, cluster string, now time.Time) []Step {
	have := state.Registry
	present := slices.Sorted(maps.Keys(have))[0]
	added := have[present]
	added.Created, added.Serving = now.UTC().Format(time.RFC3339), false
	steps := []Step{
		{Kind: Idle, Have: have},
		{Kind: Add, Machine: cluster + "-cp-rehearsal", Have: have, New: added, UserData: "#cloud-config\n# a rehearsal: no machine gets this\n"},
	}
	if state.Output.ActsOnServing {
		steps = append(steps, Step{Kind: Serve, Machine: present, Have: have, Serving: !have[present].Serving})
	}
	// Without another machine the map would be empty, which the contract refuses.
	if len(have) > 1 {
		steps = append(steps, Step{Kind: Destroy, Machine: present, Have: have})
	}
	return steps
}
