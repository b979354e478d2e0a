// SPDX-License-Identifier: Apache-2.0

package service

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"time"

	"golang.org/x/net/dns/dnsmessage"
)

// Zone is the domain of the machines: NAME.machines.test. (RFC 6761 keeps .test free for this.)
const Zone = "machines.test."

// ServeNames answers DNS over UDP for the machines' names, and NXDOMAIN for all else, until ctx ends. The lab has no
// other resolver: CoreDNS in the cluster forwards to this one, and what it asks is really answered.
func (s *Server) ServeNames(ctx context.Context, conn net.PacketConn) error {
	stop := context.AfterFunc(ctx, func() { _ = conn.SetReadDeadline(time.Unix(1, 0)) })
	defer stop()
	query := make([]byte, 4096)
	for {
		n, from, err := conn.ReadFrom(query)
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			if errors.Is(err, net.ErrClosed) {
				return fmt.Errorf("serving names: %w", err)
			}
			continue // an ICMP error of an earlier answer
		}
		answer, err := s.resolve(ctx, query[:n])
		if err != nil {
			s.log.DebugContext(ctx, "no answer to a DNS query", "from", from, "error", err)
			continue
		}
		if _, err := conn.WriteTo(answer, from); err != nil {
			s.log.DebugContext(ctx, "DNS answer lost", "to", from, "error", err)
		}
	}
}

// resolve answers one DNS message.
func (s *Server) resolve(ctx context.Context, query []byte) ([]byte, error) {
	var p dnsmessage.Parser
	h, err := p.Start(query)
	if err != nil {
		return nil, fmt.Errorf("reading a DNS query: %w", err)
	}
	if h.Response {
		return nil, errors.New("an answer instead of a query")
	}
	question, err := p.Question()
	if err != nil {
		return nil, fmt.Errorf("reading a DNS query: %w", err)
	}
	answer := dnsmessage.Message{
		Header: dnsmessage.Header{
			ID: h.ID, Response: true, OpCode: h.OpCode, Authoritative: true,
			RecursionDesired: h.RecursionDesired, RecursionAvailable: true,
		},
		Questions: []dnsmessage.Question{question},
	}
	address, known, err := s.machineAddress(ctx, question.Name.String())
	switch {
	case err != nil:
		answer.RCode = dnsmessage.RCodeServerFailure
	case !known:
		answer.RCode = dnsmessage.RCodeNameError
	case question.Type == dnsmessage.TypeA:
		answer.Answers = []dnsmessage.Resource{{
			Header: dnsmessage.ResourceHeader{Name: question.Name, Class: question.Class, TTL: 5},
			Body:   &dnsmessage.AResource{A: address.As4()},
		}}
	}
	return answer.Pack()
}

func (s *Server) machineAddress(ctx context.Context, name string) (netip.Addr, bool, error) {
	machine, inZone := strings.CutSuffix(strings.ToLower(name), "."+Zone)
	if !inZone {
		return netip.Addr{}, false, nil
	}
	m, found, err := s.find(ctx, machine)
	if err != nil || !found {
		return netip.Addr{}, false, err
	}
	address, err := netip.ParseAddr(m.Address)
	return address, err == nil, err
}
