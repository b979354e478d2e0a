// SPDX-License-Identifier: Apache-2.0

package status_test

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/theseus-gitops/theseus/reconcile/live"
	"github.com/theseus-gitops/theseus/reconcile/logbook"
	"github.com/theseus-gitops/theseus/reconcile/rollout"
	"github.com/theseus-gitops/theseus/reconcile/status"
)

var update = flag.Bool("update", false, "rewrite golden files")

func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	file := filepath.Join("testdata", name)
	if *update {
		if err := os.MkdirAll(filepath.Dir(file), 0o750); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, got, 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatalf("%v (go test -update writes it)", err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("%s differs (go test -update rewrites it)\n--- got\n%s\n--- want\n%s", file, got, want)
	}
}

func at(clock string) time.Time {
	t, err := time.Parse(time.RFC3339, clock)
	if err != nil {
		panic(err)
	}
	return t
}

func kube(server, dns string, kubelets ...string) *live.Kube {
	k := &live.Kube{ServerVersion: server, DNS: live.DNS{Deployment: &live.DNSDeployment{Image: "registry.k8s.io/coredns/coredns:" + dns}}}
	for _, v := range kubelets {
		k.Nodes = append(k.Nodes, live.Node{KubeletVersion: v})
	}
	return k
}

func converged(name, stage string) status.Report {
	return status.Report{
		Cluster: name, Stage: stage, Labels: map[string]string{"stage": stage}, Revision: "4f1c9a02",
		Outcome: status.Converged, Why: "CoreDNS runs v1.14.6 as wanted",
		Want: logbook.Versions{CoreDNS: "v1.14.6"}, Live: kube("v1.36.3", "v1.14.6", "v1.36.3"),
	}
}

func changing(name, stage string) status.Report {
	r := converged(name, stage)
	r.Outcome, r.Why = status.Changes, "the Deployment gets the new image; the canary answered"
	r.Live = kube("v1.36.3", "v1.14.2", "v1.36.3", "v1.36.10", "v1.36.3")
	r.Plan = &status.Plan{Done: 2, Total: 5, Hash: "sha256:77aa", Current: &status.Step{
		Step: "update-coredns", Subject: "deployment/coredns", Why: "the Deployment gets the new image; the canary answered",
	}}
	return r
}

// draining is a roll of machines of which no version tells.
func draining(name, stage string) status.Report {
	r := converged(name, stage)
	r.Outcome, r.Why = status.Changes, "to move to other nodes: 2 pods"
	r.Plan = &status.Plan{Done: 2, Total: 5, Hash: "sha256:77aa", Current: &status.Step{Step: "drain", Subject: name + "-cp-4", Why: r.Why}}
	return r
}

func waiting(name, stage string) status.Report {
	r := changing(name, stage)
	r.Outcome, r.Why = status.Waiting, "1 of 2 CoreDNS pods are of the new image"
	r.Until = at("2026-12-01T08:10:00Z")
	return r
}

func stalled(name, stage string) status.Report {
	r := changing(name, stage)
	r.Outcome, r.Plan = status.Stalled, nil
	r.Failure = &rollout.Failure{
		Reason:  "CanaryFailed",
		Message: "the canary of registry.k8s.io/coredns/coredns:v1.14.6 answered SERVFAIL to kubernetes.default.svc.cluster.local., the present pods NOERROR",
		Remedy:  "Read the canary's log in the last run's output; then push another tag, or a new text in spec.retry.",
	}
	r.Runbook = "https://example.org/runbooks/canary_failed.md"
	return r
}

// unverified is a cluster whose Deployment has the new image already, while its run is open.
func unverified(name, stage string) status.Report {
	r := changing(name, stage)
	r.Live = kube("v1.36.3", "v1.14.6", "v1.36.3")
	r.Live.DNS.Config = &live.DNSConfig{Run: &live.DNSRun{
		From: "registry.k8s.io/coredns/coredns:v1.14.2", To: "registry.k8s.io/coredns/coredns:v1.14.6",
	}}
	return r
}

// putBack is a cluster whose new pods were no good, after everything was put back.
func putBack(name, stage string) status.Report {
	r := stalled(name, stage)
	r.Failure.Reason = "DNSVerifyFailed"
	r.Finished = finished("2026-11-30T09:00:00Z", "2026-11-30T09:04:00Z")
	r.Finished.Steps = append(r.Finished.Steps, status.TakenStep{Step: "restore-coredns", Subject: "deployment/coredns"})
	r.Finished.Outcome, r.Finished.To, r.Finished.Attempted = status.Stalled.Reason(), r.Finished.From, status.Versions{CoreDNS: "v1.14.6"}
	return r
}

func unreachable(name, stage string) status.Report {
	r := converged(name, stage)
	r.Outcome, r.Live = status.Unreachable, nil
	r.Why = "GET https://10.0.0.1:6443/version: dial tcp 10.0.0.1:6443: i/o timeout"
	return r
}

func finished(started, ended string) *status.Entry {
	return &status.Entry{
		Revision: "4f1c9a02", Outcome: status.Converged.Reason(), Started: at(started), Ended: at(ended),
		From: status.Versions{KubernetesVersion: "v1.36.3", CoreDNS: "v1.14.2"},
		To:   status.Versions{KubernetesVersion: "v1.36.3", CoreDNS: "v1.14.6"},
		Steps: []status.TakenStep{
			{Step: "canary-coredns", Subject: "deployment/coredns", Duration: status.Duration(12340 * time.Millisecond)},
			{Step: "update-coredns", Subject: "deployment/coredns", Duration: status.Duration(75 * time.Second)},
		},
	}
}

func format(t *testing.T, d status.Document) string {
	t.Helper()
	data, err := status.Format(d)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func files(t *testing.T, c status.Commit, present map[string][]byte) map[string][]byte {
	t.Helper()
	out, err := c.Files(status.Tree{Files: present})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// apply is the tree after a commit.
func apply(present, changed map[string][]byte) map[string][]byte {
	next := map[string][]byte{}
	for _, tree := range []map[string][]byte{present, changed} {
		for file, data := range tree {
			if data == nil {
				delete(next, file)
			} else {
				next[file] = data
			}
		}
	}
	return next
}
