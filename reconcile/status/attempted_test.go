// SPDX-License-Identifier: Apache-2.0

package status_test

import (
	"strings"
	"testing"

	"github.com/theseus-gitops/theseus/reconcile/live"
	"github.com/theseus-gitops/theseus/reconcile/status"
)

func TestHistoryNamesWhatWasAttempted(t *testing.T) {
	old, next := status.Versions{CoreDNS: "v1.14.2"}, status.Versions{CoreDNS: "v1.14.6"}
	refused := []status.TakenStep{{Step: "canary-coredns"}, {Step: "record-failure"}}
	restored := append(refused, status.TakenStep{Step: "restore-coredns"})
	for name, tc := range map[string]struct {
		entry status.Entry
		want  string
	}{
		"put back":            {status.Entry{From: old, To: old, Attempted: next, Outcome: "Stalled", Steps: restored}, "CoreDNS v1.14.2 → v1.14.6: put back"},
		"never begun":         {status.Entry{From: old, To: old, Attempted: next, Outcome: "Stalled", Steps: refused}, "CoreDNS v1.14.2 → v1.14.6: given up"},
		"reached":             {status.Entry{From: old, To: next, Attempted: next, Outcome: "Converged"}, "CoreDNS v1.14.2 → v1.14.6"},
		"not put back":        {status.Entry{From: old, To: next, Attempted: next, Outcome: "Stalled"}, "CoreDNS v1.14.2 → v1.14.6"},
		"not told":            {status.Entry{From: old, To: old, Outcome: "Stalled"}, "no version changed"},
		"the same version":    {status.Entry{From: old, To: old, Attempted: old, Outcome: "Stalled"}, "no version changed"},
		"converged elsewhere": {status.Entry{From: old, To: old, Attempted: next, Outcome: "Converged"}, "no version changed"},
	} {
		t.Run(name, func(t *testing.T) {
			r := converged("a", "dev")
			r.Finished = &tc.entry
			tree := files(t, status.Commit{Reports: []status.Report{r}, Now: at("2026-12-01T09:00:00Z")}, nil)
			if page := string(tree["README.md"]); !strings.Contains(page, "| "+tc.want+" |") {
				t.Errorf("page lacks %q:\n%s", tc.want, page)
			}
			doc, err := status.Parse(tree["clusters/a.yaml"])
			if err != nil || doc.Status.History[0].Attempted != tc.entry.Attempted {
				t.Errorf("document %+v, error %v", doc, err)
			}
		})
	}
}

func TestCoreDNSIsCalledUnverifiedWhileItsRunIsOpen(t *testing.T) {
	const repo = "registry.k8s.io/coredns/coredns:"
	closed := at("2026-12-01T08:00:00Z")
	for name, tc := range map[string]struct {
		image, from, wanted string
		run                 live.DNSRun
		want, document      string
	}{
		"not changed yet": {image: "v1.14.2", from: "v1.14.2", wanted: "v1.14.6", want: "v1.14.2 → v1.14.6", document: "v1.14.2"},
		"changed":         {image: "v1.14.6", from: "v1.14.2", wanted: "v1.14.6", want: "v1.14.2 → v1.14.6 (not verified yet)", document: "v1.14.6"},
		"put back":        {image: "v1.14.2", from: "v1.14.2", wanted: "v1.14.6", want: "v1.14.2 → v1.14.6", document: "v1.14.2"},
		"verified":        {image: "v1.14.6", from: "v1.14.2", wanted: "v1.14.6", run: live.DNSRun{Closed: closed}, want: "v1.14.6", document: "v1.14.6"},
		"wanted moved on": {image: "v1.14.6", from: "v1.14.2", wanted: "v1.14.7", want: "v1.14.2 → v1.14.6 (not verified yet), wanted v1.14.7", document: "v1.14.6"},
		"left alone":      {image: "v1.14.6", from: "v1.14.2", want: "v1.14.2 → v1.14.6 (not verified yet)", document: "v1.14.6"},
		"same tag":        {image: "v1.14.2@sha256:" + strings.Repeat("a", 64), from: "v1.14.2", wanted: "v1.14.2", want: "v1.14.2 (not verified yet)", document: "v1.14.2"},
	} {
		t.Run(name, func(t *testing.T) {
			r := changing("a", "dev")
			r.Want.CoreDNS = tc.wanted
			r.Live = kube("v1.36.3", tc.image, "v1.36.3")
			tc.run.From = repo + tc.from
			r.Live.DNS.Config = &live.DNSConfig{Run: &tc.run}
			tree := files(t, status.Commit{Reports: []status.Report{r}, Now: at("2026-12-01T09:00:00Z")}, nil)
			if page := string(tree["README.md"]); !strings.Contains(page, "| v1.36.3 | "+tc.want+" |") {
				t.Errorf("page lacks %q:\n%s", tc.want, page)
			}
			doc, err := status.Parse(tree["clusters/a.yaml"])
			if err != nil || doc.Status.Live.CoreDNS != tc.document || doc.Status.CoreDNS() != tc.want {
				t.Errorf("document %+v, error %v", doc.Status.Live, err)
			}
		})
	}
}
