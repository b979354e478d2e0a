// SPDX-License-Identifier: Apache-2.0

package spec_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
	"pgregory.net/rapid"

	"github.com/theseus-gitops/theseus/reconcile/spec"
)

// effective resolves the one cluster of a spec beside a plain fleet.
func effective(t interface {
	Helper()
	Fatalf(string, ...any)
}, text string) spec.EffectiveCluster {
	t.Helper()
	repo, problems := spec.Parse(withFleet(file("a.yaml", text)))
	if len(repo.Clusters) != 1 || problems.HasErrors() {
		t.Fatalf("want one good cluster, got %d:\n%s", len(repo.Clusters), problems)
	}
	e, err := repo.Effective(repo.Clusters[0])
	if err != nil {
		t.Fatalf("effective: %v", err)
	}
	return e
}

const release = "---\napiVersion: theseus.dev/v1alpha1\nkind: Release\nmetadata: {name: r}\nspec: {kubernetesVersion: v1.36.3, baseImage: debian-13, " +
	"coreDNS: {imageTag: v1.14.2}, etcd: {imageTag: 3.6.16-0}, hops: [{kubernetesVersion: v1.35.1}]}\n"

func TestReleaseFillsIn(t *testing.T) {
	e := effective(t, head+"metadata: {name: a}\nspec: {release: r, place: hetzner, access: {inCluster: true}}\n"+release)
	s := e.Spec
	if s.KubernetesVersion != "v1.36.3" || s.BaseImage != "debian-13" || e.Image != "1843321" || s.Etcd.ImageTag != "3.6.16-0" || len(s.Hops) != 1 {
		t.Errorf("got %+v", e)
	}
	if e.Release != "r" || s.Release != "" {
		t.Errorf("release %q, in the spec %q", e.Release, s.Release)
	}
	if e.HopImages[0] != "1843321" {
		t.Errorf("hop images %v", e.HopImages)
	}
}

func TestReleaseMovesNoCoreDNSBeforeStages(t *testing.T) {
	e := effective(t, head+"metadata: {name: a}\nspec: {release: r, place: hetzner, access: {inCluster: true}}\n"+release)
	want := ""
	if spec.Stages.Acts() {
		want = "v1.14.2"
	}
	if e.Spec.CoreDNS.ImageTag != want {
		t.Errorf("CoreDNS tag %q, want %q", e.Spec.CoreDNS.ImageTag, want)
	}
}

func TestOwnFieldWins(t *testing.T) {
	e := effective(t, head+"metadata: {name: a}\nspec: {release: r, kubernetesVersion: v1.37.2, baseImage: \"own-{kubernetesVersion}\", hops: [], "+
		"coreDNS: {imageTag: v1.14.6}, etcd: {imageTag: 3.7.3-0}, access: {inCluster: true}}\n"+release)
	s := e.Spec
	if s.KubernetesVersion != "v1.37.2" || s.BaseImage != "own-v1.37.2" || e.Image != "own-v1.37.2" || s.Etcd.ImageTag != "3.7.3-0" ||
		s.CoreDNS.ImageTag != "v1.14.6" || s.Hops != nil {
		t.Errorf("got %+v", e)
	}
}

func TestEffectiveWithoutWhatItNames(t *testing.T) {
	var c spec.Cluster
	c.Metadata.Name = "a"
	c.Spec.Release = "gone"
	if _, err := spec.Effective(c, spec.Fleet{}, nil); err == nil || !strings.Contains(err.Error(), `cluster a: no good release "gone"`) {
		t.Errorf("got %v", err)
	}
	c.Spec.Release, c.Spec.BaseImage = "", "x"
	var fleet spec.Fleet
	fleet.Spec.Images = map[string]map[string]string{"x": {"here": "1"}}
	if _, err := spec.Effective(c, fleet, nil); err == nil || !strings.Contains(err.Error(), "needs spec.place") {
		t.Errorf("got %v", err)
	}
}

// TestRevisionIgnores has edits that change nothing.
func TestRevisionIgnores(t *testing.T) {
	base := effective(t, plain+"  coreDNS: {imageTag: v1.14.6}\n  controlPlane: {replicas: 3, maxMachineAge: 3d}\n").Revision
	same := map[string]string{
		"comments and blanks":  "# x\n" + plain + "\n  coreDNS:   # y\n    imageTag: 'v1.14.6'\n  controlPlane: {maxMachineAge: 72h, replicas: 3}\n",
		"defaults written out": plain + "  coreDNS: {imageTag: v1.14.6, takeOver: false, skipCorefileMigration: false}\n  optional: false\n  endpoint: {mode: loadBalancer}\n  etcd: {}\n  controlPlane: {replicas: 3, maxMachineAge: 3d, attempts: 2, values: {}, failureDomains: [], rollout: {maxSurge: 1}, join: {bindPort: 6443}}\n  workers: []\n  hops: []\n",
		"labels":               strings.Replace(plain, "{name: seed-eu-1}", "{name: seed-eu-1, labels: {a: b}}", 1) + "  coreDNS: {imageTag: v1.14.6}\n  controlPlane: {replicas: 3, maxMachineAge: 3d}\n",
		"windows line ends":    strings.ReplaceAll(plain+"  coreDNS: {imageTag: v1.14.6}\n  controlPlane: {replicas: 3, maxMachineAge: 3d}\n", "\n", "\r\n"),
	}
	for name, text := range same {
		if got := effective(t, text).Revision; got != base {
			t.Errorf("%s: the revision changed", name)
		}
	}
}

