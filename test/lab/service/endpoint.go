// SPDX-License-Identifier: Apache-2.0

package service

import (
	"context"
	"maps"
	"net/http"
	"net/netip"
	"slices"
)

const endpointFile = "endpoint.json"

// endpoint maps the machines behind the endpoint to their addresses.
func (s *Server) endpoint() (map[string]netip.Addr, error) {
	members := map[string]netip.Addr{}
	err := s.load(endpointFile, &members)
	return members, err
}

func (s *Server) listEndpoint(*http.Request) (reply, error) {
	members, err := s.endpoint()
	return reply{Status: http.StatusOK, Body: map[string]any{"members": members}}, err
}

// putEndpoint puts a machine behind the endpoint; it is used once its /readyz answers.
func (s *Server) putEndpoint(r *http.Request) (reply, error) {
	ctx, name := context.WithoutCancel(r.Context()), r.PathValue("name")
	s.machines.Lock()
	defer s.machines.Unlock()
	m, found, err := s.find(ctx, name)
	if err != nil {
		return reply{}, err
	}
	if !found {
		return reply{}, problemf(http.StatusNotFound, "no machine %q", name)
	}
	address, err := netip.ParseAddr(m.Address)
	if err != nil {
		return reply{}, err
	}
	members, err := s.endpoint()
	if err != nil {
		return reply{}, err
	}
	members[name] = address
	if err := s.apply(ctx, members); err != nil {
		return reply{}, err
	}
	return reply{Status: http.StatusOK, Body: map[string]any{"members": members}}, s.save(endpointFile, members)
}

// deleteEndpoint takes a machine out of the endpoint. It need not be there.
func (s *Server) deleteEndpoint(r *http.Request) (reply, error) {
	s.machines.Lock()
	defer s.machines.Unlock()
	err := s.leaveEndpoint(context.WithoutCancel(r.Context()), r.PathValue("name"))
	return reply{Status: http.StatusNoContent}, err
}

func (s *Server) leaveEndpoint(ctx context.Context, name string) error {
	members, err := s.endpoint()
	if err != nil {
		return err
	}
	if _, member := members[name]; !member {
		return nil
	}
	delete(members, name)
	if err := s.apply(ctx, members); err != nil {
		return err
	}
	return s.save(endpointFile, members)
}

// apply tells the load balancer, and routes the host's way to Services through the first of the members.
func (s *Server) apply(ctx context.Context, members map[string]netip.Addr) error {
	if err := s.balancer.Apply(ctx, members); err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(members)) {
		return s.engine.AddRoute(ctx, s.config.Services.String(), members[name].String())
	}
	return nil
}
