// SPDX-License-Identifier: Apache-2.0

package status_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/theseus-gitops/theseus/reconcile/rollout"
	"github.com/theseus-gitops/theseus/reconcile/status"
)

func TestPages(t *testing.T) {
	for name, c := range map[string]status.Commit{
		"no-clusters":   {Clusters: []string{}},
		"one-converged": {Reports: []status.Report{converged("seed-eu-1", "")}},
		"one-stalled":   {Reports: []status.Report{stalled("seed-eu-1", "prod")}, Stages: []string{"prod"}},
		"mixed":         mixed(),
		"odd":           odd(),
	} {
		t.Run(name, func(t *testing.T) {
			c.Path, c.Now = "status", at("2026-12-01T09:00:00Z")
			golden(t, "pages/"+name+".md", files(t, c, nil)["status/README.md"])
		})
	}
}

func mixed() status.Commit {
	done := func(name, stage, started, ended string) status.Report {
		r := converged(name, stage)
		r.Finished = finished(started, ended)
		return r
	}
	noted := done("dev-2", "dev", "2026-11-30T08:00:00Z", "2026-11-30T08:02:10Z")
	noted.Notices = []string{"CoreDNS: plugin example is unknown to the migration library"}
	invalid := status.Report{Cluster: "prod-3", Stage: "prod", Outcome: status.Invalid, Why: "clusters/prod-3.yaml:4:3: unknown key coreDns; did you mean coreDNS?\nclusters/prod-3.yaml:9:5: kubernetesVersion: \"1.36\" is not a version; want vX.Y.Z"}
	transient := changing("staging-3", "staging")
	transient.Outcome, transient.Why, transient.Live = status.Transient, "deployment/coredns: the object changed meanwhile", nil
	lost := status.Report{Cluster: "adhoc", Outcome: status.Locked}
	return status.Commit{
		Stages:   []string{"dev", "staging", "prod"},
		Clusters: []string{"dev-1", "dev-2", "dev-3", "dev-4", "staging-1", "staging-2", "staging-3", "prod-1", "prod-2", "prod-3", "prod-4", "adhoc"},
		Reports: []status.Report{
			done("dev-1", "dev", "2026-11-30T08:00:00Z", "2026-11-30T08:01:30Z"), noted, unverified("dev-3", "dev"), putBack("dev-4", "dev"),
			changing("staging-1", "staging"), waiting("staging-2", "staging"), transient,
			stalled("prod-1", "prod"), unreachable("prod-2", "prod"), invalid, lost,
		},
	}
}

func odd() status.Commit {
	long := stalled(strings.Repeat("very-long-name-", 8)+"x", "stage | with ` odd * _text_")
	long.Failure = &rollout.Failure{
		Reason:  "CanaryFailed",
		Message: strings.Repeat("a long message about |pipes| and <b>tags</b> and @someone; ", 20),
		Remedy:  "1. ask @platform/team about #42, see https://example.org/a_b|c?x=<y>. Then `run @this | tool` or `theseus validate --path a_b` or `` [this](javascript:x) $1 :100: &amp; \\",
	}
	long.Runbook = "docs/runbooks/canary-failed.md"
	fenced := stalled("a/../b", "dev")
	fenced.Failure = &rollout.Failure{Reason: "PlanRefused", Message: "Terraform wants more than it may:\n```\n| create | @someone |\n```\n# not a title"}
	fenced.Runbook = ""
	mention := waiting("@everyone <b>", "dev")
	mention.Why = "- fixes #12, !7 | " + strings.Repeat("and so on ", 20)
	return status.Commit{Stages: []string{"unused"}, Reports: []status.Report{long, fenced, mention}}
}

func TestPageTellsOfAllClustersNotOnlyTheReported(t *testing.T) {
	all := mixed()
	all.Path, all.Now = "status", at("2026-12-01T09:00:00Z")
	tree := apply(nil, files(t, all, nil))
	one := all
	one.Reports = []status.Report{converged("prod-1", "prod")}
	one.Now = at("2026-12-01T10:00:00Z")
	changed := files(t, one, tree)
	if got, want := slices.Sorted(maps.Keys(changed)), []string{"status/README.md", "status/clusters/prod-1.yaml"}; !slices.Equal(got, want) {
		t.Fatalf("changed %v, want %v", got, want)
	}
	page := string(changed["status/README.md"])
	for _, name := range all.Clusters {
		if !strings.Contains(page, name) {
			t.Errorf("%s is not on the page of a run of prod-1 alone:\n%s", name, page)
		}
	}
	if got := one.Changed(changed); len(got) != 1 || got[0].Cluster != "prod-1" {
		t.Errorf("Changed = %v", got)
	}
	if got := all.Changed(changed); len(got) != 1 {
		t.Errorf("Changed should leave out what stayed, got %d reports", len(got))
	}
}

