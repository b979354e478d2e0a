// SPDX-License-Identifier: Apache-2.0

package service

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/theseus-gitops/theseus/test/lab/service/engine"
)

// MachineRequest is the body of PUT /machines/NAME.
type MachineRequest struct {
	// Image is the node image; empty means the lab's own.
	Image string `json:"image,omitempty"`
	// UserData is run once, at the first boot: a script with a #! line, or a #cloud-config (see Script).
	UserData string `json:"userData,omitempty"`
}

// Machine is what the service says of a machine.
type Machine struct {
	Name    string       `json:"name"`
	Address string       `json:"address"`
	PodCIDR string       `json:"podCIDR"`
	Image   string       `json:"image"`
	State   engine.State `json:"state"`
	Fault   Fault        `json:"fault,omitempty"`

	container string
	request   string // hash of the request that made it
}

// LabelMachine is the label of a machine's container that holds the machine's name.
const LabelMachine = "theseus.lab.machine"

// DiskFolder is where the machines' disks are, in the lab's folder.
const DiskFolder = "disks"

// Labels of a machine's container, besides LabelMachine and engine.Labels.
const (
	labelAddress = "theseus.lab.address"
	labelPods    = "theseus.lab.pods"
	labelRequest = "theseus.lab.request"
)

var validImage = regexp.MustCompile(`^[a-z0-9][a-zA-Z0-9./:@_-]{0,254}$`)

func parseMachineRequest(body []byte) (MachineRequest, error) {
	var q MachineRequest
	if len(bytes.TrimSpace(body)) > 0 {
		d := json.NewDecoder(bytes.NewReader(body))
		d.DisallowUnknownFields()
		if err := d.Decode(&q); err != nil {
			return q, problemf(http.StatusBadRequest, `reading the machine: %v: want {"image": "…", "userData": "…"}`, err)
		}
		if _, err := d.Token(); !errors.Is(err, io.EOF) {
			return q, problemf(http.StatusBadRequest, "reading the machine: more than one JSON value")
		}
	}
	if q.Image != "" && !validImage.MatchString(q.Image) {
		return q, problemf(http.StatusBadRequest, "image %q is not an image name", q.Image)
	}
	return q, nil
}

func (q MachineRequest) hash() string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%q %q", q.Image, q.UserData))
	return hex.EncodeToString(sum[:])
}

// containers lists the lab's machines by name, with their faults.
func (s *Server) containers(ctx context.Context) ([]Machine, error) {
	list, err := s.engine.List(ctx, engine.Labels(s.config.Lab))
	if err != nil {
		return nil, fmt.Errorf("listing machines: %w", err)
	}
	faults, err := s.faults()
	if err != nil {
		return nil, err
	}
	machines := make([]Machine, 0, len(list))
	for _, c := range list {
		name := c.Labels[LabelMachine]
		if name == "" {
			continue
		}
		machines = append(machines, Machine{
			Name: name, Address: c.Labels[labelAddress], PodCIDR: c.Labels[labelPods], Image: c.Image, State: c.State,
			Fault: faults[name], container: c.Name, request: c.Labels[labelRequest],
		})
	}
	slices.SortFunc(machines, func(a, b Machine) int { return strings.Compare(a.Name, b.Name) })
	return machines, nil
}

// find returns the machine of that name; false when there is none.
func (s *Server) find(ctx context.Context, name string) (Machine, bool, error) {
	list, err := s.containers(ctx)
	if err != nil {
		return Machine{}, false, err
	}
	i := slices.IndexFunc(list, func(m Machine) bool { return m.Name == name })
	if i < 0 {
		return Machine{}, false, nil
	}
	return list[i], true, nil
}

func (s *Server) listMachines(r *http.Request) (reply, error) {
	list, err := s.containers(r.Context())
	return reply{Status: http.StatusOK, Body: map[string]any{"machines": list}}, err
}

func (s *Server) getMachine(r *http.Request) (reply, error) {
	m, found, err := s.find(r.Context(), r.PathValue("name"))
	if err == nil && !found {
		err = problemf(http.StatusNotFound, "no machine %q", r.PathValue("name"))
	}
	return reply{Status: http.StatusOK, Body: m}, err
}

// putMachine makes a machine, or finds it made by an equal request before. A different request under the same name is
// refused: a machine never changes, it is replaced.
func (s *Server) putMachine(r *http.Request) (reply, error) {
	body, err := readBody(r)
	if err != nil {
		return reply{}, err
	}
	q, err := parseMachineRequest(body)
	if err != nil {
		return reply{}, err
	}
	script, err := Script(q.UserData)
	if err != nil {
		return reply{}, problemf(http.StatusBadRequest, "user data: %v", err)
	}
	// A caller who hangs up leaves no half-made machine: what began is finished.
	ctx := context.WithoutCancel(r.Context())
	s.machines.Lock()
	defer s.machines.Unlock()

	name := r.PathValue("name")
	m, made, err := s.made(ctx, name, q)
	if err != nil || made {
		return reply{Status: http.StatusOK, Body: m}, err
	}
	if m, err = s.create(ctx, name, q, script); err != nil {
		return reply{}, fmt.Errorf("making machine %q: %w", name, err)
	}
	return reply{Status: http.StatusCreated, Body: m}, nil
}

