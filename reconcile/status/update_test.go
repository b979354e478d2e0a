// SPDX-License-Identifier: Apache-2.0

package status_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/theseus-gitops/theseus/reconcile/live"
	"github.com/theseus-gitops/theseus/reconcile/rollout"
	"github.com/theseus-gitops/theseus/reconcile/status"
)

func TestDocumentsAreWrittenAsSpecified(t *testing.T) {
	done := converged("seed-eu-1", "staging")
	done.Finished = finished("2026-12-01T08:00:00Z", "2026-12-01T08:02:10Z")
	done.Notices = []string{"CoreDNS: plugin example is unknown to the migration library"}
	stall := stalled("seed-eu-1", "staging")
	stall.Plan = changing("", "").Plan
	invalid := status.Report{Cluster: "seed-eu-1", Outcome: status.Invalid, Why: "clusters/seed-eu-1.yaml:4:3: unknown key coreDns; did you mean coreDNS?"}
	for name, r := range map[string]status.Report{
		"converged": done, "changing": changing("seed-eu-1", "staging"), "waiting": waiting("seed-eu-1", "staging"),
		"stalled": stall, "unreachable": unreachable("seed-eu-1", "staging"), "invalid": invalid,
	} {
		t.Run(name, func(t *testing.T) {
			first := status.Update(nil, done, at("2026-12-01T08:02:11Z"))
			doc := status.Update(&first, r, at("2026-12-01T09:00:00Z"))
			golden(t, "documents/"+name+".yaml", []byte(format(t, doc)))
		})
	}
}

func TestConditionsFollowKstatus(t *testing.T) {
	failed := &rollout.Failure{Reason: "CanaryFailed", Message: "m"}
	odd := &rollout.Failure{Reason: "not a reason!", Message: "m"}
	for _, tc := range []struct {
		name    string
		outcome status.Outcome
		failure *rollout.Failure
		ready   string
		reason  string
		also    string
	}{
		{"converged", status.Converged, nil, "True", "Converged", ""},
		{"changes", status.Changes, nil, "False", "Rolling", status.Reconciling},
		{"waiting", status.Waiting, nil, "False", "Waiting", status.Reconciling},
		{"stalled", status.Stalled, failed, "False", "CanaryFailed", status.StalledType},
		{"stalled without a failure", status.Stalled, nil, "False", "Stalled", status.StalledType},
		{"stalled with an unusable reason", status.Stalled, odd, "False", "Stalled", status.StalledType},
		{"invalid", status.Invalid, nil, "False", "SpecInvalid", status.StalledType},
		{"unreachable", status.Unreachable, nil, "False", "Unreachable", status.Reconciling},
		{"locked", status.Locked, nil, "False", "Locked", status.Reconciling},
		{"transient", status.Transient, nil, "False", "Transient", status.Reconciling},
	} {
		t.Run(tc.name, func(t *testing.T) {
			doc := status.Update(nil, status.Report{Cluster: "a", Outcome: tc.outcome, Failure: tc.failure}, at("2026-12-01T08:00:00Z"))
			var types []string
			for _, c := range doc.Status.Conditions {
				types = append(types, c.Type)
				if c.Reason != tc.reason || c.Message == "" {
					t.Errorf("condition %+v: want reason %q and a message", c, tc.reason)
				}
			}
			want := []string{status.Ready}
			if tc.also != "" {
				want = append(want, tc.also)
			}
			if !slices.Equal(types, want) || doc.Status.Conditions[0].Status != tc.ready {
				t.Errorf("got %v with Ready %s; want %v with %s", types, doc.Status.Conditions[0].Status, want, tc.ready)
			}
			if got := doc.Outcome(); got != tc.outcome {
				t.Errorf("the document's outcome is %v, the report's %v", got, tc.outcome)
			}
		})
	}
}

