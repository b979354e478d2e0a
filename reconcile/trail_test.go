// SPDX-License-Identifier: Apache-2.0

package reconcile_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/theseus-gitops/theseus/reconcile/status"
)

// newest is the history's newest entry of a cluster.
func newest(t *testing.T, f *fleet, cluster string) status.Entry {
	t.Helper()
	doc, err := status.Parse(f.branch["status/clusters/"+cluster+".yaml"])
	if err != nil || len(doc.Status.History) == 0 {
		t.Fatalf("status of %s: %v, %+v", cluster, err, doc)
	}
	return doc.Status.History[0]
}

func names(e status.Entry) []string {
	var out []string
	for _, s := range e.Steps {
		out = append(out, s.Step)
	}
	return out
}

// A roll that three passes worked on has one entry with the steps of all three, waits included.
func TestHistoryHoldsTheStepsOfAllPasses(t *testing.T) {
	t.Parallel()
	f := newFleet("a")
	for _, stop := range []string{"canary-coredns", "sync-dns-config"} {
		f.stopAt = stop
		wantOutcomes(t, run(t, f), map[string]string{"a": "changes"})
		f.stop = make(chan struct{})
	}
	if doc := string(f.branch["status/clusters/a.yaml"]); !strings.Contains(doc, "done: 2\n    total: 4\n") {
		t.Errorf("the second pass does not count the first one's step:\n%s", doc)
	}
	f.stopAt = ""
	wantOutcomes(t, run(t, f), map[string]string{"a": "converged"})
	want := []string{"canary-coredns", "sync-dns-config", "update-coredns", "wait", "verify"}
	entry := newest(t, f, "a")
	if got := names(entry); !slices.Equal(got, want) {
		t.Errorf("steps %v, want %v", got, want)
	}
	if wait := entry.Steps[3]; wait.Subject != "deployment/coredns" || wait.Duration <= 0 {
		t.Errorf("the wait is %+v", wait)
	}
	if book := f.clusters["a"].world.Book; book.Roll != nil {
		t.Errorf("the logbook still has the roll: %+v", book.Roll)
	}
}

// A target that failed leaves the steps that were tried, and those that put everything back.
func TestHistoryOfAFailedTarget(t *testing.T) {
	t.Parallel()
	f := newFleet("a")
	f.clusters["a"].world.BadAnswer[repo+"v1.14.6"] = true
	wantOutcomes(t, run(t, f), map[string]string{"a": "stalled"})
	entry := newest(t, f, "a")
	if entry.Attempted.CoreDNS != "v1.14.6" || entry.To.CoreDNS != "v1.14.2" {
		t.Errorf("attempted %+v, to %+v", entry.Attempted, entry.To)
	}
	got := names(entry)
	want := []string{"canary-coredns", "sync-dns-config", "update-coredns", "wait", "verify", "record-failure", "restore-coredns", "wait", "sync-dns-config", "close-coredns-run"}
	if !slices.Equal(got, want) {
		t.Errorf("steps %v, want %v", got, want)
	}
}