func TestFilesOfClustersWithoutASpecAreRemoved(t *testing.T) {
	full := status.Commit{Path: "status", Now: at("2026-12-01T09:00:00Z"), Reports: []status.Report{converged("a", "dev"), converged("b", "dev")}}
	tree := apply(map[string][]byte{"status/clusters/notes.txt": []byte("mine"), "status/clusters/sub/c.yaml": []byte("mine"), "status/clusters/broken.yaml": []byte("{")}, files(t, full, nil))
	for _, tc := range []struct {
		name    string
		known   []string
		removed []string
	}{
		{"specs unread", nil, nil},
		{"both known", []string{"a", "b", "broken"}, nil},
		{"one gone", []string{"a", "broken"}, []string{"status/clusters/b.yaml"}},
		{"all gone", []string{}, []string{"status/clusters/a.yaml", "status/clusters/b.yaml", "status/clusters/broken.yaml"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			changed := files(t, status.Commit{Path: "status", Clusters: tc.known, Now: full.Now}, tree)
			var removed []string
			for _, file := range slices.Sorted(maps.Keys(changed)) {
				if changed[file] == nil {
					removed = append(removed, file)
				}
			}
			if !slices.Equal(removed, tc.removed) {
				t.Errorf("removed %v, want %v", removed, tc.removed)
			}
		})
	}
}

func TestDamagedDocumentIsWrittenAnewAndSaysSo(t *testing.T) {
	other := format(t, status.Update(nil, converged("b", "dev"), at("2026-12-01T08:00:00Z")))
	for name, content := range map[string]string{
		"not YAML": "a: [", "empty": "", "a conflict": "<<<<<<< ours\n", "another kind": "apiVersion: v1\nkind: ConfigMap\n",
		"another cluster": other, "two documents": other + "---\na: 1\n", "a wrong type": strings.Replace(other, "name: b", "name: [a]", 1),
		"a duplicate key": other + "kind: ClusterStatus\n", "no name": "apiVersion: theseus.dev/v1alpha1\nkind: ClusterStatus\n",
		"too large": "#" + strings.Repeat("x", 1<<20),
	} {
		t.Run(name, func(t *testing.T) {
			c := status.Commit{Reports: []status.Report{converged("a", "dev")}, Now: at("2026-12-01T09:00:00Z")}
			tree := map[string][]byte{"clusters/a.yaml": []byte(content)}
			tree = apply(tree, files(t, c, tree))
			doc, err := status.Parse(tree["clusters/a.yaml"])
			if err != nil || len(doc.Status.Notices) != 1 || !strings.Contains(doc.Status.Notices[0], "could not be read") {
				t.Fatalf("document %+v, error %v", doc, err)
			}
			if again := files(t, c, tree); len(again) != 0 {
				t.Errorf("the notice must stay until there is history, but %v changed", slices.Sorted(maps.Keys(again)))
			}
			c.Reports[0].Finished = finished("2026-12-01T09:00:00Z", "2026-12-01T09:01:00Z")
			doc, err = status.Parse(files(t, c, tree)["clusters/a.yaml"])
			if err != nil || len(doc.Status.Notices) != 0 {
				t.Errorf("with history the notice goes: %+v, error %v", doc, err)
			}
		})
	}
}

func TestDamagedDocumentOfAnotherClusterIsNamedOnThePage(t *testing.T) {
	c := status.Commit{Clusters: []string{"a", "b"}, Reports: []status.Report{converged("a", "dev")}, Now: at("2026-12-01T09:00:00Z")}
	page := string(files(t, c, map[string][]byte{"clusters/b.yaml": []byte("{")})["README.md"])
	if !strings.Contains(page, "- b: its status file is damaged") {
		t.Errorf("page:\n%s", page)
	}
}

func TestReportWithoutNameIsRefused(t *testing.T) {
	if out, err := (status.Commit{Reports: []status.Report{{}}}).Files(status.Tree{}); err == nil {
		t.Errorf("got %v", out)
	}
}