func TestTransitionTimeMovesWithStatusOnly(t *testing.T) {
	t1, t2, t3 := at("2026-12-01T08:00:00Z"), at("2026-12-01T09:00:00Z"), at("2026-12-01T10:00:00Z")
	rolling := status.Update(nil, changing("a", "dev"), t1)
	stuck := status.Update(&rolling, stalled("a", "dev"), t2)
	if c := stuck.Status.Conditions; !c[0].LastTransitionTime.Equal(t1) || !c[1].LastTransitionTime.Equal(t2) {
		t.Errorf("Ready stayed False since %v and Stalled began at %v, got %+v", t1, t2, c)
	}
	good := status.Update(&stuck, converged("a", "dev"), t3)
	if c := good.Status.Conditions; len(c) != 1 || !c[0].LastTransitionTime.Equal(t3) {
		t.Errorf("Ready became True at %v, got %+v", t3, c)
	}
}

func TestUnobservedClusterKeepsWhatWasSeen(t *testing.T) {
	r := changing("a", "dev")
	r.Finished = finished("2026-11-01T08:00:00Z", "2026-11-01T08:02:00Z")
	first := status.Update(nil, r, at("2026-12-01T08:00:00Z"))
	gone := status.Update(&first, unreachable("a", "dev"), at("2026-12-01T09:00:00Z"))
	if l := gone.Status.Live; l == nil || l.CoreDNS != "v1.14.2" || !l.StaleSince.Equal(at("2026-12-01T09:00:00Z")) {
		t.Errorf("live = %+v; want the last one, stale since the first pass without it", l)
	}
	if gone.Status.Plan == nil || len(gone.Status.History) != 1 {
		t.Errorf("plan %v and history %v should be kept", gone.Status.Plan, gone.Status.History)
	}
	hiccup := converged("a", "dev")
	hiccup.Outcome = status.Transient
	if d := status.Update(&first, hiccup, at("2026-12-01T09:00:00Z")); d.Status.Plan == nil {
		t.Error("a failure that may pass does not end the plan")
	}
	back := status.Update(&gone, converged("a", "dev"), at("2026-12-01T10:00:00Z"))
	if !back.Status.Live.StaleSince.IsZero() || back.Status.Plan != nil {
		t.Errorf("observed again: live = %+v, plan = %+v", back.Status.Live, back.Status.Plan)
	}
	broken := status.Update(&first, status.Report{Cluster: "a", Outcome: status.Invalid, Why: "bad"}, at("2026-12-01T09:00:00Z"))
	if s := broken.Status; s.Stage != "dev" || broken.Metadata.Labels["stage"] != "dev" {
		t.Errorf("an invalid spec stays in its stage: %+v", broken)
	}
	if s := broken.Status; s.Plan != nil || s.Want.CoreDNS != "v1.14.6" || s.ObservedRevision != "4f1c9a02" || s.Failure == nil {
		t.Errorf("an invalid spec has no plan, keeps what was wanted and observed, and is a failure: %+v", s)
	}
}

func TestNumbersInNetworkErrorsAreNoNews(t *testing.T) {
	r := unreachable("a", "dev")
	r.Why = "read tcp 10.1.0.9:43122->10.0.0.1:6443: connection reset after 1.203s"
	first := status.Update(nil, r, at("2026-12-01T08:00:00Z"))
	r.Why = "read tcp 10.1.0.9:58800->10.0.0.1:6443: connection reset after 0.9s"
	if got := format(t, status.Update(&first, r, at("2026-12-01T09:00:00Z"))); got != format(t, first) {
		t.Errorf("another local port changed the document:\n%s", got)
	}
	r.Why = "x509: certificate has expired"
	if got := status.Update(&first, r, at("2026-12-01T09:00:00Z")); got.Status.Conditions[0].Message != r.Why {
		t.Errorf("another error is news, got %q", got.Status.Conditions[0].Message)
	}
}

