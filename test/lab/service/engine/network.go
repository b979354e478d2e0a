// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"encoding/json"
	"fmt"
	"net/netip"
)

// Network is one network of the engine.
type Network struct {
	Name    string
	Labels  map[string]string
	Subnets []netip.Prefix
}

// Networks returns every network of the engine, the lab's or not: free subnets are found from it.
func (d *Docker) Networks(ctx context.Context) ([]Network, error) {
	ids, err := d.ids(ctx, nil, "network", "ls")
	if err != nil || len(ids) == 0 {
		return nil, err
	}
	out, err := run(ctx, nil, append([]string{"docker", "network", "inspect"}, ids...)...)
	if err != nil {
		return nil, err
	}
	return parseNetworks(out)
}

func parseNetworks(inspect string) ([]Network, error) {
	var raw []struct {
		Name   string
		Labels map[string]string
		IPAM   struct{ Config []struct{ Subnet string } }
	}
	if err := json.Unmarshal([]byte(inspect), &raw); err != nil {
		return nil, fmt.Errorf("reading the engine's list of networks: %w", err)
	}
	list := make([]Network, 0, len(raw))
	for _, r := range raw {
		n := Network{Name: r.Name, Labels: r.Labels}
		for _, c := range r.IPAM.Config {
			p, err := netip.ParsePrefix(c.Subnet)
			if err != nil {
				return nil, fmt.Errorf("subnet of network %s: %w", r.Name, err)
			}
			n.Subnets = append(n.Subnets, p)
		}
		list = append(list, n)
	}
	return list, nil
}

// CreateNetwork makes a bridge network; the gateway is the bridge's own address.
func (d *Docker) CreateNetwork(ctx context.Context, name, bridge string, subnet netip.Prefix, gateway netip.Addr, labels map[string]string) error {
	args := []string{
		"docker", "network", "create", "--driver", "bridge", "--subnet", subnet.String(), "--gateway", gateway.String(),
		"--opt", "com.docker.network.bridge.name=" + bridge,
	}
	for k, v := range labels {
		args = append(args, "--label", k+"="+v)
	}
	_, err := run(ctx, nil, append(args, name)...)
	return err
}

// RemoveNetwork removes a network that no container uses any more.
func (d *Docker) RemoveNetwork(ctx context.Context, name string) error {
	_, err := run(ctx, nil, "docker", "network", "rm", name)
	return err
}

// Connect plugs a container into a network, under the address that it had.
func (d *Docker) Connect(ctx context.Context, network, container, address string) error {
	_, err := run(ctx, nil, "docker", "network", "connect", "--ip", address, network, container)
	return err
}

// Disconnect unplugs a container from a network.
func (d *Docker) Disconnect(ctx context.Context, network, container string) error {
	_, err := run(ctx, nil, "docker", "network", "disconnect", "--force", network, container)
	return err
}

// AddRoute sends what the host has for a range of addresses to a machine. It may be repeated; the route goes with the
// network.
func (d *Docker) AddRoute(ctx context.Context, destination, machine string) error {
	_, err := run(ctx, nil, "ip", "route", "replace", destination, "via", machine)
	return err
}

// RemoveRoute takes back what AddRoute did. There may be no such route.
func (d *Docker) RemoveRoute(ctx context.Context, destination string) error {
	_, err := run(ctx, nil, "ip", "route", "flush", "exact", destination)
	return err
}
