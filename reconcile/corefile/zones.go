// SPDX-License-Identifier: Apache-2.0

package corefile

import (
	"cmp"
	"net/netip"
	"slices"
	"strconv"
	"strings"
)

// Zone is a zone that a Corefile serves over plain DNS.
type Zone struct {
	Name       string // lower case, with the trailing dot; "." is everything
	Port       int
	Kubernetes bool // answered by the kubernetes plugin
}

const dnsPort = 53

// Zones lists what a server with this Corefile can be asked over plain DNS: the zones of its server blocks and, marked,
// those of their kubernetes plugins, sorted and each once. Snippets are looked through; imported files, other transports
// (tls, https, grpc, quic) and names with environment variables are left out. A network ("10.0.0.0/8") is given as its
// first reverse zone. The error is a *SyntaxError.
func Zones(corefile string) ([]Zone, error) {
	blocks, err := parse(corefile)
	if err != nil {
		return nil, err
	}
	s := newSource(blocks, nil)
	var zones []Zone
	for _, b := range blocks {
		_, isSnippet := b.snippet()
		_, isImport := b.imported()
		if !isSnippet && !isImport {
			zones = append(zones, blockZones(b.addresses, s.effective(b))...)
		}
	}
	return tidyZones(zones), nil
}

// tidyZones sorts, and lets one entry stand for a zone that a block and its kubernetes plugin both name.
func tidyZones(zones []Zone) []Zone {
	slices.SortFunc(zones, func(a, b Zone) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.Port, b.Port), compareClaims(b.Kubernetes, a.Kubernetes))
	})
	return slices.CompactFunc(zones, func(a, b Zone) bool { return a.Name == b.Name && a.Port == b.Port })
}

func compareClaims(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return 1
	}
	return -1
}

func blockZones(addresses []string, plugins []directive) []Zone {
	var zones []Zone
	for _, a := range addresses {
		if z, ok := addressZone(strings.TrimSuffix(a, ",")); ok {
			zones = append(zones, z)
		}
	}
	var answered []Zone
	for _, d := range plugins {
		if d.name == "kubernetes" {
			answered = append(answered, kubernetesZones(d.args, zones)...)
		}
	}
	return append(zones, answered...)
}

// kubernetesZones are the plugin's own zones on every port of its block or, when it names none, those of the block.
func kubernetesZones(args []string, around []Zone) []Zone {
	var zones []Zone
	for _, outer := range around {
		if len(args) == 0 {
			zones = append(zones, Zone{Name: outer.Name, Port: outer.Port, Kubernetes: true})
		}
		for _, arg := range args {
			if name, ok := zoneName(arg); ok {
				zones = append(zones, Zone{Name: name, Port: outer.Port, Kubernetes: true})
			}
		}
	}
	return zones
}

// addressZone reads the address of a server block: [dns://]ZONE[:PORT].
func addressZone(address string) (Zone, bool) {
	scheme, rest, found := strings.Cut(address, "://")
	if !found {
		scheme, rest = "dns", address
	}
	if scheme != "dns" {
		return Zone{}, false
	}
	port := dnsPort
	if colon := strings.LastIndexByte(rest, ':'); colon >= 0 && !isNetwork(rest) {
		n, err := strconv.ParseUint(rest[colon+1:], 10, 16)
		if err != nil || n == 0 {
			return Zone{}, false
		}
		port, rest = int(n), rest[:colon]
	}
	if rest == "" {
		rest = "." // ":53" serves everything
	}
	name, ok := zoneName(rest)
	return Zone{Name: name, Port: port}, ok
}

func isNetwork(text string) bool {
	_, err := netip.ParsePrefix(text)
	return err == nil
}

// zoneName normalises a zone or a network.
func zoneName(text string) (string, bool) {
	if strings.ContainsAny(text, "{}") {
		return "", false
	}
	if prefix, err := netip.ParsePrefix(text); err == nil {
		return reverseZone(prefix), true
	}
	name := strings.ToLower(text)
	if !strings.HasSuffix(name, ".") {
		name += "."
	}
	if len(name) > 1 && (name[0] == '.' || strings.Contains(name, "..")) {
		return "", false
	}
	return name, strings.IndexFunc(name, notInName) < 0
}

func notInName(r rune) bool {
	letter := 'a' <= r && r <= 'z' || '0' <= r && r <= '9'
	return !letter && !strings.ContainsRune("-_./", r)
}

// reverseZone is the reverse zone of a network's first full label: /23 in IPv4 is covered by two /24 zones, of which
// this is the first.
func reverseZone(prefix netip.Prefix) string {
	address := prefix.Masked().Addr()
	labels, width, suffix := ipv4Labels(address), 8, "in-addr.arpa."
	if !address.Is4() {
		labels, width, suffix = ipv6Labels(address), 4, "ip6.arpa."
	}
	labels = labels[:(prefix.Bits()+width-1)/width]
	slices.Reverse(labels)
	return strings.Join(append(labels, suffix), ".")
}

func ipv4Labels(a netip.Addr) []string {
	var labels []string
	for _, octet := range a.AsSlice() {
		labels = append(labels, strconv.Itoa(int(octet)))
	}
	return labels
}

func ipv6Labels(a netip.Addr) []string {
	var labels []string
	for _, octet := range a.AsSlice() {
		labels = append(labels, strconv.FormatUint(uint64(octet>>4), 16), strconv.FormatUint(uint64(octet&0xf), 16))
	}
	return labels
}