func TestLockedClusterIsLeftToTheHolder(t *testing.T) {
	locked := status.Report{Cluster: "a", Stage: "dev", Outcome: status.Locked, Revision: "new", Why: "held by pod-7"}
	old := converged("a", "dev")
	same := converged("a", "dev")
	same.Revision = "new"
	damaged := status.Document{}
	for _, tc := range []struct {
		name string
		prev func() *status.Document
		want status.Outcome
	}{
		{"no document", func() *status.Document { return nil }, status.Locked},
		{"an empty document", func() *status.Document { return &damaged }, status.Locked},
		{"holder changes it", func() *status.Document {
			d := status.Update(nil, changing("a", "dev"), at("2026-12-01T08:00:00Z"))
			return &d
		}, status.Changes},
		{"holder waits", func() *status.Document {
			d := status.Update(nil, waiting("a", "dev"), at("2026-12-01T08:00:00Z"))
			return &d
		}, status.Waiting},
		{"holder finished the same spec", func() *status.Document { d := status.Update(nil, same, at("2026-12-01T08:00:00Z")); return &d }, status.Converged},
		{"document of an older spec", func() *status.Document { d := status.Update(nil, old, at("2026-12-01T08:00:00Z")); return &d }, status.Locked},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if got := status.Update(tc.prev(), locked, at("2026-12-01T09:00:00Z")).Outcome(); got != tc.want {
				t.Errorf("got %v, want %v", got, tc.want)
			}
		})
	}
}

func TestHistoryIsBoundedAndNewestFirst(t *testing.T) {
	var doc status.Document
	start := at("2026-01-01T00:00:00Z")
	for i := range 25 {
		r := converged("a", "dev")
		began := start.Add(time.Duration(i) * time.Hour)
		r.Finished = &status.Entry{Revision: "r", Started: began, Ended: began.Add(time.Minute), Outcome: "Converged"}
		doc = status.Update(&doc, r, began)
		doc = status.Update(&doc, r, began.Add(time.Second))
	}
	h := doc.Status.History
	if len(h) != status.HistoryLimit || !h[0].Started.Equal(start.Add(24*time.Hour)) || !h[19].Started.Equal(start.Add(5*time.Hour)) {
		t.Errorf("got %d entries from %v to %v; want the newest 20 of 25", len(h), h[0].Started, h[len(h)-1].Started)
	}
}

func TestLiveShowsWhatRuns(t *testing.T) {
	for _, tc := range []struct{ name, image, want string }{
		{"tag", "registry.k8s.io/coredns/coredns:v1.14.2", "v1.14.2"},
		{"tag and digest", "coredns:1.6.2@sha256:" + strings.Repeat("a", 64), "1.6.2"},
		{"digest", "coredns@sha256:" + strings.Repeat("a", 64), "sha256:" + strings.Repeat("a", 64)},
		{"no reference", "Not An Image", "Not An Image"},
		{"no container", "", ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			k := kube("v1.36.3", "", "v1.36.10", "v1.36.3", "", "odd", "v1.36.10")
			k.DNS.Deployment = &live.DNSDeployment{Image: tc.image}
			l := status.Update(nil, status.Report{Cluster: "a", Live: k}, at("2026-12-01T08:00:00Z")).Status.Live
			if l.CoreDNS != tc.want {
				t.Errorf("CoreDNS = %q, want %q", l.CoreDNS, tc.want)
			}
			if want := []string{"v1.36.3", "v1.36.10", "odd"}; !slices.Equal(l.KubeletVersions, want) {
				t.Errorf("kubelets = %v, want %v", l.KubeletVersions, want)
			}
		})
	}
	if l := status.Update(nil, status.Report{Cluster: "a", Live: &live.Kube{}}, at("2026-12-01T08:00:00Z")).Status.Live; l.CoreDNS != "" {
		t.Errorf("CoreDNS = %q without a Deployment", l.CoreDNS)
	}
}

func TestTextsAreFitForGit(t *testing.T) {
	for _, tc := range []struct{ name, why, want string }{
		{"credentials in URLs", "clone https://bot:s3cret@git.example.org/fleet: refused", "clone https://git.example.org/fleet: refused"},
		{"terminal colours", "\x1b[31mred\x1b[0m", "red"},
		{"direction marks", "a\u202eb\u2066c", "abc"},
		{"invalid UTF-8", "a\xffb", "a\uFFFDb"},
		{"line ends", "one  \r\ntwo\n", "one\ntwo"},
		{"length", strings.Repeat("x", 5000), strings.Repeat("x", 3999) + "…"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			doc := status.Update(nil, status.Report{Cluster: "a", Outcome: status.Transient, Why: tc.why}, at("2026-12-01T08:00:00Z"))
			if got := doc.Status.Conditions[0].Message; got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}
