// SPDX-License-Identifier: Apache-2.0

package status_test

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/theseus-gitops/theseus/reconcile/live"
	"github.com/theseus-gitops/theseus/reconcile/logbook"
	"github.com/theseus-gitops/theseus/reconcile/rollout"
	"github.com/theseus-gitops/theseus/reconcile/status"
)

func text() *rapid.Generator[string] {
	return rapid.OneOf(rapid.String(), rapid.StringN(0, 30, -1), rapid.SampledFrom([]string{
		"", "v1.14.6", "null", "1e3", "- a\n  b\n", " |x", "true", "2026-12-01", "a: b # c", "\"", "'", "\xff", "\u2028x", "\ttab\r\n", "https://u:p@h/x",
	}))
}

func moment() *rapid.Generator[time.Time] {
	return rapid.Custom(func(t *rapid.T) time.Time {
		zone := time.FixedZone("", rapid.IntRange(-12, 12).Draw(t, "zone")*3600)
		return time.Unix(rapid.Int64Range(0, 4e9).Draw(t, "s"), rapid.Int64Range(0, 999999999).Draw(t, "ns")).In(zone)
	})
}

func versions() *rapid.Generator[logbook.Versions] {
	return rapid.Custom(func(t *rapid.T) logbook.Versions {
		return logbook.Versions{KubernetesVersion: text().Draw(t, "k"), BaseImage: text().Draw(t, "b"), CoreDNS: text().Draw(t, "c")}
	})
}

func entry() *rapid.Generator[*status.Entry] {
	return rapid.Custom(func(t *rapid.T) *status.Entry {
		e := &status.Entry{
			Revision: text().Draw(t, "revision"), Outcome: text().Draw(t, "outcome"),
			From: status.Versions(versions().Draw(t, "from")), To: status.Versions(versions().Draw(t, "to")),
			Attempted: status.Versions(versions().Draw(t, "attempted")),
			Started:   moment().Draw(t, "started"), Ended: moment().Draw(t, "ended"),
		}
		for range rapid.IntRange(0, 2).Draw(t, "steps") {
			d := rapid.Int64Range(0, int64(90*time.Hour)).Draw(t, "took")
			e.Steps = append(e.Steps, status.TakenStep{Step: text().Draw(t, "step"), Subject: text().Draw(t, "subject"), Duration: status.Duration(d)})
		}
		return e
	})
}

func kubes() *rapid.Generator[*live.Kube] {
	return rapid.Custom(func(t *rapid.T) *live.Kube {
		k := &live.Kube{ServerVersion: text().Draw(t, "server")}
		for _, v := range rapid.SliceOfN(text(), 0, 3).Draw(t, "kubelets") {
			k.Nodes = append(k.Nodes, live.Node{KubeletVersion: v})
		}
		if rapid.Bool().Draw(t, "dns") {
			k.DNS.Deployment = &live.DNSDeployment{Image: text().Draw(t, "image")}
		}
		if rapid.Bool().Draw(t, "run") {
			k.DNS.Config = &live.DNSConfig{Run: &live.DNSRun{From: text().Draw(t, "before")}}
		}
		return k
	})
}

func plans() *rapid.Generator[*status.Plan] {
	return rapid.Custom(func(t *rapid.T) *status.Plan {
		p := &status.Plan{Done: rapid.IntRange(0, 9).Draw(t, "done"), Total: rapid.IntRange(0, 9).Draw(t, "total"), Hash: text().Draw(t, "hash")}
		if rapid.Bool().Draw(t, "current") {
			p.Current = &status.Step{Step: text().Draw(t, "step"), Subject: text().Draw(t, "subject"), Why: text().Draw(t, "why")}
		}
		return p
	})
}

func maybe[T any](g *rapid.Generator[*T]) *rapid.Generator[*T] {
	return rapid.OneOf(rapid.Just[*T](nil), g)
}

func reportOf(name string) *rapid.Generator[status.Report] {
	return rapid.Custom(func(t *rapid.T) status.Report {
		r := status.Report{
			Cluster: name, Stage: text().Draw(t, "stage"), Revision: rapid.SampledFrom([]string{"", "a", "b"}).Draw(t, "revision"),
			Labels:  rapid.MapOfN(rapid.StringMatching(`[a-z./]{1,9}`), rapid.StringMatching(`[a-z0-9]{0,5}`), 0, 3).Draw(t, "labels"),
			Outcome: status.Outcome(rapid.IntRange(0, int(status.Transient)).Draw(t, "outcome")),
			Why:     text().Draw(t, "why"), Runbook: text().Draw(t, "runbook"),
			Want: versions().Draw(t, "want"), Live: maybe(kubes()).Draw(t, "live"), Plan: maybe(plans()).Draw(t, "plan"),
			Notices: rapid.SliceOfN(text(), 0, 3).Draw(t, "notices"), Finished: maybe(entry()).Draw(t, "finished"),
		}
		if rapid.Bool().Draw(t, "until") {
			r.Until = moment().Draw(t, "until")
		}
		if rapid.Bool().Draw(t, "failure") {
			r.Failure = &rollout.Failure{Reason: text().Draw(t, "reason"), Message: text().Draw(t, "message"), Remedy: text().Draw(t, "remedy")}
		}
		return r
	})
}