func TestFilesStayInTheirFolder(t *testing.T) {
	for _, name := range []string{"../../x", "/etc/x", "..", ".", ".git", "a/b", "a\\b", "%2e", "a%", "ü"} {
		c := status.Commit{Path: "status", Reports: []status.Report{converged(name, "dev")}, Now: at("2026-12-01T09:00:00Z")}
		tree := files(t, c, nil)
		for file := range tree {
			rest := strings.TrimPrefix(file, "status/clusters/")
			if file != "status/README.md" && (rest == file || strings.ContainsAny(rest, `/\`) || strings.HasPrefix(rest, ".")) {
				t.Errorf("cluster %q has file %q", name, file)
			}
		}
		if again := files(t, c, tree); len(again) != 0 {
			t.Errorf("cluster %q is not found again: %v", name, slices.Sorted(maps.Keys(again)))
		}
	}
}

func TestSubjects(t *testing.T) {
	done := converged("seed-eu-1", "dev")
	done.Finished = finished("2026-12-01T08:00:00Z", "2026-12-01T08:02:10Z")
	long := waiting("seed-eu-1", "dev")
	long.Why = "fixes #1 for @team, " + strings.Repeat("and waits ", 20)
	oneWord := waiting("seed-eu-1", "dev")
	oneWord.Why = strings.Repeat("x", 100)
	var many []status.Report
	for o := status.Unknown; o <= status.Transient; o++ {
		many = append(many, status.Report{Cluster: fmt.Sprint("c", int(o)), Outcome: o})
	}
	for _, tc := range []struct {
		want    string
		reports []status.Report
	}{
		{"Update the fleet's status page", nil},
		{"seed-eu-1: CoreDNS v1.14.2 → v1.14.6 converged", []status.Report{done}},
		{"seed-eu-1: as wanted", []status.Report{converged("seed-eu-1", "dev")}},
		{"seed-eu-1: CoreDNS v1.14.2 → v1.14.6, step 3 of 5", []status.Report{changing("seed-eu-1", "dev")}},
		{"seed-eu-1: step 3 of 5: drain seed-eu-1-cp-4", []status.Report{draining("seed-eu-1", "dev")}},
		{"seed-eu-1: stalled: CanaryFailed: the canary of…", []status.Report{stalled("seed-eu-1", "dev")}},
		{"seed-eu-1: CoreDNS v1.14.2 → v1.14.6: put back (DNSVerifyFailed)", []status.Report{putBack("seed-eu-1", "dev")}},
		{"seed-eu-1: CoreDNS v1.14.2 → v1.14.6, step 3 of 5", []status.Report{unverified("seed-eu-1", "dev")}},
		{"seed-eu-1: waiting: " + strings.Repeat("x", 51) + "…", []status.Report{oneWord}},
		{"seed-eu-1: unreachable: GET https://10.0.0.1:6443/version: dial tcp…", []status.Report{unreachable("seed-eu-1", "dev")}},
		{"seed-eu-1: waiting: fixes #\u200b1 for @\u200bteam, and waits and waits and waits…", []status.Report{long}},
		{"seed-eu-1: held by another runner", []status.Report{{Cluster: "seed-eu-1", Outcome: status.Locked, Why: "pod-7"}}},
		{"9 clusters: 1 stalled, 1 spec invalid, 1 unreachable, …", many},
		{"3 clusters: 1 stalled, 2 as wanted", []status.Report{done, stalled("b", "dev"), converged("c", "dev")}},
	} {
		if got := status.Subject(tc.reports); got != tc.want {
			t.Errorf("got  %q\nwant %q", got, tc.want)
		}
	}
}

func TestTrailersAreSortedAndOneLineEach(t *testing.T) {
	got := status.Trailers([]status.Report{stalled("b", "dev"), {Cluster: "a\nSigned-off-by: x", Outcome: status.Invalid}})
	want := "Theseus-Cluster: a Signed-off-by: x\nTheseus-Outcome: invalid\nTheseus-Cluster: b\nTheseus-Outcome: stalled\nTheseus-Revision: 4f1c9a02\n"
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func TestOutcomesHaveDistinctTexts(t *testing.T) {
	seen := map[string]bool{}
	for o := status.Unknown; o <= status.Transient; o++ {
		for kind, s := range map[string]string{"program": o.String(), "reason": o.Reason(), "word": o.Word()} {
			if key := fmt.Sprint(kind, s); s == "" || seen[key] {
				t.Errorf("%s of outcome %d is empty or taken: %q", kind, int(o), s)
			} else {
				seen[key] = true
			}
		}
		if o.Symbol() == "" {
			t.Errorf("outcome %v has no symbol", o)
		}
	}
}
