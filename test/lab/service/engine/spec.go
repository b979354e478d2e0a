// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"maps"
	"slices"
)

// Spec describes a container that boots systemd.
type Spec struct {
	Name     string            // container name, unique on the whole engine
	Hostname string            // what the machine calls itself
	Image    string            // must be present: nothing is pulled
	Network  string            // network to join
	Address  string            // fixed IPv4 address in Network
	DNS      string            // name server behind the engine's own resolver
	Volume   string            // volume mounted at /var
	Labels   map[string]string // Labels(lab) and more
}

// Mode says what this host lets a container have.
type Mode struct {
	// Privileged means that --privileged works. Where the host itself lacks a capability it fails, and every
	// capability in Capabilities is added by name instead.
	Privileged   bool
	Capabilities []string
}

// createArgs is the docker command line that makes, but does not start, the container.
//
// /run and /tmp are tmpfs because systemd expects them empty at boot; /var is a volume because containerd inside
// can't stack an overlay on the engine's overlay. The cgroup namespace is private, so that two kubelets on one host
// never see each other's pods as orphans.
func (s Spec) createArgs(m Mode) []string {
	args := []string{
		"create", "--pull", "never", "--name", s.Name, "--hostname", s.Hostname,
		"--network", s.Network, "--ip", s.Address, "--dns", s.DNS,
		"--cgroupns", "private", "--stop-signal", "SIGRTMIN+3",
		"--tmpfs", "/run:exec,mode=755", "--tmpfs", "/tmp:exec",
		"--volume", s.Volume + ":/var",
	}
	if m.Privileged {
		args = append(args, "--privileged")
	} else {
		args = append(args, "--security-opt", "seccomp=unconfined", "--security-opt", "apparmor=unconfined",
			"--device-cgroup-rule", "a *:* rwm")
		for _, c := range m.Capabilities {
			args = append(args, "--cap-add", c)
		}
	}
	for _, k := range slices.Sorted(maps.Keys(s.Labels)) {
		args = append(args, "--label", k+"="+s.Labels[k])
	}
	return append(args, s.Image)
}
