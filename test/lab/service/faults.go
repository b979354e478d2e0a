// SPDX-License-Identifier: Apache-2.0

package service

import (
	"context"
	"fmt"
	"net/http"
	"slices"

	"github.com/theseus-gitops/theseus/test/lab/service/engine"
)

// Fault is something that goes wrong with a machine.
type Fault string

// The faults, each with its effect and what its end does.
const (
	FaultPause      Fault = "pause"       // all processes frozen; end: they go on
	FaultPowerOff   Fault = "poweroff"    // killed at once, nothing synced; end: boots again, user data not run again
	FaultNetworkCut Fault = "network-cut" // unplugged; end: plugged in under the same address
	FaultDiskFull   Fault = "disk-full"   // /var has no byte left; end: the space is given back
	FaultNeverBoot  Fault = "never-boot"  // set before the machine is made: exists, never starts; end: boots
)

const faultsFile = "faults.json"

// ballast is the file that fills a machine's disk.
const ballast = "/var/.theseus-lab-ballast"

// fillDisk takes all blocks at once, then by writing what fallocate leaves. Both end with an error, which is what is
// wanted; that no byte can be written afterwards is what counts.
const fillDisk = "fallocate -l 1T " + ballast + " 2>/dev/null\n" +
	"dd if=/dev/zero of=" + ballast + ".rest bs=4k 2>/dev/null\n" +
	"if echo x 2>/dev/null >" + ballast + ".probe && [ -s " + ballast + ".probe ]; then echo 'space is left' >&2; exit 1; fi"

// faults maps machine names to the fault in force.
func (s *Server) faults() (map[string]Fault, error) {
	faults := map[string]Fault{}
	err := s.load(faultsFile, &faults)
	return faults, err
}

func (s *Server) listFaults(*http.Request) (reply, error) {
	faults, err := s.faults()
	return reply{Status: http.StatusOK, Body: map[string]any{"faults": faults}}, err
}

// putFault injects ?kind= into a machine. The same fault again changes nothing; a second, other one is refused.
func (s *Server) putFault(r *http.Request) (reply, error) {
	ctx, name, kind := context.WithoutCancel(r.Context()), r.PathValue("name"), Fault(r.URL.Query().Get("kind"))
	kinds := []Fault{FaultPause, FaultPowerOff, FaultNetworkCut, FaultDiskFull, FaultNeverBoot}
	if !slices.Contains(kinds, kind) {
		return reply{}, problemf(http.StatusBadRequest, "fault kind %q: want one of %q", kind, kinds)
	}
	s.machines.Lock()
	defer s.machines.Unlock()
	faults, err := s.faults()
	if err != nil {
		return reply{}, err
	}
	if faults[name] == kind {
		return reply{Status: http.StatusOK, Body: map[string]Fault{name: kind}}, nil
	}
	m, found, err := s.find(ctx, name)
	if err != nil {
		return reply{}, err
	}
	if err := possible(name, found, faults[name], kind); err != nil {
		return reply{}, err
	}
	// Remembered first: a fault that failed half-way can still be ended.
	faults[name] = kind
	if err := s.save(faultsFile, faults); err != nil {
		return reply{}, err
	}
	if err := s.inject(ctx, m, kind); err != nil {
		return reply{}, fmt.Errorf("injecting %s into %q: %w", kind, name, err)
	}
	return reply{Status: http.StatusCreated, Body: map[string]Fault{name: kind}}, nil
}

// possible refuses a fault that the machine can't have now.
func possible(name string, found bool, has, kind Fault) error {
	switch {
	case has != "":
		return problemf(http.StatusConflict, "machine %q already has fault %q: end it first", name, has)
	case found && kind == FaultNeverBoot:
		return problemf(http.StatusConflict, "machine %q has booted already: use %q", name, FaultPowerOff)
	case !found && kind != FaultNeverBoot:
		return problemf(http.StatusNotFound, "no machine %q", name)
	}
	return nil
}

func (s *Server) inject(ctx context.Context, m Machine, kind Fault) error {
	switch kind {
	case FaultPause:
		return s.engine.Pause(ctx, m.container)
	case FaultPowerOff:
		return s.engine.Kill(ctx, m.container)
	case FaultNetworkCut:
		return s.engine.Disconnect(ctx, s.config.Network, m.container)
	case FaultDiskFull:
		_, err := s.engine.Exec(ctx, m.container, "sh", "-c", fillDisk)
		return err
	case FaultNeverBoot:
		return nil // create asks for it
	}
	return problemf(http.StatusBadRequest, "fault kind %q is unknown", kind)
}

// deleteFault ends a machine's fault. There may be none.
func (s *Server) deleteFault(r *http.Request) (reply, error) {
	ctx, name := context.WithoutCancel(r.Context()), r.PathValue("name")
	s.machines.Lock()
	defer s.machines.Unlock()
	faults, err := s.faults()
	if err != nil {
		return reply{}, err
	}
	m, found, err := s.find(ctx, name)
	if err != nil {
		return reply{}, err
	}
	if found && m.Fault != "" {
		if err := s.heal(ctx, m); err != nil {
			return reply{}, fmt.Errorf("ending %s of %q: %w", m.Fault, name, err)
		}
	}
	delete(faults, name)
	return reply{Status: http.StatusNoContent}, s.save(faultsFile, faults)
}

// heal ends a fault. It looks at the machine first, because the fault may have taken no effect.
func (s *Server) heal(ctx context.Context, m Machine) error {
	switch m.Fault {
	case FaultPause:
		if m.State == engine.StatePaused {
			return s.engine.Unpause(ctx, m.container)
		}
		return nil
	case FaultPowerOff, FaultNeverBoot:
		if m.State == engine.StateRunning {
			return nil
		}
		if err := s.engine.Start(ctx, m.container); err != nil {
			return err
		}
		return s.engine.AddRoute(ctx, m.PodCIDR, m.Address)
	case FaultNetworkCut:
		if err := s.engine.Disconnect(ctx, s.config.Network, m.container); err != nil {
			s.log.DebugContext(ctx, "was not plugged in", "machine", m.Name, "error", err)
		}
		if err := s.engine.Connect(ctx, s.config.Network, m.container, m.Address); err != nil {
			return err
		}
		return s.engine.AddRoute(ctx, m.PodCIDR, m.Address)
	case FaultDiskFull:
		_, err := s.engine.Exec(ctx, m.container, "rm", "-f", ballast, ballast+".rest", ballast+".probe")
		return err
	}
	return fmt.Errorf("unknown fault %q", m.Fault)
}
