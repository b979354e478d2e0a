// SPDX-License-Identifier: Apache-2.0

package service

import (
	"encoding/json"
	"fmt"
	"net/netip"

	"github.com/theseus-gitops/theseus/test/lab/service/engine"
)

// userDataUnit runs the user data after what the image itself starts. The mark is set before, as by cloud-init: a
// machine that lost its power in the middle does not begin again.
const userDataUnit = `[Unit]
Description=The machine's user data, run once
ConditionPathExists=!/etc/theseus-lab/user-data.started
ConditionPathExists=/etc/theseus-lab/user-data
After=network.target dbus.service containerd.service lab-network.service

[Service]
Type=oneshot
RemainAfterExit=yes
TimeoutStartSec=infinity
Environment=HOME=/root
ExecStartPre=/bin/touch /etc/theseus-lab/user-data.started
ExecStart=/etc/theseus-lab/user-data
StandardOutput=append:/var/log/user-data.log
StandardError=inherit

[Install]
WantedBy=multi-user.target
`

// networkUnit refuses at once what is meant for a Service that kube-proxy does not know (yet). Without it such a packet
// goes to the host and comes back until it dies; a client that started before kube-proxy, as CoreDNS does, would wait
// half a minute for an answer, because its connection's later tries are not looked up anew.
const networkUnit = `[Unit]
Description=The lab's network
Before=kubelet.service lab-user-data.service

[Service]
Type=oneshot
RemainAfterExit=yes
EnvironmentFile=/etc/theseus-lab/machine.env
ExecStart=/usr/sbin/iptables -w -A FORWARD -d ${SERVICES} -j REJECT --reject-with icmp-host-unreachable
ExecStart=/usr/sbin/iptables -w -A OUTPUT -d ${SERVICES} -j REJECT --reject-with icmp-host-unreachable

[Install]
WantedBy=multi-user.target
`

// files are what a machine finds at its first boot: who it is, its pods' network, a resolver for pods, the
// user data.
//
// Pods must not get the engine's resolver (127.0.0.11), which CoreDNS takes for itself and reports as a loop.
func (c Config) files(m Machine, script string) []engine.File {
	const folder = "/etc/theseus-lab/"
	files := []engine.File{
		{Path: folder + "machine.env", Mode: 0o644, Data: fmt.Appendf(nil,
			"LAB=%s\nNAME=%s\nADDRESS=%s\nPOD_CIDR=%s\nSERVICES=%s\nGATEWAY=%s\nENDPOINT=%s\nSERVICE=http://%s\n",
			c.Lab, m.Name, m.Address, m.PodCIDR, c.Services, c.Gateway, c.EndpointAddress(), c.ServiceAddress())},
		{Path: folder + "resolv.conf", Mode: 0o644, Data: fmt.Appendf(nil, "nameserver %s\n", c.Gateway)},
		{Path: "/etc/cni/net.d/10-lab.conflist", Mode: 0o644, Data: conflist(m.PodCIDR)},
	}
	files = append(files, unit("lab-network.service", networkUnit)...)
	files = append(files, unit("lab-user-data.service", userDataUnit)...)
	if script != "" {
		files = append(files, engine.File{Path: folder + "user-data", Mode: 0o700, Data: []byte(script)})
	}
	return files
}

// unit is a service of systemd, enabled.
func unit(name, text string) []engine.File {
	const folder = "/etc/systemd/system/"
	return []engine.File{
		{Path: folder + name, Mode: 0o644, Data: []byte(text)},
		{Path: folder + "multi-user.target.wants/" + name, Link: folder + name},
	}
}

// EndpointAddress is the load balancer's host:port.
func (c Config) EndpointAddress() string { return netip.AddrPortFrom(c.Gateway, EndpointPort).String() }

// ServiceAddress is the service's host:port.
func (c Config) ServiceAddress() string { return netip.AddrPortFrom(c.Gateway, Port).String() }

// conflist is the CNI configuration: a pair of interfaces per pod, addresses from the machine's own range. Between
// machines the host routes, so a machine needs to know of no other.
func conflist(pods string) []byte {
	type object = map[string]any
	list := object{
		"cniVersion": "1.0.0",
		"name":       "lab",
		"plugins": []object{
			{
				"type": "ptp", "ipMasq": true,
				"ipam": object{
					"type": "host-local", "dataDir": "/run/cni-ipam-state",
					"ranges": [][]object{{{"subnet": pods}}},
					"routes": []object{{"dst": "0.0.0.0/0"}},
				},
			},
			{"type": "portmap", "capabilities": object{"portMappings": true}},
		},
	}
	data, err := json.MarshalIndent(list, "", "  ")
	if err != nil {
		panic(err) // texts and maps of texts always encode
	}
	return append(data, '\n')
}
