// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"bufio"
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math/bits"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/theseus-gitops/theseus/test/lab/service"
	"github.com/theseus-gitops/theseus/test/lab/service/engine"
)

// labs is how many labs fit on one host: each has its own ranges, so that the host can route to all of them.
const labs = 16

// diskSize is each machine's /var. It is sparse: only what is written takes space.
const diskSize = 16 << 30

// ranges are lab number n's: 10.213.n.0/24 for machines, and a /16 each for pods and Services.
func ranges(n byte) service.Config {
	return service.Config{
		Bridge:   fmt.Sprintf("lab%d", n),
		Subnet:   netip.PrefixFrom(netip.AddrFrom4([4]byte{10, 213, n, 0}), 24),
		Gateway:  netip.AddrFrom4([4]byte{10, 213, n, 1}),
		Pods:     netip.PrefixFrom(netip.AddrFrom4([4]byte{10, 214 + n, 0, 0}), 16),
		Services: netip.PrefixFrom(netip.AddrFrom4([4]byte{10, 230 + n, 0, 0}), 16),
		Disk:     diskSize,
	}
}

// free returns the first lab whose ranges overlap with none that are taken.
func free(taken []netip.Prefix) (service.Config, error) {
	for n := byte(0); n < labs; n++ {
		c := ranges(n)
		if !slices.ContainsFunc(taken, func(p netip.Prefix) bool {
			return p.Overlaps(c.Subnet) || p.Overlaps(c.Pods) || p.Overlaps(c.Services)
		}) {
			return c, nil
		}
	}
	return service.Config{}, errors.New("no free subnet: all of 10.213.0.0/24 to 10.213.15.0/24 (with their pods' and " +
		"Services' ranges) overlap with routes or networks of this host: take a lab down")
}

// ensureNetwork reads the lab's configuration, or picks free ranges and writes it; then it sees to the network.
func (c *Cluster) ensureNetwork(ctx context.Context) error {
	image := c.Config.Image
	config, err := service.ReadConfig(c.Dir)
	switch {
	case err == nil && config.Image != image:
		return fmt.Errorf("it was made with node image %s and would now get %s: take it down first (lab down --name %s)",
			config.Image, image, c.Name)
	case err == nil:
		c.Config = config
	case errors.Is(err, fs.ErrNotExist):
		// Without its configuration nothing of an older lab of this name can be used.
		if err := c.removeAll(ctx); err != nil {
			return fmt.Errorf("removing what an earlier lab left: %w", err)
		}
		if err := c.chooseNetwork(ctx, image); err != nil {
			return err
		}
	default:
		return err
	}
	c.cloud = cloud{base: c.Service()}
	networks, err := c.engine.Networks(ctx)
	if err != nil {
		return err
	}
	if slices.ContainsFunc(networks, func(n engine.Network) bool { return n.Name == c.Config.Network }) {
		return nil
	}
	return c.engine.CreateNetwork(ctx, c.Config.Network, c.Config.Bridge, c.Config.Subnet, c.Config.Gateway, engine.Labels(c.Name))
}

// chooseNetwork picks free ranges under a lock that all labs share, and makes the network before it lets go.
func (c *Cluster) chooseNetwork(ctx context.Context, image string) error {
	unlock, err := lockLab(ctx, filepath.Join(filepath.Dir(c.Dir), ".networks"))
	if err != nil {
		return err
	}
	defer unlock()
	networks, err := c.engine.Networks(ctx)
	if err != nil {
		return err
	}
	routes, err := os.ReadFile("/proc/net/route")
	if err != nil {
		return fmt.Errorf("reading this host's routes: %w", err)
	}
	taken, err := parseRoutes(string(routes))
	if err != nil {
		return err
	}
	for _, n := range networks {
		taken = append(taken, n.Subnets...)
	}
	config, err := free(taken)
	if err != nil {
		return err
	}
	config.Lab, config.Image, config.Network = c.Name, image, "theseus-"+c.Name
	err = c.engine.CreateNetwork(ctx, config.Network, config.Bridge, config.Subnet, config.Gateway, engine.Labels(c.Name))
	if err != nil {
		return err
	}
	c.Config = config
	return c.writeFile(service.ConfigFile, config)
}

// writeFile writes a JSON file of the lab's folder, whole or not at all.
func (c *Cluster) writeFile(name string, v any) error {
	data, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return fmt.Errorf("packing %s: %w", name, err)
	}
	return c.writeRaw(name, append(data, '\n'))
}

func (c *Cluster) writeRaw(name string, data []byte) error {
	if err := os.MkdirAll(c.Dir, 0o700); err != nil {
		return fmt.Errorf("making the lab's folder: %w", err)
	}
	path := filepath.Join(c.Dir, name)
	if err := os.WriteFile(path+".new", data, 0o600); err != nil {
		return fmt.Errorf("writing %s: %w", name, err)
	}
	if err := os.Rename(path+".new", path); err != nil {
		return fmt.Errorf("writing %s: %w", name, err)
	}
	return nil
}

// parseRoutes reads /proc/net/route: destinations and masks in hexadecimal, the least byte first. The default route
// takes nothing.
func parseRoutes(table string) ([]netip.Prefix, error) {
	var taken []netip.Prefix
	lines := bufio.NewScanner(strings.NewReader(table))
	for lines.Scan() {
		f := strings.Fields(lines.Text())
		if len(f) < 8 || f[0] == "Iface" {
			continue
		}
		destination, err := hex.DecodeString(f[1])
		if err != nil || len(destination) != 4 {
			return nil, fmt.Errorf("route %q: destination %q is not an address", lines.Text(), f[1])
		}
		mask, err := hex.DecodeString(f[7])
		if err != nil || len(mask) != 4 {
			return nil, fmt.Errorf("route %q: mask %q is not a mask", lines.Text(), f[7])
		}
		slices.Reverse(destination)
		length := 0
		for _, b := range mask {
			length += bits.OnesCount8(b)
		}
		if length > 0 {
			taken = append(taken, netip.PrefixFrom(netip.AddrFrom4([4]byte(destination)), length))
		}
	}
	return taken, lines.Err()
}

// readConfig reads the lab's configuration; an error that is fs.ErrNotExist means that there is no such lab.
func (c *Cluster) readConfig() error {
	config, err := service.ReadConfig(c.Dir)
	if err != nil {
		return fmt.Errorf("lab %s: %w", c.Name, err)
	}
	c.Config, c.cloud = config, cloud{base: "http://" + config.ServiceAddress()}
	return nil
}
