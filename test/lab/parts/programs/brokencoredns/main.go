// SPDX-License-Identifier: Apache-2.0

// Command brokencoredns is the CoreDNS of a version that does not work, for
// tests of what happens then. With the environment variable HEALTHY_HOSTNAME_PREFIX
// it is CoreDNS itself (/coredns-real) where the hostname begins so: a version
// whose canary is fine, and whose Deployment's pods never become ready.
package main

import (
	"fmt"
	"os"
	"strings"
	"syscall"
)

const realCoreDNS = "/coredns-real"

func main() {
	hostname, err := os.Hostname()
	if err != nil {
		fail("hostname: " + err.Error())
	}
	prefix := os.Getenv("HEALTHY_HOSTNAME_PREFIX")
	if prefix == "" {
		fail("this version of CoreDNS never starts: it was made so for a test")
	}
	if !strings.HasPrefix(hostname, prefix) {
		fail(fmt.Sprintf("this version of CoreDNS starts only where the hostname begins with %q, here it is %q: it was made so for a test", prefix, hostname))
	}
	args := append([]string{realCoreDNS}, os.Args[1:]...)
	fail("exec: " + syscall.Exec(realCoreDNS, args, os.Environ()).Error())
}

func fail(message string) {
	fmt.Fprintln(os.Stderr, "coredns: "+message)
	os.Exit(1)
}
