// SPDX-License-Identifier: Apache-2.0

// Package haproxy is the lab's load balancer: it behaves like a cloud's, with a health check of every API server.
// It does not decide who is behind it: package service does.
// Start at Start; Apply moves machines in and out without touching the connections of those that stay.
package haproxy

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"
)

// slots is how many machines fit behind the endpoint: the largest control plane, doubled, in the middle of a roll.
const slots = 16

// Proxy is a running haproxy with a fixed set of slots, filled and emptied over its socket: a reload would cut every
// watch of every client.
type Proxy struct {
	socket string
	listen netip.AddrPort

	mu    sync.Mutex
	slots [slots]slot
}

// slot is a place for a machine; free without a name.
type slot struct {
	machine string
	// leaving: it gets no new connections, and loses those it has when grace is over.
	leaving bool
}

// grace is for how long a machine that leaves keeps its connections, as with a cloud's balancer.
const grace = 15 * time.Second

// Start runs haproxy until ctx ends or this process dies. Its configuration and socket are made in dir.
func Start(ctx context.Context, dir string, listen netip.AddrPort, log io.Writer) (*Proxy, <-chan error, error) {
	p := &Proxy{socket: filepath.Join(dir, "haproxy.sock"), listen: listen}
	file := filepath.Join(dir, "haproxy.cfg")
	if err := os.WriteFile(file, []byte(p.config()), 0o600); err != nil {
		return nil, nil, fmt.Errorf("writing the load balancer's configuration: %w", err)
	}
	if err := os.Remove(p.socket); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, nil, fmt.Errorf("removing an old socket: %w", err)
	}
	cmd := exec.CommandContext(ctx, "haproxy", "-db", "-f", file)
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGTERM}
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	if err := cmd.Start(); err != nil {
		return nil, nil, fmt.Errorf("starting haproxy: %w: install the package haproxy", err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	if err := p.ready(ctx, ended); err != nil {
		return nil, nil, err
	}
	return p, ended, nil
}

// config is the whole configuration. Health is asked over TLS as the kubelet's own probe does; traffic passes through.
func (p *Proxy) config() string {
	return fmt.Sprintf(`global
  stats socket %s mode 600 level admin
  maxconn 4000

defaults
  mode tcp
  timeout connect 5s
  timeout client 1h
  timeout server 1h
  timeout check 3s
  option clitcpka
  option srvtcpka

frontend endpoint
  bind %s
  default_backend apiservers

backend apiservers
  balance leastconn
  option httpchk GET /readyz
  http-check expect status 200
  default-server check check-ssl verify none inter 1s fall 2 rise 1 on-marked-down shutdown-sessions
  server-template slot 1-%d 192.0.2.1:6443 disabled
`, p.socket, p.listen, slots)
}

func (p *Proxy) ready(ctx context.Context, ended <-chan error) error {
	for {
		if _, err := p.command(ctx, "show info"); err == nil {
			return nil
		}
		select {
		case err := <-ended:
			return fmt.Errorf("haproxy ended at its start (%w): its log says why", err)
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// Apply sets the machines behind the endpoint. One that leaves gets no new connections, and loses those it has when grace is
// over or its API server ends.
func (p *Proxy) Apply(ctx context.Context, members map[string]netip.Addr) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i, s := range p.slots {
		if _, stays := members[s.machine]; s.machine == "" || s.leaving || stays {
			continue
		}
		if err := p.tell(ctx, "set server "+server(i)+" state drain"); err != nil {
			return fmt.Errorf("taking %s out of the endpoint: %w", s.machine, err)
		}
		p.slots[i].leaving = true
		time.AfterFunc(grace, func() { p.free(i) }) //nolint:contextcheck // long after the request that ctx is of
	}
	for _, name := range slices.Sorted(maps.Keys(members)) {
		if slices.Contains(p.slots[:], slot{machine: name}) {
			continue
		}
		i := slices.Index(p.slots[:], slot{})
		if i < 0 {
			return fmt.Errorf("putting %s behind the endpoint: all %d slots are taken", name, slots)
		}
		// A server that leaves maintenance counts as up until its first check: it is drained until it counts as down.
		err := p.tell(ctx, fmt.Sprintf("set server %s addr %s port 6443", server(i), members[name]),
			"set server "+server(i)+" state drain", "set server "+server(i)+" health down", "set server "+server(i)+" state ready")
		if err != nil {
			return fmt.Errorf("putting %s behind the endpoint: %w", name, err)
		}
		p.slots[i].machine = name
	}
	return nil
}

func server(i int) string { return fmt.Sprintf("apiservers/slot%d", i+1) }

// free cuts what is left of a machine's connections. A slot that can't be freed stays taken: there are enough.
func (p *Proxy) free(i int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	ctx, stop := context.WithTimeout(context.Background(), 5*time.Second)
	defer stop()
	if p.tell(ctx, "set server "+server(i)+" state maint", "shutdown sessions server "+server(i)) == nil {
		p.slots[i] = slot{}
	}
}

// tell sends commands, one connection each, as the socket wants it.
func (p *Proxy) tell(ctx context.Context, commands ...string) error {
	for _, c := range commands {
		answer, err := p.command(ctx, c)
		if err != nil {
			return err
		}
		// haproxy says nothing, or that an address changed, when a command worked; its refusals name what is unknown.
		if strings.HasPrefix(answer, "No such") || strings.HasPrefix(answer, "Unknown") || strings.HasPrefix(answer, "Invalid") {
			return fmt.Errorf("haproxy refused %q: %s", c, answer)
		}
	}
	return nil
}

func (p *Proxy) command(ctx context.Context, line string) (string, error) {
	var d net.Dialer
	conn, err := d.DialContext(ctx, "unix", p.socket)
	if err != nil {
		return "", fmt.Errorf("reaching haproxy: %w", err)
	}
	defer func() { _ = conn.Close() }()
	if err := conn.SetDeadline(time.Now().Add(5 * time.Second)); err != nil {
		return "", fmt.Errorf("reaching haproxy: %w", err)
	}
	if _, err := io.WriteString(conn, line+"\n"); err != nil {
		return "", fmt.Errorf("telling haproxy: %w", err)
	}
	answer, err := io.ReadAll(conn)
	if err != nil {
		return "", fmt.Errorf("hearing haproxy: %w", err)
	}
	return strings.TrimSpace(string(answer)), nil
}
