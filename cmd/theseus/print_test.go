// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strings"
	"testing"

	"github.com/theseus-gitops/theseus/reconcile"
	"github.com/theseus-gitops/theseus/reconcile/rollout"
	"github.com/theseus-gitops/theseus/reconcile/status"
)

func TestPlanIsShownInWords(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	a := &app{std: stream{out: &out, err: &out}}
	hash := strings.Repeat("1a2b", 16)
	err := a.printPlan(output{format: "text"}, origin{repo: "https://git.example.com/fleet.git", branch: "main", commit: strings.Repeat("c0de", 10)}, reconcile.Result{
		Clusters: []reconcile.ClusterResult{{
			Report: status.Report{Cluster: "a", Stage: "dev", Outcome: status.Changes, Why: "said by the step"},
			Plan: rollout.Plan{Hash: hash, Steps: []rollout.Step{
				{Act: rollout.VerifyDNS{}, Subject: "deployment/coredns", Why: "every pod must answer"},
			}},
		}},
	})
	want := `specs: branch main, commit c0dec0dec0de of https://git.example.com/fleet.git
🔄 a (dev): 1 step to do
   1  verify  deployment/coredns  every pod must answer
  plan 1a2b1a2b1a2b (the same spec and the same steps have the same hash)
`
	if err != nil || out.String() != want {
		t.Errorf("%v, got\n%swant\n%s", err, out.String(), want)
	}
}
