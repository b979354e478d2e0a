// SPDX-License-Identifier: Apache-2.0

package status_test

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/theseus-gitops/theseus/reconcile/status"
)

func TestWhatStandsInTheWayIsNamedInTheCommit(t *testing.T) {
	file := []byte("what people wrote")
	for name, tc := range map[string]struct {
		tree status.Tree
		gone []string
	}{
		"nothing":     {status.Tree{Other: map[string]status.Thing{"status/clusters": status.Directory, "status/link": status.Symlink}}, nil},
		"a directory": {status.Tree{Other: map[string]status.Thing{"status/clusters/a.yaml": status.Directory}}, []string{"status/clusters/a.yaml (a directory)"}},
		"a symlink and a submodule": {
			status.Tree{Other: map[string]status.Thing{"status/clusters/a.yaml": status.Symlink, "status/README.md": status.Submodule}},
			[]string{"status/README.md (a submodule)", "status/clusters/a.yaml (a symlink)"},
		},
		"a file too large":    {status.Tree{Other: map[string]status.Thing{"status/clusters/a.yaml": status.TooLarge}}, []string{"status/clusters/a.yaml (a file too large to be read)"}},
		"the folder, once":    {status.Tree{Other: map[string]status.Thing{"status": status.Symlink}}, []string{"status (a symlink)"}},
		"a file as folder":    {status.Tree{Files: map[string][]byte{"status/clusters": file}}, []string{"status/clusters (a file)"}},
		"a damaged document":  {status.Tree{Files: map[string][]byte{"status/clusters/a.yaml": file}}, nil},
		"another's directory": {status.Tree{Other: map[string]status.Thing{"status/clusters/x.yaml": status.Directory}}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			c := status.Commit{Path: "status", Clusters: []string{"a"}, Reports: []status.Report{converged("a", "dev")}, Now: at("2026-12-01T09:00:00Z")}
			changed, err := c.Files(tc.tree)
			if err != nil {
				t.Fatal(err)
			}
			if got := slices.Sorted(maps.Keys(changed)); !slices.Equal(got, []string{"status/README.md", "status/clusters/a.yaml"}) {
				t.Errorf("changed %v; want the document and the page, and nobody else's", got)
			}
			want := "a: as wanted\n\n"
			if tc.gone != nil {
				want += "Replaced what was in the way:\n- " + strings.Join(tc.gone, "\n- ") + "\n\n"
			}
			want += "Theseus-Cluster: a\nTheseus-Outcome: converged\nTheseus-Revision: 4f1c9a02\n"
			if got := c.Message(tc.tree, changed); got != want {
				t.Errorf("got\n%s\nwant\n%s", got, want)
			}
		})
	}
}

func TestReplacedDocumentSaysThatItsHistoryIsGone(t *testing.T) {
	c := status.Commit{Reports: []status.Report{converged("a", "dev")}, Now: at("2026-12-01T09:00:00Z")}
	changed, err := c.Files(status.Tree{Other: map[string]status.Thing{"clusters/a.yaml": status.Symlink}})
	if err != nil {
		t.Fatal(err)
	}
	doc, err := status.Parse(changed["clusters/a.yaml"])
	if err != nil || len(doc.Status.Notices) != 1 || !strings.Contains(doc.Status.Notices[0], "it is a symlink") {
		t.Errorf("document %+v, error %v", doc, err)
	}
}

func TestWhatIsNoFileIsNeverRemoved(t *testing.T) {
	tree := status.Tree{Other: map[string]status.Thing{
		"clusters/dir.yaml": status.Directory, "clusters/link.yaml": status.Symlink, "clusters/module.yaml": status.Submodule,
		"clusters/big.yaml": status.TooLarge, "clusters/big.txt": status.TooLarge, "big.yaml": status.TooLarge,
	}}
	c := status.Commit{Clusters: []string{"dir"}, Now: at("2026-12-01T09:00:00Z")}
	changed, err := c.Files(tree)
	if err != nil {
		t.Fatal(err)
	}
	page := string(changed["README.md"])
	delete(changed, "README.md")
	if data, ok := changed["clusters/big.yaml"]; len(changed) != 1 || !ok || data != nil {
		t.Errorf("changed %v; want the file of a cluster that is gone removed, and nothing else", slices.Sorted(maps.Keys(changed)))
	}
	if !strings.Contains(page, "- dir: its status file is damaged and will be written anew (it is a directory)") || strings.Contains(page, "link") {
		t.Errorf("page:\n%s", page)
	}
}

func TestDocumentsTellsGoodFromBad(t *testing.T) {
	good := format(t, status.Update(nil, converged("a", "dev"), at("2026-12-01T08:00:00Z")))
	tree := status.Tree{
		Files: map[string][]byte{
			"s/clusters/a.yaml": []byte(good), "s/clusters/b.yaml": []byte(good), "s/clusters/c.yaml": []byte("{"),
			"s/clusters/notes.txt": []byte("mine"), "s/README.md": []byte("page"), "s/clusters/.yaml": []byte("odd"),
		},
		Other: map[string]status.Thing{
			"s/clusters": status.Directory, "s/clusters/0.yaml": status.TooLarge, "s/clusters/d.yaml": status.Directory, "s/clusters/e.yaml": status.Directory,
		},
	}
	var got []string
	for _, f := range status.Documents(tree, "s", func(name string) bool { return name == "d" }) {
		what := f.Damage
		if f.Document != nil {
			what = f.Document.Outcome().String()
		}
		got = append(got, f.Cluster+": "+strings.SplitAfter(what+" ", "document: ")[0])
	}
	want := []string{"0: it is a file too large to be read ", "a: converged ", `b: it is about cluster "a" `, "c: status document: ", "d: it is a directory "}
	if !slices.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}

func TestNoFoldersLooksAllTheWayUp(t *testing.T) {
	tree := status.Tree{
		Files: map[string][]byte{"a/b": nil},
		Other: map[string]status.Thing{"a": status.Directory, "a/b/c": status.Symlink, "a/b/c/d": status.Directory},
	}
	if got, want := tree.NoFolders("a/b/c/d"), []string{"a/b/c (a symlink)", "a/b (a file)"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	if got := status.Folders("a/b"); !slices.Equal(got, []string{"a/b", "a/b/clusters"}) {
		t.Errorf("folders %q", got)
	}
}

func TestThingsHaveWords(t *testing.T) {
	for thing := status.Directory; thing <= status.TooLarge+1; thing++ {
		if unknown := thing.String() == "something unknown"; unknown != (thing > status.TooLarge) {
			t.Errorf("%d is %q", int(thing), thing)
		}
	}
}
