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
After=network.target dbus.service containerd.service

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

// firstProgram is where a machine starts.
const firstProgram = "/etc/theseus-lab/boot"

// boot makes the machine's own cgroups writable, which the engine allows to privileged containers only, and then
// becomes the image's entrypoint. The mounts are of the container's cgroup namespace: it sees and makes none of the
// host's or another machine's.
const boot = `#!/bin/sh
for m in /sys/fs/cgroup /sys/fs/cgroup/*; do
	if mountpoint -q "$m"; then mount -o remount,bind,rw "$m"; fi
done
exec "$@"
`

// files are what a machine finds at its first boot: who it is, its pods' network, a resolver for pods, the user data.
//
// Pods must not get the engine's resolver (127.0.0.11), which CoreDNS takes for itself and reports as a loop.
func (c Config) files(m Machine, script string) []engine.File {
	const folder = "/etc/theseus-lab/"
	files := []engine.File{
		{Path: firstProgram, Mode: 0o755, Data: []byte(boot)},
		{Path: folder + "machine.env", Mode: 0o644, Data: fmt.Appendf(nil,
			"LAB=%s\nNAME=%s\nADDRESS=%s\nPOD_CIDR=%s\nGATEWAY=%s\nENDPOINT=%s\nSERVICE=http://%s\n",
			c.Lab, m.Name, m.Address, m.PodCIDR, c.Gateway, c.EndpointAddress(), c.ServiceAddress())},
		{Path: folder + "resolv.conf", Mode: 0o644, Data: fmt.Appendf(nil, "nameserver %s\n", c.Gateway)},
		{Path: "/etc/cni/net.d/10-lab.conflist", Mode: 0o644, Data: conflist(m.PodCIDR)},
		{Path: "/etc/systemd/system/lab-user-data.service", Mode: 0o644, Data: []byte(userDataUnit)},
		{
			Path: "/etc/systemd/system/multi-user.target.wants/lab-user-data.service",
			Link: "/etc/systemd/system/lab-user-data.service",
		},
	}
	if script != "" {
		files = append(files, engine.File{Path: folder + "user-data", Mode: 0o700, Data: []byte(script)})
	}
	return files
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
