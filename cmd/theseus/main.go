// SPDX-License-Identifier: Apache-2.0

// Command theseus upgrades kubeadm clusters from Git. Each command has a file of its own, which holds no rule:
// rules are in the packages below reconcile, effects in gitsource and executors.
// Start at root.go; target.go and repository.go are where ports meet adapters.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
	_ "time/tzdata" // windows are in IANA zones, and the image has no zone files
)

// version is stamped by the linker.
var version = "dev"

func main() {
	stop := make(chan os.Signal, 2)
	signal.Notify(stop, os.Interrupt, syscall.SIGTERM)
	os.Exit(run(context.Background(), os.Args[1:], stream{os.Stdin, os.Stdout, os.Stderr}, stop))
}
