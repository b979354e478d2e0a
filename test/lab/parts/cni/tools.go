// SPDX-License-Identifier: Apache-2.0

//go:build tools

// Package cni keeps the CNI plugins that the lab builds in the mod files: they
// are commands, which nothing else here imports.
package cni

import (
	_ "github.com/containernetworking/plugins/plugins/ipam/host-local"
	_ "github.com/containernetworking/plugins/plugins/main/loopback"
	_ "github.com/containernetworking/plugins/plugins/main/ptp"
	_ "github.com/containernetworking/plugins/plugins/meta/portmap"
)
