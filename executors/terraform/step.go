// SPDX-License-Identifier: Apache-2.0

package terraform

import (
	"fmt"
	"maps"
	"slices"
)

// Kind is what a step does to the map of machines.
type Kind int

const (
	// Idle changes nothing: its plan shows whether the module is at rest.
	Idle Kind = iota
	// Add adds a machine, and gives it user data.
	Add
	// Serve changes whether a machine is wanted behind the API endpoint.
	Serve
	// Destroy removes a machine.
	Destroy
	// Drop removes an entry whose machine was never made, or is tainted.
	Drop
)

// String is the kind as messages have it.
func (k Kind) String() string {
	switch k {
	case Idle:
		return "idle check"
	case Add:
		return "add"
	case Serve:
		return "serving"
	case Destroy:
		return "destroy"
	case Drop:
		return "drop entry"
	}
	return fmt.Sprintf("kind %d", int(k))
}

// Step is one change to the map of machines, and so one plan.
type Step struct {
	Kind Kind
	// Machine is the name of the machine that the step is about; "" for Idle.
	Machine string
	// Have is the present map, State.Registry.
	Have Machines
	// New and UserData are what Add asks for.
	New      Machine
	UserData Secret
	// Serving is the new value of Serve.
	Serving bool
}

// String names the step in messages.
func (s Step) String() string {
	if s.Kind == Idle {
		return s.Kind.String()
	}
	return s.Kind.String() + " " + s.Machine
}

// Machines is the whole map after the step.
func (s Step) Machines() (Machines, error) {
	if len(s.Have) == 0 {
		return nil, fmt.Errorf("%s: the present map of machines is empty, and a plan for it would destroy everything", s)
	}
	present, known := s.Have[s.Machine]
	after := maps.Clone(s.Have)
	switch s.Kind {
	case Idle:
		return after, nil
	case Add:
		if known {
			return nil, fmt.Errorf("%s: the name is taken", s)
		}
		if s.Machine == "" || s.UserData == "" {
			return nil, fmt.Errorf("%s: a machine is only created with a name and with user data", s)
		}
		after[s.Machine] = s.New
		return after, nil
	case Serve, Destroy, Drop:
		if !known {
			return nil, fmt.Errorf("%s: there is no such machine; there are %s", s, quotedList(slices.Sorted(maps.Keys(s.Have))))
		}
		if s.Kind == Serve {
			present.Serving = s.Serving
			after[s.Machine] = present
			return after, nil
		}
		delete(after, s.Machine)
		if len(after) == 0 {
			return nil, fmt.Errorf("%s: it is the last machine", s)
		}
		return after, nil
	}
	return nil, fmt.Errorf("%s: unknown", s)
}
