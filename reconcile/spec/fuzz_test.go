// SPDX-License-Identifier: Apache-2.0

package spec_test

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/theseus-gitops/theseus/reconcile/spec"
)

// FuzzParse reads arbitrary text as a fleet and as another file. Parse must not panic, each problem must stand at a place
// that exists, reading twice must give the same, and what was accepted must survive being written and read again.
func FuzzParse(f *testing.F) {
	for _, pattern := range []string{"testdata/broken/*.yaml", "testdata/good/*.yaml"} {
		paths, err := filepath.Glob(pattern)
		if err != nil {
			f.Fatal(err)
		}
		for _, path := range paths {
			data := readSeed(f, path)
			if strings.Contains(path, "fleet") {
				f.Add(data, []byte(plain))
			} else {
				f.Add([]byte(plainFleet), data)
			}
		}
	}
	f.Fuzz(func(t *testing.T, fleet, data []byte) {
		files := []spec.File{{Path: spec.FleetFile, Data: fleet}, {Path: "a.yaml", Data: data}}
		repo, problems := spec.Parse(files)
		for _, p := range problems {
			checkPosition(t, files, p)
		}
		if _, again := spec.Parse(files); !slices.Equal(problems, again) {
			t.Fatalf("two runs differ:\n%s\n%s", problems, again)
		}
		broken := problems.BrokenClusters()
		for _, c := range repo.Clusters {
			if slices.Contains(broken, c.Metadata.Name) {
				t.Fatalf("cluster %s is returned and has errors:\n%s", c.Metadata.Name, problems)
			}
		}
		if repo.Fleet != nil {
			sameAgain(t, repo)
		}
	})
}

func checkPosition(t *testing.T, files []spec.File, p spec.Problem) {
	t.Helper()
	i := slices.IndexFunc(files, func(f spec.File) bool { return f.Path == p.File })
	if i < 0 || p.Message == "" || strings.ContainsAny(p.Message, "\n\r") || (p.Severity != spec.Error && p.Severity != spec.Warning) {
		t.Fatalf("not a problem: %+v", p)
	}
	lines := bytes.Split(files[i].Data, []byte("\n"))
	if p.Line < 1 || p.Line > len(lines) || p.Column < 1 || p.Column > len(lines[p.Line-1])+1 {
		t.Fatalf("no such place: %s (%d lines)", p, len(lines))
	}
}

func readSeed(f *testing.F, path string) []byte {
	f.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		f.Fatal(err)
	}
	return data
}
