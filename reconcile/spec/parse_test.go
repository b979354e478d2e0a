// SPDX-License-Identifier: Apache-2.0

package spec_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	_ "time/tzdata"

	"github.com/theseus-gitops/theseus/reconcile/spec"
)

var update = flag.Bool("update", false, "rewrite golden files")

const (
	plainFleet = "apiVersion: theseus.dev/v1alpha1\nkind: Fleet\nspec:\n  images:\n    debian-13: {hetzner: \"1843321\"}\n"
	head       = "apiVersion: theseus.dev/v1alpha1\nkind: Cluster\n"
	plain      = head + "metadata: {name: seed-eu-1}\nspec:\n  kubernetesVersion: v1.37.2\n  access: {inCluster: true}\n"
)

func file(path, text string) spec.File { return spec.File{Path: path, Data: []byte(text)} }

// withFleet gives the files of a repository whose fleet has nothing to say.
func withFleet(files ...spec.File) []spec.File {
	return append([]spec.File{file(spec.FleetFile, plainFleet)}, files...)
}

func read(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func golden(t *testing.T, path, got string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if want := read(t, path); got != want {
		t.Errorf("%s differs (rewrite with -update)\n%s", path, firstDifference(got, want))
	}
}

func firstDifference(got, want string) string {
	g, w := strings.Split(got, "\n"), strings.Split(want, "\n")
	for i := range min(len(g), len(w)) {
		if g[i] != w[i] {
			return fmt.Sprintf("line %d\n got: %s\nwant: %s", i+1, g[i], w[i])
		}
	}
	return fmt.Sprintf("got %d lines, want %d", len(g), len(w))
}

// report shows the problems of a repository, without what the plain fleet says about itself.
func report(files []spec.File) (string, spec.Repository) {
	repo, problems := spec.Parse(files)
	var b strings.Builder
	for _, p := range problems {
		if p.File != spec.FleetFile || string(files[0].Data) != plainFleet {
			b.WriteString(p.String() + "\n")
		}
	}
	return b.String(), repo
}

// TestBroken reads each broken spec alone, beside a plain fleet (or as the fleet, for fleet-*), and shows all problems.
func TestBroken(t *testing.T) {
	paths, err := filepath.Glob("testdata/broken/*.yaml")
	if err != nil || len(paths) < 40 {
		t.Fatalf("found %d broken specs, %v", len(paths), err)
	}
	var b strings.Builder
	for _, path := range paths {
		slug := strings.TrimSuffix(filepath.Base(path), ".yaml")
		files := withFleet(file(slug+".yaml", read(t, path)))
		if strings.HasPrefix(slug, "fleet-") {
			files = []spec.File{file(spec.FleetFile, read(t, path))}
		}
		got, _ := report(files)
		fmt.Fprintf(&b, "# %s\n%s\n", slug, got)
		if got == "" {
			t.Errorf("%s: no problem found", slug)
		}
	}
	golden(t, "testdata/broken.golden", b.String())
}

// TestBrokenBytes has what can't be kept as a readable file.
func TestBrokenBytes(t *testing.T) {
	crlf := strings.ReplaceAll(plain+"  coreDNS: {imagetag: x}\n", "\n", "\r\n")
	big := plain + "# " + strings.Repeat("x", spec.MaxFileBytes)
	utf16 := "\xff\xfe"
	for _, c := range plain {
		utf16 += string([]byte{byte(c), 0})
	}
	cases := []struct {
		name  string
		files []spec.File
	}{
		{"crlf-keeps-positions", withFleet(file("a.yaml", crlf))},
		{"bom-keeps-positions", withFleet(file("a.yaml", "\ufeff"+plain+"  x: 1\n"))},
		{"bom-before-the-first-key", withFleet(file("a.yaml", "\ufeff"+"x: 1\n"+plain))},
		{"bom-inside", withFleet(file("a.yaml", plain+"  suspend: a\ufeffb\n"))},
		{"nul", withFleet(file("a.yaml", plain+"  suspend: a\x00b\n"))},
		{"binary-of-others-is-ignored", withFleet(file("a.yaml", "\x00\x01\x02"))},
		{"binary-fleet", []spec.File{file(spec.FleetFile, "\x00\x01\x02")}},
		{"invalid-utf-8", withFleet(file("a.yaml", plain+"  suspend: a\xffb\n"))},
		{"utf-16", withFleet(file("a.yaml", utf16))},
		{"lone-carriage-return", withFleet(file("a.yaml", strings.ReplaceAll(plain, "\n", "\r")))},
		{"control-character", withFleet(file("a.yaml", plain+"  suspend: a\x1bb\n"))},
		{"line-separator", withFleet(file("a.yaml", plain+"  suspend: a\u2028b\n"))},
		{"wide-characters-count-once", withFleet(file("a.yaml", plain+"  place: {\"日本\": 1, x: 2}\n"))},
		{"too-large", withFleet(file("a.yaml", big), spec.File{Path: "b.yaml", Kind: spec.TooLarge})},
		{"links", withFleet(spec.File{Path: "link", Kind: spec.Symlink}, spec.File{Path: "sub", Kind: spec.Submodule})},
		{"linked-fleet", []spec.File{{Path: spec.FleetFile, Kind: spec.Symlink}}},
		{"too-many", make([]spec.File, spec.MaxFiles+1)},
		{"no-fleet", []spec.File{file("a.yaml", plain)}},
		{"fleet-elsewhere", withFleet(file("sub/fleet.yaml", plainFleet))},
		{"same-name-in-two-files", withFleet(file("b.yaml", plain), file("a.yaml", plain))},
		{"deep-nesting", withFleet(file("a.yaml", plain+"  suspend: "+strings.Repeat("[", 20000)))},
		{"syntax-error-in-a-long-file", withFleet(file("a.yaml", plain+strings.Repeat("  # comment\n", 5000)+"  a: b: c\n"))},
		{"long-key", withFleet(file("a.yaml", plain+"  "+strings.Repeat("k", 600)+": 1\n"))},
		{"long-text-is-shortened", withFleet(file("a.yaml", plain+"  retry: ["+strings.Repeat("k", 600)+"]\n  place: {}\n  release: "+strings.Repeat("K", 600)+"\n"))},
	}
	var b strings.Builder
	for _, c := range cases {
		got, _ := report(c.files)
		fmt.Fprintf(&b, "# %s\n%s\n", c.name, got)
	}
	golden(t, "testdata/broken-bytes.golden", b.String())
}

// TestGood reads each good spec with its fleet; only "not acted on yet" may be said about it.
func TestGood(t *testing.T) {
	for _, slug := range []string{"full", "spec-examples"} {
		files := []spec.File{
			file(spec.FleetFile, read(t, "testdata/good/"+slug+"-fleet.yaml")),
			file("clusters/a.yaml", read(t, "testdata/good/"+slug+".yaml")),
		}
		repo, problems := spec.Parse(files)
		for _, p := range problems {
			if p.Severity == spec.Error || (!strings.Contains(p.Message, "is not acted on yet") && !strings.Contains(p.Message, "no cluster belongs")) {
				t.Errorf("%s: %s", slug, p)
			}
		}
		if repo.Fleet == nil || len(repo.Clusters) == 0 || len(repo.Releases) != 1 {
			t.Fatalf("%s: read only part of it: %+v", slug, repo)
		}
		var b bytes.Buffer
		b.WriteString(problems.String())
		enc := json.NewEncoder(&b)
		enc.SetIndent("", "  ")
		enc.SetEscapeHTML(false)
		for _, c := range repo.Clusters {
			e, err := repo.Effective(c)
			if err != nil {
				t.Fatal(err)
			}
			if err := enc.Encode(e); err != nil {
				t.Fatal(err)
			}
		}
		golden(t, "testdata/good/"+slug+".golden", b.String())
	}
}

func TestOthersAreIgnoredAndCounted(t *testing.T) {
	files := withFleet(
		file("a.yaml", plain),
		file("values.yaml", "replicas: 3\n"),
		file("chart/templates/x.yaml", "{{- if .Values.x }}\n\tkind: {{ .Values.kind }}\n{{- end }}\n"),
		file("crd.yml", "apiVersion: v1\nkind: ConfigMap\ndata: &x {a: b}\nmore: *x\n"),
		file("list.yaml", "- a\n"),
		file("empty.yaml", ""),
		file("plan.yaml", plain+"  nonsense: 1\n"),
		file("clusters/a/plan.yaml", "\x00"),
		file("main.tf", "\x00"),
		file("status/clusters/seed-eu-1.yaml", "apiVersion: theseus.dev/v1alpha1\nkind: ClusterStatus\nstatus: {}\n"),
	)
	got, repo := report(files)
	if repo.OtherFiles != 5 || len(repo.Clusters) != 1 || strings.Contains(got, "error") {
		t.Errorf("got %d other files, %d clusters, problems:\n%s", repo.OtherFiles, len(repo.Clusters), got)
	}
}

func TestBrokenClusterHoldsUpNoOther(t *testing.T) {
	second := strings.ReplaceAll(plain, "seed-eu-1", "second")
	repo, problems := spec.Parse(withFleet(
		file("a.yaml", plain+"  a: b: c\n---\n"+second),
		file("b.yaml", strings.ReplaceAll(plain, "seed-eu-1", "third")+"  suspendd: x\n"),
		file("c.yaml", "apiVersion: theseus.dev/v1alpha1\nkind: Cluster\nmetadata:\n  labels:\n    name: x\n  # its name\n  name: fourth\nspec: [\n"),
		file("d.yaml", strings.ReplaceAll(plain, "seed-eu-1", "../../etc")),
	))
	if len(repo.Clusters) != 1 || repo.Clusters[0].Metadata.Name != "second" || repo.Fleet == nil {
		t.Errorf("want only the good cluster, got %+v", repo.Clusters)
	}
	if got := strings.Join(problems.BrokenClusters(), " "); got != "fourth seed-eu-1 third" {
		t.Errorf("broken clusters: %s\n%s", got, problems)
	}
	if problems.ForFleet().HasErrors() || !problems.ForCluster("third").HasErrors() || problems.ForCluster("second").HasErrors() {
		t.Errorf("attributed wrongly:\n%s", problems)
	}
	e, err := repo.Effective(repo.Clusters[0])
	if err != nil || e.Revision == "" {
		t.Errorf("effective: %+v, %v", e, err)
	}
}

// TestUnreadableNamesake: which of two documents is meant can't be known, whatever is wrong with one of them.
func TestUnreadableNamesake(t *testing.T) {
	for _, wrong := range []string{"  a: b: c\n", "  suspend: \xff\n", "  x: 1\n"} {
		repo, problems := spec.Parse(withFleet(file("a.yaml", plain), file("b.yaml", plain+wrong)))
		if len(repo.Clusters) != 0 {
			t.Errorf("%q: the good one was returned\n%s", wrong, problems)
		}
	}
}

func TestBrokenFleet(t *testing.T) {
	repo, problems := spec.Parse([]spec.File{
		file(spec.FleetFile, "apiVersion: theseus.dev/v1alpha1\nkind: Fleet\nspec: {stagse: [], status: {branch: reports}}\n"),
		file("a.yaml", plain),
	})
	if repo.Fleet != nil || !problems.ForFleet().HasErrors() {
		t.Errorf("a broken fleet was returned:\n%s", problems)
	}
	if want := (spec.StatusTarget{Branch: "reports", Path: "status"}); repo.Status != want {
		t.Errorf("status target %+v, want %+v", repo.Status, want)
	}
	if len(repo.Clusters) != 1 {
		t.Errorf("the cluster itself is good, got %d", len(repo.Clusters))
	}
	if _, err := repo.Effective(repo.Clusters[0]); err == nil {
		t.Error("resolved a cluster without a fleet")
	}
	if repo, _ := spec.Parse(nil); repo.Status != (spec.StatusTarget{Branch: "theseus/status", Path: "status"}) {
		t.Errorf("default status target: %+v", repo.Status)
	}
}

func TestStages(t *testing.T) {
	fleet := "apiVersion: theseus.dev/v1alpha1\nkind: Fleet\nspec:\n  stages:\n" +
		"  - {name: dev, selector: {matchLabels: {stage: dev}}}\n  - {name: any, selector: {matchExpressions: [{key: stage, operator: Exists}]}}\n"
	labelled := func(name, labels string) string {
		return strings.Replace(plain, "{name: seed-eu-1}", "{name: "+name+", labels: "+labels+"}", 1)
	}
	repo, problems := spec.Parse([]spec.File{
		file(spec.FleetFile, fleet),
		file("a.yaml", labelled("two", "{stage: dev}")), file("b.yaml", labelled("none", "{}")), file("c.yaml", labelled("one", "{stage: x}")),
	})
	if len(repo.Clusters) != 1 || repo.Clusters[0].Metadata.Name != "one" {
		t.Errorf("want only the cluster in one stage, got %+v\n%s", repo.Clusters, problems)
	}
	for name, want := range map[string]string{
		"two":  "a.yaml:3:31: error: metadata.labels: the labels put the cluster into 2 stages: dev (fleet.yaml:5:5), any (fleet.yaml:6:5); allowed: exactly one",
		"none": "b.yaml:3:32: error: metadata.labels: no stage selects the labels none; the stages are dev (stage=dev), any; allowed: exactly one selects a cluster",
	} {
		if got := problems.ForCluster(name).String(); !strings.Contains(got, want) {
			t.Errorf("%s: got %s want %s", name, got, want)
		}
	}
	e, err := repo.Effective(repo.Clusters[0])
	if err != nil || e.Stage != "any" {
		t.Errorf("stage %q, %v", e.Stage, err)
	}
}

func TestProblemJSON(t *testing.T) {
	_, problems := spec.Parse(withFleet(file("a.yaml", plain+"  suspend: x\n")))
	got, err := json.Marshal(problems.ForCluster("seed-eu-1")[:1])
	want := `[{"file":"a.yaml","line":7,"column":3,"severity":"warning","message":"spec.suspend is not acted on yet (comes with: stages)"}]`
	if err != nil || string(got) != want {
		t.Errorf("got %s, %v\nwant %s", got, err, want)
	}
}

// TestWarningsTellWhatTheyAreAbout: their readers sum them up, and so need more than the text.
func TestWarningsTellWhatTheyAreAbout(t *testing.T) {
	_, problems := spec.Parse(withFleet(
		file("a.yaml", plain+"  suspend: x\n  workers: [{name: w, kind: terraform, replicas: 1, rollout: {maxSurge: 1}}]\n"),
		file("b.yaml", "apiVersion: teseus.dev/v1alpha1\nkind: Chart\n"),
	))
	var got []string
	for _, p := range problems {
		if p.Severity == spec.Warning {
			got = append(got, fmt.Sprintf("%s %q %v", p.File, p.Idle, p.Ignored))
		}
	}
	// Nothing about kubernetesVersion: it must be there, so nobody can do anything about a warning.
	want := []string{`a.yaml "spec.suspend" false`, `a.yaml "spec.workers" false`, `b.yaml "" true`}
	if !slices.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}
