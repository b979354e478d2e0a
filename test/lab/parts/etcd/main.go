// SPDX-License-Identifier: Apache-2.0

// Command etcd is the etcd server and etcdctl of one version in one
// binary, told apart by the name it is called under.
//
// The version is chosen by the mod file: go build -modfile=v3.6.16.mod.
package main

import (
	"fmt"
	"os"
	"path/filepath"

	"go.etcd.io/etcd/etcdctl/v3/ctlv3"
	"go.etcd.io/etcd/server/v3/etcdmain"
)

func main() {
	switch name := filepath.Base(os.Args[0]); name {
	case "etcd":
		etcdmain.Main(os.Args)
	case "etcdctl":
		ctlv3.MustStart()
	default:
		fmt.Fprintf(os.Stderr, "call this binary as etcd or etcdctl, not as %q\n", name)
		os.Exit(2)
	}
}
