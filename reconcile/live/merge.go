// SPDX-License-Identifier: Apache-2.0

package live

import (
	"net/netip"
	"net/url"
	"slices"
	"strings"
)

// Merged is the control plane, matched over what Terraform, Kubernetes and etcd each know of it.
type Merged struct {
	Machines []MergedMachine
	// Nodes are control-plane nodes of no machine, and Members those of neither a machine nor such a node.
	Nodes   []Node
	Members []Member
}

// MergedMachine is a control-plane machine with its Node and member, nil where it has none or none was observed.
type MergedMachine struct {
	Machine
	Node   *Node
	Member *Member
}

// Merge matches the control plane's machines with Nodes, by provider id, then by name without case, then by address; and
// etcd members with both, by name or peer URL. Kubernetes must have been observed.
func Merge(c Cluster) Merged {
	var out Merged
	nodes := map[string]bool{} // matched ones
	if c.Machines != nil {
		for _, m := range c.Machines.ControlPlane() {
			out.Machines = append(out.Machines, MergedMachine{Machine: m})
		}
	}
	for _, same := range []func(Machine, Node) bool{sameProvider, sameName, sameAddress} {
		out.nodes(c.Kube.Nodes, nodes, same)
	}
	for _, n := range c.Kube.Nodes {
		if n.ControlPlane && !nodes[n.Name] {
			out.Nodes = append(out.Nodes, n)
		}
	}
	if c.Etcd != nil {
		out.members(c.Etcd.Members)
	}
	return out
}

// nodes gives machines their Nodes by one way to tell; matched are those that have a machine.
func (out *Merged) nodes(all []Node, matched map[string]bool, same func(Machine, Node) bool) {
	for i := range out.Machines {
		m := &out.Machines[i]
		for j := range all {
			if n := &all[j]; m.Node == nil && !matched[n.Name] && same(m.Machine, *n) {
				m.Node, matched[n.Name] = n, true
			}
		}
	}
}

func (out *Merged) members(members []Member) {
	matched := map[MemberID]bool{}
	for _, same := range []func(MergedMachine, Member) bool{memberName, memberAddress} {
		for i := range out.Machines {
			m := &out.Machines[i]
			for j := range members {
				if e := &members[j]; m.Member == nil && !matched[e.ID] && same(*m, *e) {
					m.Member, matched[e.ID] = e, true
				}
			}
		}
	}
	for _, e := range members {
		ofNode := func(n Node) bool {
			return strings.EqualFold(n.Name, e.Name) || slices.ContainsFunc(e.Hosts(), func(h string) bool { return slices.Contains(n.Addresses, h) })
		}
		if !matched[e.ID] && !slices.ContainsFunc(out.Nodes, ofNode) {
			out.Members = append(out.Members, e)
		}
	}
}

// Find is the machine of that name, nil if there is none.
func (out Merged) Find(name string) *MergedMachine {
	for i := range out.Machines {
		if out.Machines[i].Name == name {
			return &out.Machines[i]
		}
	}
	return nil
}

func sameProvider(m Machine, n Node) bool { return m.ProviderID != "" && m.ProviderID == n.ProviderID }

func sameName(m Machine, n Node) bool {
	return strings.EqualFold(m.Name, n.Name) || m.Hostname != "" && strings.EqualFold(m.Hostname, n.Name)
}

func sameAddress(m Machine, n Node) bool {
	return slices.ContainsFunc(m.Addresses, func(a string) bool { return slices.Contains(n.Addresses, plain(a)) })
}

func memberName(m MergedMachine, e Member) bool {
	return e.Name != "" && (m.Node != nil && strings.EqualFold(m.Node.Name, e.Name) || sameName(m.Machine, Node{Name: e.Name}))
}

// memberAddress matches a member that never started, and so has no name, by where it was to run. Names that differ forbid it.
func memberAddress(m MergedMachine, e Member) bool {
	if e.Name != "" && m.Node != nil {
		return false
	}
	return slices.ContainsFunc(e.Hosts(), func(h string) bool {
		return slices.ContainsFunc(m.Addresses, func(a string) bool { return plain(a) == h }) || m.Node != nil && slices.Contains(m.Node.Addresses, h)
	})
}

// Hosts are the hosts of the member's peer URLs.
func (m Member) Hosts() []string {
	var out []string
	for _, text := range m.PeerURLs {
		if u, err := url.Parse(text); err == nil && u.Hostname() != "" {
			out = append(out, plain(u.Hostname()))
		}
	}
	return out
}

// plain spells an address the one way that Kubernetes does; what is no address stays as it is.
func plain(text string) string {
	if a, err := netip.ParseAddr(text); err == nil {
		return a.Unmap().String()
	}
	return text
}