// made finds a machine that the same request made. One whose making broke off between create and start is removed.
func (s *Server) made(ctx context.Context, name string, q MachineRequest) (Machine, bool, error) {
	m, found, err := s.find(ctx, name)
	switch {
	case err != nil || !found:
		return Machine{}, false, err
	case m.request != q.hash():
		return Machine{}, false, problemf(http.StatusConflict, "machine %q exists, made by another request: delete it first", name)
	case m.State == engine.StateCreated && m.Fault != FaultNeverBoot:
		return Machine{}, false, s.engine.Remove(ctx, m.container)
	}
	return m, true, nil
}

// create makes a machine and powers it on, unless it was told never to boot.
func (s *Server) create(ctx context.Context, name string, q MachineRequest, script string) (Machine, error) {
	list, err := s.containers(ctx)
	if err != nil {
		return Machine{}, err
	}
	faults, err := s.faults()
	if err != nil {
		return Machine{}, err
	}
	address, pods, err := s.config.allocate(list)
	if err != nil {
		return Machine{}, err
	}
	m := Machine{
		Name: name, Address: address.String(), PodCIDR: pods.String(), Image: q.Image, State: engine.StateCreated,
		Fault: faults[name], container: s.config.Lab + "." + name, request: q.hash(),
	}
	if m.Image == "" {
		m.Image = s.config.Image
	}
	disk := s.disk(name)
	if err := s.engine.CreateDisk(ctx, disk); err != nil {
		return Machine{}, err
	}
	if err := s.engine.Create(ctx, s.spec(m, disk.Volume)); err != nil {
		return Machine{}, err
	}
	if err := s.engine.CopyIn(ctx, m.container, s.config.files(m, script)); err != nil {
		return Machine{}, err
	}
	if m.Fault == FaultNeverBoot {
		return m, nil
	}
	if err := s.engine.Start(ctx, m.container); err != nil {
		return Machine{}, err
	}
	m.State = engine.StateRunning
	return m, s.engine.AddRoute(ctx, m.PodCIDR, m.Address)
}

func (s *Server) spec(m Machine, volume string) engine.Spec {
	labels := engine.Labels(s.config.Lab)
	labels[LabelMachine], labels[labelAddress] = m.Name, m.Address
	labels[labelPods], labels[labelRequest] = m.PodCIDR, m.request
	return engine.Spec{
		Name: m.container, Hostname: m.Name, Image: m.Image, Network: s.config.Network, Address: m.Address,
		DNS: s.config.Gateway.String(), Volume: volume, Labels: labels,
	}
}

func (s *Server) disk(name string) engine.Disk {
	return engine.Disk{
		Volume: s.config.Lab + "." + name, File: filepath.Join(s.dir, DiskFolder, name+".img"),
		Bytes: s.config.Disk, Labels: engine.Labels(s.config.Lab),
	}
}

// deleteMachine removes a machine with all that belongs to it. There may be none.
func (s *Server) deleteMachine(r *http.Request) (reply, error) {
	ctx := context.WithoutCancel(r.Context())
	name := r.PathValue("name")
	s.machines.Lock()
	defer s.machines.Unlock()
	m, found, err := s.find(ctx, name)
	if err != nil {
		return reply{}, err
	}
	if err := s.forget(ctx, name); err != nil {
		return reply{}, err
	}
	if found {
		if err := s.engine.Remove(ctx, m.container); err != nil {
			return reply{}, fmt.Errorf("removing machine %q: %w", name, err)
		}
		if err := s.engine.RemoveRoute(ctx, m.PodCIDR); err != nil {
			return reply{}, fmt.Errorf("removing the route to machine %q: %w", name, err)
		}
	}
	if err := s.engine.RemoveDisk(ctx, s.disk(name)); err != nil {
		return reply{}, fmt.Errorf("removing the disk of machine %q: %w", name, err)
	}
	return reply{Status: http.StatusNoContent}, nil
}

// forget drops a machine's fault and its place behind the endpoint.
func (s *Server) forget(ctx context.Context, name string) error {
	if err := s.leaveEndpoint(ctx, name); err != nil {
		return err
	}
	faults, err := s.faults()
	if err != nil {
		return err
	}
	if faults[name] == "" {
		return nil
	}
	delete(faults, name)
	return s.save(faultsFile, faults)
}
