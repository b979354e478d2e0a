// SPDX-License-Identifier: Apache-2.0

package live_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/theseus-gitops/theseus/reconcile/live"
)

// merged tells a result in a line: machine=node/member, then what matched nothing.
func merged(c live.Cluster) string {
	m := live.Merge(c)
	var out []string
	for _, machine := range m.Machines {
		node, member := "-", "-"
		if machine.Node != nil {
			node = machine.Node.Name
		}
		if machine.Member != nil {
			member = fmt.Sprint(uint64(machine.Member.ID))
		}
		out = append(out, machine.Name+"="+node+"/"+member)
	}
	for _, n := range m.Nodes {
		out = append(out, "node "+n.Name)
	}
	for _, e := range m.Members {
		out = append(out, fmt.Sprint("member ", uint64(e.ID)))
	}
	return strings.Join(out, " ")
}

func TestMerge(t *testing.T) {
	t.Parallel()
	machine := func(name string, edit func(m *live.Machine)) live.Machine {
		m := live.Machine{Name: name, Pool: live.ControlPlanePool}
		edit(&m)
		return m
	}
	plain := func(*live.Machine) {}
	node := func(name, address, provider string) live.Node {
		return live.Node{Name: name, ControlPlane: true, ProviderID: provider, Addresses: []string{address}}
	}
	member := func(id live.MemberID, name, host string) live.Member {
		return live.Member{ID: id, Name: name, PeerURLs: []string{"https://" + host + ":2380"}}
	}
	for _, c := range []struct {
		name     string
		machines []live.Machine
		nodes    []live.Node
		members  []live.Member
		want     string
	}{
		{"by name, without case", []live.Machine{machine("CP-1", plain)}, []live.Node{node("cp-1", "10.0.0.11", "")}, []live.Member{member(1, "cp-1", "10.0.0.11")}, "CP-1=cp-1/1"},
		{"by host name", []live.Machine{machine("a", func(m *live.Machine) { m.Hostname = "ip-10-0-0-11" })}, []live.Node{node("ip-10-0-0-11", "10.0.0.11", "")}, nil, "a=ip-10-0-0-11/-"},
		{"the provider's id before the name", []live.Machine{machine("a", func(m *live.Machine) { m.ProviderID = "x://1" }), machine("b", func(m *live.Machine) { m.ProviderID = "x://2" })},
			[]live.Node{node("b", "10.0.0.11", "x://1"), node("a", "10.0.0.12", "x://2")}, nil, "a=b/- b=a/-"},
		{"by address", []live.Machine{machine("a", func(m *live.Machine) { m.Addresses = []string{"fd00:0::1"} })}, []live.Node{node("n", "fd00::1", "")}, nil, "a=n/-"},
		{"a node of no machine", []live.Machine{machine("a", plain)}, []live.Node{node("a", "10.0.0.11", ""), node("z", "10.0.0.12", "")}, []live.Member{member(1, "a", "10.0.0.11"), member(2, "z", "10.0.0.12")}, "a=a/1 node z"},
		{"a worker's node is nobody's here", []live.Machine{machine("a", plain)}, []live.Node{{Name: "w"}}, nil, "a=-/-"},
		{"a worker's machine, too", []live.Machine{{Name: "w", Pool: "workers"}}, []live.Node{{Name: "w"}}, nil, ""},
		{"a member that never started, by the node's address", []live.Machine{machine("a", plain)}, []live.Node{node("a", "10.0.0.11", "")}, []live.Member{member(1, "", "10.0.0.11")}, "a=a/1"},
		{"another's name at our address is not ours", []live.Machine{machine("a", plain)}, []live.Node{node("a", "10.0.0.11", "")}, []live.Member{member(1, "old", "10.0.0.11")}, "a=a/- member 1"},
		{"a member without machine", []live.Machine{machine("a", plain)}, []live.Node{node("a", "10.0.0.11", "")}, []live.Member{member(1, "a", "10.0.0.11"), member(2, "gone", "10.0.0.9")}, "a=a/1 member 2"},
		{"nobody is matched twice", []live.Machine{machine("a", func(m *live.Machine) { m.Hostname = "n" }), machine("n", plain)}, []live.Node{node("n", "10.0.0.11", "")}, nil, "a=n/- n=-/-"},
	} {
		cluster := live.Cluster{Kube: &live.Kube{Nodes: c.nodes}, Machines: &live.Machines{All: c.machines}, Etcd: &live.Etcd{Members: c.members}}
		if got := merged(cluster); got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
	// What was not observed matches nothing, and is no reason to fail.
	if got := merged(live.Cluster{Kube: &live.Kube{Nodes: []live.Node{node("n", "10.0.0.11", "")}}}); got != "node n" {
		t.Errorf("Kubernetes alone: %s", got)
	}
}