func documentBefore(t *rapid.T) *status.Document {
	var prev *status.Document
	for range rapid.IntRange(0, 3).Draw(t, "passes before") {
		d := status.Update(prev, reportOf("a").Draw(t, "earlier"), moment().Draw(t, "then"))
		prev = &d
	}
	return prev
}

func mustFormat(t *rapid.T, d status.Document) string {
	data, err := status.Format(d)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// While nothing happens, nothing changes: an equal report at a later time gives the same bytes, also when the document
// was written and read in between.
func TestEqualReportChangesNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := reportOf("a").Draw(t, "report")
		t1, t2 := moment().Draw(t, "t1"), moment().Draw(t, "t2")
		first := status.Update(documentBefore(t), r, t1)
		want := mustFormat(t, first)
		if got := mustFormat(t, status.Update(&first, r, t2)); got != want {
			t.Fatalf("in memory:\n%s\nthen\n%s", want, got)
		}
		read, err := status.Parse([]byte(want))
		if err != nil {
			t.Fatalf("%v in\n%s", err, want)
		}
		if got := mustFormat(t, *read); got != want {
			t.Fatalf("read and written:\n%s\nthen\n%s", want, got)
		}
		if got := mustFormat(t, status.Update(read, r, t2)); got != want {
			t.Fatalf("after a round trip:\n%s\nthen\n%s", want, got)
		}
	})
}

// A run after a run with equal reports commits nothing, whatever was on the branch before the first.
func TestSecondRunCommitsNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		names := []string{"a", "b.c", "odd/../name", "@x y"}
		c := status.Commit{Path: rapid.SampledFrom([]string{"", "status", "a/b"}).Draw(t, "path"), Now: moment().Draw(t, "now"), Stages: []string{"dev"}}
		if rapid.Bool().Draw(t, "all specs read") {
			c.Clusters = names[:rapid.IntRange(0, len(names)).Draw(t, "clusters")]
		}
		for _, n := range names[:rapid.IntRange(0, len(names)).Draw(t, "reports")] {
			c.Reports = append(c.Reports, reportOf(n).Draw(t, n))
		}
		dir := map[string]string{"": "clusters/", "status": "status/clusters/", "a/b": "a/b/clusters/"}[c.Path]
		present := map[string][]byte{}
		for _, file := range []string{"a.yaml", "gone.yaml", "%40x%20y.yaml", "notes.txt", "not ours.yaml", ".yaml"} {
			if rapid.Bool().Draw(t, file) {
				present[dir+file] = []byte(text().Draw(t, "content"))
			}
		}
		changed, err := c.Files(status.Tree{Files: present})
		if err != nil {
			t.Fatal(err)
		}
		c.Now = moment().Draw(t, "later")
		again, err := c.Files(status.Tree{Files: apply(present, changed)})
		if err != nil {
			t.Fatal(err)
		}
		for file, data := range again {
			t.Errorf("%s changed again, from\n%s\nto\n%s", file, changed[file], data)
		}
	})
}

// A subject is one short line, whatever it is made of.
func TestSubjectIsOneShortLine(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := reportOf(text().Draw(t, "name")).Draw(t, "report")
		got := status.Subject([]status.Report{r})
		if n := len([]rune(got)); n > 72 || n == 0 {
			t.Errorf("%d characters: %q", n, got)
		}
		for _, c := range got {
			if c == '\n' || c == '\r' {
				t.Errorf("more than one line: %q", got)
			}
		}
	})
}

func FuzzParse(f *testing.F) {
	doc := status.Update(nil, stalled("a", "dev"), at("2026-12-01T08:00:00Z"))
	if data, err := status.Format(doc); err == nil {
		f.Add(data)
	}
	f.Add([]byte("a: &a [*a]\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		doc, err := status.Parse(data)
		if err != nil {
			return
		}
		next := status.Update(doc, converged(doc.Metadata.Name, "dev"), at("2026-12-01T08:00:00Z"))
		if _, err := status.Format(next); err != nil {
			t.Errorf("what was read can't be written: %v", err)
		}
	})
}
