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

// lab is the one cluster that all scenarios of CoreDNS share, one after another; need brings it up. Scenarios of the control
// plane have labs of their own.
var lab *cluster.Cluster

func TestMain(m *testing.M) {
	os.Exit(run(m))
}

func run(m *testing.M) int {
	if os.Getenv("THESEUS_BIN") == "" {
		fmt.Fprintln(os.Stderr, "THESEUS_BIN is not set: run these tests with make e2e, which builds bin/theseus first")
		return 1
	}
	code := m.Run()
	if lab != nil && os.Getenv("THESEUS_KEEP_LAB") == "" {
		if err := lab.Down(context.Background()); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
	}
	return code
}

// need brings the shared lab up.
func need(t *testing.T) {
	t.Helper()
	if lab != nil {
		return
	}
	up, err := cluster.Up(t.Context(), cluster.Options{Name: "e2e", Out: os.Stdout})
	if err != nil {
		t.Fatal(err)
	}
	lab = up
}

// reset begins a scenario of CoreDNS: with this image tag and this Corefile, and nothing of an earlier one.
func reset(t *testing.T, tag, corefile string) {
	t.Helper()
	need(t)
	if err := lab.ResetCoreDNS(t.Context(), tag, corefile); err != nil {
		t.Fatal(err)
	}
}
