// SPDX-License-Identifier: Apache-2.0

package live

import "time"

// Machines is what the Terraform state says of a cluster's machines.
type Machines struct {
	// All are sorted by name, of every pool.
	All []Machine
	// Endpoint is that of the API servers, host:port, as the module's output has it.
	Endpoint string
	// ActsOnServing tells that the module takes a machine with serving = false out of the endpoint.
	ActsOnServing bool
	// Idle tells that a plan for the present map was seen to change nothing, by this process and for this state.
	Idle bool
	// Interrupted tells that this process broke the lock of an earlier one, which was killed while Terraform worked: it may
	// have made what the state does not know.
	Interrupted bool
}

// ControlPlanePool is the pool, and the role, of control-plane machines in the Terraform contract.
const ControlPlanePool = "control-plane"

// Machine is one entry of the registry: what was asked for, and what came of it.
type Machine struct {
	Name              string
	Role, Pool        string
	KubernetesVersion string
	Image             string
	FailureDomain     string
	Created           time.Time
	Serving           bool
	Values            map[string]string
	// Missing: asked for, but nothing of it exists. Broken: something of it is half made. Such a machine is never
	// completed, only dropped.
	Missing, Broken bool
	// Hostname, Addresses and ProviderID are the module's output, empty where it says nothing.
	Hostname   string
	Addresses  []string
	ProviderID string
}

// ControlPlane are the machines of the control plane, by name.
func (m Machines) ControlPlane() []Machine {
	var out []Machine
	for _, machine := range m.All {
		if machine.Pool == ControlPlanePool {
			out = append(out, machine)
		}
	}
	return out
}

// Find is the machine of that name, nil if there is none.
func (m Machines) Find(name string) *Machine {
	for i := range m.All {
		if m.All[i].Name == name {
			return &m.All[i]
		}
	}
	return nil
}
