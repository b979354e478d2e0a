// SPDX-License-Identifier: Apache-2.0

package planetest

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/theseus-gitops/theseus/reconcile/live"
	"github.com/theseus-gitops/theseus/reconcile/rollout"
)

// terraform is its state. A machine that was asked for is in the registry; whether it exists is another matter.
type terraform struct {
	registry map[string]live.Machine
	serial   int
	// locked tells that a run which was killed holds the lock.
	locked bool
	// serving tells that the module acts on serving.
	serving bool
}

// applyTakes is how long Terraform takes, before and after the machine itself comes or goes.
const applyTakes = 15 * time.Second

// changed is a new state.
func (p *Plane) changed() {
	idle := p.process.idle == p.state.serial
	p.state.serial++
	if idle {
		p.process.idle = p.state.serial
	}
}

// addMachine prepares the join and makes the machine.
func (p *Plane) addMachine(act rollout.AddMachine) error {
	name := act.Machine.Name
	if !p.process.sees {
		return fmt.Errorf("no credentials to let %s join with", name)
	}
	p.credentials = credentials{machine: name, until: act.Until}
	if _, taken := p.state.registry[name]; taken {
		return fmt.Errorf("add %s: the name is taken", name)
	}
	p.Pass(applyTakes)
	if p.blow != FailHalf {
		v := p.power(act.Machine)
		p.dieAmid()
		v.inState, v.tainted = true, p.blow == FailTainted
	}
	p.Pass(applyTakes)
	p.state.registry[name] = act.Machine
	p.changed()
	return p.half("Terraform: the provider failed")
}

// destroyMachine destroys what the state has of a machine.
func (p *Plane) destroyMachine(name string) error {
	if _, known := p.state.registry[name]; !known {
		return fmt.Errorf("destroy %s: there is no such machine", name)
	}
	if len(p.state.registry) == 1 {
		return fmt.Errorf("destroy %s: it is the last machine", name)
	}
	p.Pass(applyTakes)
	if v := p.vms[name]; v != nil && v.inState {
		p.mayBeDestroyed(v)
		v.on = false
		delete(p.vms, name)
		p.elect()
	}
	p.dieAmid()
	p.Pass(applyTakes)
	if err := p.half("Terraform: the provider failed"); err != nil {
		return err
	}
	delete(p.state.registry, name)
	p.changed()
	return nil
}

func (p *Plane) leaveEndpoint(name string) error {
	m, known := p.state.registry[name]
	if !known {
		return fmt.Errorf("serve %s: there is no such machine", name)
	}
	p.Pass(applyTakes)
	m.Serving = false
	p.state.registry[name] = m
	p.changed()
	return nil
}

// dieAmid kills the process while Terraform works: the state does not know what was done, and stays locked.
func (p *Plane) dieAmid() {
	if p.blow == DieAmid {
		p.state.locked = true
		p.die("killed while Terraform worked")
	}
}

func (p *Plane) half(why string) error {
	if p.blow == FailHalf || p.blow == FailTainted {
		return fmt.Errorf("%s", why)
	}
	return nil
}

// reclaim breaks the lock of a run that was killed, once per process.
func (p *Plane) reclaim() error {
	if p.process.reclaimed {
		return nil
	}
	p.process.reclaimed = true
	if !p.state.locked {
		return nil
	}
	p.state.locked, p.process.interrupted = false, true
	p.tell("the lock of the killed run is broken")
	return fmt.Errorf("the lock was of a killed run: %w", rollout.ErrConflict)
}

// DeleteLost is a person who deletes the machines that Terraform's state does not know.
func (p *Plane) DeleteLost() {
	for _, name := range slices.Sorted(maps.Keys(p.vms)) {
		if v := p.vms[name]; !v.inState {
			p.Tell("# a person deletes %s, which Terraform's state does not know", name)
			v.on = false
			delete(p.vms, name)
			p.check()
		}
	}
}
