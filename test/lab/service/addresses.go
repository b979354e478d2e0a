// SPDX-License-Identifier: Apache-2.0

package service

import (
	"net/http"
	"net/netip"
)

// First and last host numbers in the subnet that machines get.
const (
	firstHost = 10
	lastHost  = 250
)

// allocate picks the lowest free address. The machine's pods get the /24 of the same number, so that the two never
// disagree and nothing needs to be remembered.
func (c Config) allocate(machines []Machine) (netip.Addr, netip.Prefix, error) {
	used := map[string]bool{}
	for _, m := range machines {
		used[m.Address] = true
	}
	subnet, pods := c.Subnet.Masked().Addr().As4(), c.Pods.Masked().Addr().As4()
	for host := byte(firstHost); host <= lastHost; host++ {
		subnet[3], pods[2] = host, host
		if address := netip.AddrFrom4(subnet); !used[address.String()] {
			return address, netip.PrefixFrom(netip.AddrFrom4(pods), 24), nil
		}
	}
	return netip.Addr{}, netip.Prefix{}, problemf(http.StatusInsufficientStorage, "no free address in %s", c.Subnet)
}
