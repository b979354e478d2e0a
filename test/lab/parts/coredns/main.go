// SPDX-License-Identifier: Apache-2.0

// Command coredns is CoreDNS with the plugins that the lab's Corefiles use, and
// no cloud provider's: it builds in a fraction of the time of the full one.
//
// The version is chosen by the mod file: go build -modfile=v1.14.6.mod.
package main

import (
	"github.com/coredns/coredns/coremain"

	// Each registers itself. Their order in a chain is that of CoreDNS's own
	// list (dnsserver.Directives), not of these lines. import is built in.
	_ "github.com/coredns/coredns/plugin/cache"
	_ "github.com/coredns/coredns/plugin/errors"
	_ "github.com/coredns/coredns/plugin/file"
	_ "github.com/coredns/coredns/plugin/forward"
	_ "github.com/coredns/coredns/plugin/health"
	_ "github.com/coredns/coredns/plugin/hosts"
	_ "github.com/coredns/coredns/plugin/kubernetes"
	_ "github.com/coredns/coredns/plugin/loadbalance"
	_ "github.com/coredns/coredns/plugin/log"
	_ "github.com/coredns/coredns/plugin/loop"
	_ "github.com/coredns/coredns/plugin/metrics"
	_ "github.com/coredns/coredns/plugin/ready"
	_ "github.com/coredns/coredns/plugin/reload"
	_ "github.com/coredns/coredns/plugin/rewrite"
	_ "github.com/coredns/coredns/plugin/template"
)

func main() { coremain.Run() }