// TestRevisionNotices has edits that change something.
func TestRevisionNotices(t *testing.T) {
	seen := map[string]string{}
	for _, text := range []string{
		"", "  coreDNS: {imageTag: v1.14.6}\n", "  coreDNS: {imageTag: v1.14.7}\n", "  coreDNS: {takeOver: true}\n",
		"  baseImage: debian-13\n  place: hetzner\n", "  baseImage: \"1843321\"\n", "  retry: a\n", "  retry: b\n",
		"  controlPlane: {}\n", "  controlPlane: {join: {nodeRegistration: {taints: []}}}\n", "  controlPlane: {rollout: {stableFor: 61s}}\n",
		"  workers: [{name: a, kind: terraform, replicas: 0}]\n", "  workers: [{name: a, kind: terraform, replicas: 1}]\n",
		"  workers: [{name: a, kind: terraform, replicas: 1, rollout: {maxSurge: 1%}}]\n",
	} {
		revision := effective(t, plain+text).Revision
		if len(revision) != 64 {
			t.Errorf("%q: revision %q is no SHA-256 in hexadecimal", text, revision)
		}
		if other, ok := seen[revision]; ok {
			t.Errorf("%q and %q have the same revision", text, other)
		}
		seen[revision] = text
	}
}

// TestImageIDCounts: the same spec with another id in the fleet is another revision, because machines become outdated.
func TestImageIDCounts(t *testing.T) {
	text := plain + "  baseImage: debian-13\n  place: hetzner\n"
	other := strings.Replace(plainFleet, "1843321", "2", 1)
	repo, _ := spec.Parse([]spec.File{file(spec.FleetFile, other), file("a.yaml", text)})
	e, err := repo.Effective(repo.Clusters[0])
	if err != nil || e.Revision == effective(t, text).Revision {
		t.Errorf("the revision did not change, %v", err)
	}
}

// TestRevisionIndependentOfKeyOrder shuffles the keys of the full example.
func TestRevisionIndependentOfKeyOrder(t *testing.T) {
	text := read(t, "testdata/good/full.yaml")
	fleet := file(spec.FleetFile, read(t, "testdata/good/full-fleet.yaml"))
	revision := func(text string) string {
		repo, problems := spec.Parse([]spec.File{fleet, file("a.yaml", text)})
		if len(repo.Clusters) != 1 {
			return problems.String()
		}
		e, err := repo.Effective(repo.Clusters[0])
		return fmt.Sprint(e.Revision, err)
	}
	want := revision(text)
	rapid.Check(t, func(t *rapid.T) {
		cluster, rest, _ := strings.Cut(text, "\n---\n")
		var n yaml.Node
		if err := yaml.Unmarshal([]byte(cluster), &n); err != nil {
			t.Fatal(err)
		}
		shuffle(t, &n)
		out, err := yaml.Marshal(&n)
		if err != nil {
			t.Fatal(err)
		}
		if got := revision(string(out) + "\n---\n" + rest); got != want {
			t.Fatalf("got %s\nwant %s\n%s", got, want, out)
		}
	})
}

func shuffle(t *rapid.T, n *yaml.Node) {
	if n.Kind == yaml.MappingNode {
		for i := len(n.Content)/2 - 1; i > 0; i-- {
			j := rapid.IntRange(0, i).Draw(t, "j")
			for k := range 2 {
				n.Content[2*i+k], n.Content[2*j+k] = n.Content[2*j+k], n.Content[2*i+k]
			}
		}
	}
	for _, c := range n.Content {
		shuffle(t, c)
	}
}

// TestClusterSurvivesJSON: what Parse returns, written as JSON (which is YAML), is read back with the same revision.
func TestClusterSurvivesJSON(t *testing.T) {
	repo, _ := spec.Parse([]spec.File{
		file(spec.FleetFile, read(t, "testdata/good/full-fleet.yaml")), file("a.yaml", read(t, "testdata/good/full.yaml")),
	})
	sameAgain(t, repo)
}

// sameAgain writes a repository as JSON, reads it back, and compares the revisions.
func sameAgain(t *testing.T, repo spec.Repository) {
	t.Helper()
	files := []spec.File{{Path: spec.FleetFile, Data: marshal(t, repo.Fleet)}}
	for i, r := range repo.Releases {
		files = append(files, spec.File{Path: fmt.Sprintf("r%d.yaml", i), Data: marshal(t, r)})
	}
	for i, c := range repo.Clusters {
		files = append(files, spec.File{Path: fmt.Sprintf("c%d.yaml", i), Data: marshal(t, c)})
	}
	again, problems := spec.Parse(files)
	if len(again.Clusters) != len(repo.Clusters) {
		t.Fatalf("read back %d of %d clusters\n%s", len(again.Clusters), len(repo.Clusters), problems)
	}
	for i := range repo.Clusters {
		before, err := repo.Effective(repo.Clusters[i])
		if err != nil {
			t.Fatalf("a cluster that Parse returned can't be resolved: %v", err)
		}
		after, err := again.Effective(again.Clusters[i])
		if err != nil || before.Revision != after.Revision || before.Stage != after.Stage {
			t.Fatalf("%s: revision %s became %s, %v\n%s", before.Name, before.Revision, after.Revision, err, files[len(files)-1].Data)
		}
	}
}

func marshal(t *testing.T, v any) []byte {
	t.Helper()
	data, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return data
}
