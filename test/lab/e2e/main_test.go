// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"os"
	"testing"

	"github.com/theseus-gitops/theseus/test/lab/cluster"
)

// lab is the one cluster that all scenarios share, one after another; each begins with ResetCoreDNS.
var lab *cluster.Cluster

func TestMain(m *testing.M) {
	os.Exit(run(m))
}

func run(m *testing.M) int {
	if os.Getenv("THESEUS_BIN") == "" {
		fmt.Fprintln(os.Stderr, "THESEUS_BIN is not set: run these tests with make e2e, which builds bin/theseus first")
		return 1
	}
	var err error
	lab, err = cluster.Up(context.Background(), cluster.Options{Name: "e2e", Out: os.Stdout})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	code := m.Run()
	if os.Getenv("THESEUS_KEEP_LAB") == "" {
		if err := lab.Down(context.Background()); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
	}
	return code
}
