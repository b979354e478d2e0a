// SPDX-License-Identifier: Apache-2.0

// Package architecture has only tests: they hold the shape of the code that docs/ARCHITECTURE.md describes.
package architecture_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/theseus-gitops/theseus"

// pkg is what `go list -json` says of one package.
type pkg struct {
	ImportPath string
	Imports    []string
}

// pure packages take values and give values: that is what makes every decision testable without a world.
func purePackages() []string {
	return []string{
		"reconcile/spec", "reconcile/live", "reconcile/logbook", "reconcile/skew", "reconcile/image",
		"reconcile/corefile", "reconcile/kubeadmconfig", "reconcile/rollout", "reconcile/status",
	}
}

// forbidden imports of pure packages, each with its reason.
func forbidden() map[string]string {
	return map[string]string{
		"context":                             "a pure function can't be cancelled, because it never waits",
		"net":                                 "it reaches nothing",
		"net/http":                            "it reaches nothing",
		"os":                                  "it reads no file and no environment",
		"os/exec":                             "it starts nothing",
		"log":                                 "it tells by its result",
		"log/slog":                            "it tells by its result",
		"math/rand":                           "it gives the same answer to the same question",
		"math/rand/v2":                        "it gives the same answer to the same question",
		"k8s.io/client-go":                    "the cluster is observed by executors",
		"github.com/go-git/go-git":            "the repository is read by gitsource",
		"github.com/hashicorp/terraform-exec": "machines are changed by executors",
	}
}

// allowed third-party modules of pure packages, each with its reason.
func allowed() map[string]string {
	return map[string]string{
		"github.com/coredns/caddy":              "the Corefile's own lexer",
		"github.com/coredns/corefile-migration": "what CoreDNS versions remove and add; checked by package corefile, its only importer",
		"github.com/distribution/reference":     "the grammar of image references",
		"github.com/robfig/cron/v3":             "the grammar of cron expressions",
		"go.yaml.in/yaml/v3":                    "YAML with positions",
		"sigs.k8s.io/yaml":                      "YAML as kubeadm and kubelet read it",
	}
}

func list(t *testing.T, pattern ...string) []pkg {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", append([]string{"list", "-json=ImportPath,Imports"}, pattern...)...)
	cmd.Dir = filepath.Join("..", "..")
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	var packages []pkg
	dec := json.NewDecoder(strings.NewReader(string(out)))
	for dec.More() {
		var p pkg
		if err := dec.Decode(&p); err != nil {
			t.Fatal(err)
		}
		packages = append(packages, p)
	}
	return packages
}

func within(path, prefix string) bool { return path == prefix || strings.HasPrefix(path, prefix+"/") }

func TestPurePackagesReachNothing(t *testing.T) {
	t.Parallel()
	var patterns []string
	for _, p := range purePackages() {
		patterns = append(patterns, "./"+p)
	}
	for _, p := range list(t, patterns...) {
		for _, imported := range p.Imports {
			for bad, why := range forbidden() {
				if imported == bad || strings.Contains(bad, ".") && within(imported, bad) {
					t.Errorf("%s imports %s: %s", p.ImportPath, imported, why)
				}
			}
			thirdParty := strings.Contains(strings.SplitN(imported, "/", 2)[0], ".") && !within(imported, module)
			if _, ok := reason(imported); thirdParty && !ok {
				t.Errorf("%s imports %s, which is not on the list of modules that pure packages may use (internal/architecture); add it there with its reason, or use it in an adapter", p.ImportPath, imported)
			}
		}
	}
}

func reason(imported string) (string, bool) {
	for m, why := range allowed() {
		if within(imported, m) {
			return why, true
		}
	}
	return "", false
}

// Arrows point inward: cmd knows adapters, adapters know pure packages, and nothing knows the pass but cmd.
func TestArrowsPointInward(t *testing.T) {
	t.Parallel()
	pure := purePackages()
	for _, p := range list(t, "./...") {
		from := strings.TrimPrefix(p.ImportPath, module+"/")
		for _, imported := range p.Imports {
			to, ours := strings.CutPrefix(imported, module+"/")
			if !ours {
				continue
			}
			adapter := within(to, "gitsource") || within(to, "executors")
			switch {
			case to == "reconcile" && !within(from, "cmd"):
				t.Errorf("%s imports %s: only cmd knows the pass", from, to)
			case adapter && !within(from, "cmd") && from != to:
				t.Errorf("%s imports %s: only cmd knows adapters, and adapters do not know each other", from, to)
			case slices.Contains(pure, from) && !slices.Contains(pure, to):
				t.Errorf("%s imports %s: a pure package imports only pure packages", from, to)
			}
		}
	}
}

// One package hides the migration library, so that its output is never used unchecked.
func TestCorefileMigrationHasOneImporter(t *testing.T) {
	t.Parallel()
	var importers []string
	for _, p := range list(t, "./...") {
		if slices.ContainsFunc(p.Imports, func(i string) bool { return within(i, "github.com/coredns/corefile-migration") }) {
			importers = append(importers, strings.TrimPrefix(p.ImportPath, module+"/"))
		}
	}
	if !slices.Equal(importers, []string{"reconcile/corefile"}) {
		t.Errorf("corefile-migration is imported by %v, want reconcile/corefile alone", importers)
	}
}

// The lists above must name what exists: a rule about a package that was renamed holds nothing.
func TestRulesNameWhatExists(t *testing.T) {
	t.Parallel()
	var have []string
	for _, p := range list(t, "./...") {
		have = append(have, strings.TrimPrefix(p.ImportPath, module+"/"))
	}
	for _, p := range purePackages() {
		if !slices.Contains(have, p) {
			t.Errorf("the list of pure packages names %s, which does not exist", p)
		}
	}
	used := map[string]bool{}
	for _, p := range list(t, "./reconcile/...") {
		for _, imported := range p.Imports {
			for m := range allowed() {
				used[m] = used[m] || within(imported, m)
			}
		}
	}
	for m := range allowed() {
		if !used[m] {
			t.Errorf("%s is on the list of allowed modules, but nothing imports it: remove it", m)
		}
	}
}

// pins are versions that a routine update must not move, each with its reason.
func pins() map[string]string {
	return map[string]string{
		"github.com/fluxcd/pkg/runtime v0.117.0": "the newest that builds with Go 1.26; the next one asks for 1.27",
		"github.com/go-git/go-git/v5 v5.19.3":    "the first without the push regression of 5.19.1 (go-git#2251) and with its fixes; v6 is not released",
	}
}

func TestPinnedModules(t *testing.T) {
	t.Parallel()
	data, err := os.ReadFile(filepath.Join("..", "..", "go.mod"))
	if err != nil {
		t.Fatal(err)
	}
	for pin, why := range pins() {
		if !strings.Contains(string(data), "\t"+pin+"\n") {
			t.Errorf("go.mod lacks %q: %s; move the pin here together with go.mod, knowingly", pin, why)
		}
	}
}
