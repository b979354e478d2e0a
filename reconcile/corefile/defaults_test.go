// SPDX-License-Identifier: Apache-2.0

package corefile_test

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/theseus-gitops/theseus/reconcile/corefile"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// kubeadmDefault is the Corefile that kubeadm of a Kubernetes minor writes, and the CoreDNS it deploys with it
// (kubernetes/kubernetes, cmd/kubeadm/app/phases/addons/dns/manifests.go).
type kubeadmDefault struct{ kubernetes, coreDNS, corefile string }

// block writes the default server block with what differs between minors.
func defaultBlock(health, ready, upstream, ttl, forward, cache, tail string) string {
	lines := []string{
		".:53 {", "    errors", health, ready,
		"    kubernetes cluster.local in-addr.arpa ip6.arpa {", "       pods insecure", upstream,
		"       fallthrough in-addr.arpa ip6.arpa", ttl, "    }", "    prometheus :9153", forward, cache, tail, "}", "",
	}
	kept := lines[:0]
	for i, l := range lines {
		if l != "" || i == len(lines)-1 {
			kept = append(kept, l)
		}
	}
	return strings.Join(kept, "\n")
}

func kubeadmDefaults() []kubeadmDefault {
	const (
		health, lameduck = "    health", "    health {\n       lameduck 5s\n    }"
		ready, ttl       = "    ready", "       ttl 30"
		upstream         = "       upstream"
		proxy, forward   = "    proxy . /etc/resolv.conf", "    forward . /etc/resolv.conf"
		concurrent       = "    forward . /etc/resolv.conf {\n       max_concurrent 1000\n    }"
		cache            = "    cache 30"
		cacheDisable     = "    cache 30 {\n       disable success cluster.local\n       disable denial cluster.local\n    }"
		short, tail      = "    reload", "    loop\n    reload\n    loadbalance"
	)
	v113 := defaultBlock(health, "", upstream, "", proxy, cache, short)
	v12x := defaultBlock(health, "", upstream, "", proxy, cache, tail)
	v131 := defaultBlock(health, "", upstream, ttl, forward, cache, tail)
	v162 := defaultBlock(health, ready, "", ttl, forward, cache, tail)
	v165 := defaultBlock(lameduck, ready, "", ttl, forward, cache, tail)
	v170 := defaultBlock(lameduck, ready, "", ttl, concurrent, cache, tail)
	v132 := defaultBlock(lameduck, ready, "", ttl, concurrent, cacheDisable, tail)
	return []kubeadmDefault{
		{"1.11", "1.1.3", v113}, {"1.12", "1.2.2", v12x}, {"1.13", "1.2.6", v12x}, {"1.14", "1.3.1", v131},
		{"1.15", "1.3.1", v131}, {"1.16", "1.6.2", v162}, {"1.17", "1.6.5", v165}, {"1.18", "1.6.7", v165},
		{"1.19", "1.7.0", v170}, {"1.20", "1.7.0", v170}, {"1.21", "v1.8.0", v170}, {"1.22", "v1.8.4", v170},
		{"1.23", "v1.8.6", v170}, {"1.24", "v1.8.6", v170}, {"1.25", "v1.9.3", v170}, {"1.26", "v1.9.3", v170},
		{"1.27", "v1.10.1", v170}, {"1.28", "v1.10.1", v170}, {"1.29", "v1.11.1", v170}, {"1.30", "v1.11.3", v170},
		{"1.31", "v1.11.3", v170}, {"1.32", "v1.11.3", v132}, {"1.33", "v1.12.0", v132}, {"1.34", "v1.12.1", v132},
		{"1.35", "v1.13.1", v132}, {"1.36", "v1.14.2", v132}, {"1.37", "v1.14.6", v132}, {"1.38", "v1.15.0", v132},
	}
}

// Every default survives every way up, and no default since 1.19 is touched or talked about.
func TestKubeadmDefaultsOnEveryWayUp(t *testing.T) {
	t.Parallel()
	all := kubeadmDefaults()
	for i, from := range all {
		for _, to := range all[i:] {
			t.Run(from.kubernetes+" to "+to.kubernetes, func(t *testing.T) {
				t.Parallel()
				got := corefile.Assess(corefile.Request{From: from.coreDNS, To: to.coreDNS, Corefile: from.corefile})
				if got.Outcome == corefile.Refused {
					t.Fatalf("refused: %s", got.Reason)
				}
				if i >= 8 && (got.Outcome != corefile.Unchanged || len(got.Notices) > 0) {
					t.Errorf("outcome %s with notices %v, want unchanged without any", got.Outcome, got.Notices)
				}
				checkAssessment(t, corefile.Request{From: from.coreDNS, To: to.coreDNS, Corefile: from.corefile}, got)
			})
		}
	}
}

// What each old default becomes for the newest version is kept as a page to read.
func TestMigratedDefaults(t *testing.T) {
	t.Parallel()
	for _, d := range kubeadmDefaults()[:8] {
		t.Run(d.kubernetes, func(t *testing.T) {
			t.Parallel()
			got := corefile.Assess(corefile.Request{From: d.coreDNS, To: "v1.14.6", Corefile: d.corefile})
			golden(t, "default-"+d.kubernetes, got)
		})
	}
}

// golden compares a whole assessment with a file.
func golden(t *testing.T, name string, a corefile.Assessment) {
	t.Helper()
	var b strings.Builder
	b.WriteString("outcome: " + a.Outcome.String() + "\nreason: " + a.Reason + "\n")
	for _, n := range a.Notices {
		b.WriteString("notice: " + n.Severity.String() + " [" + n.Plugin + "] [" + n.Option + "] " + n.Message + "\n")
	}
	b.WriteString("---\n" + a.Corefile)
	file := filepath.Join("testdata", name+".golden")
	if *update {
		if err := os.WriteFile(file, []byte(b.String()), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatalf("%v: run go test -update", err)
	}
	if b.String() != string(want) {
		t.Errorf("%s differs:\n--- got\n%s\n--- want\n%s", file, b.String(), want)
	}
}

// checkAssessment holds what is true of every assessment.
func checkAssessment(t *testing.T, r corefile.Request, a corefile.Assessment) {
	t.Helper()
	if a.Reason == "" {
		t.Error("no reason given")
	}
	if (a.Outcome == corefile.Unchanged || a.Outcome == corefile.Refused) && a.Corefile != r.Corefile {
		t.Errorf("%s, but the text differs:\n%q\n%q", a.Outcome, r.Corefile, a.Corefile)
	}
	if a.Outcome != corefile.Migrated {
		return
	}
	if a.Corefile == r.Corefile {
		t.Error("migrated, but the text is the same")
	}
	if err := corefile.Lexes(a.Corefile); err != nil {
		t.Errorf("migrated text does not load: %v\n%s", err, a.Corefile)
	}
	again := corefile.Assess(corefile.Request{From: r.To, To: r.To, Corefile: a.Corefile, OtherKeys: r.OtherKeys})
	if again.Outcome != corefile.Unchanged || again.Corefile != a.Corefile || len(again.Notices) > 0 {
		t.Errorf("assessed again at %s: %s (%s)", r.To, again.Outcome, again.Reason)
	}
	// A second migration over the same way finds nothing left to do, so that a run that is repeated does no harm.
	twice := corefile.Assess(corefile.Request{From: r.From, To: r.To, Corefile: a.Corefile, OtherKeys: r.OtherKeys})
	if twice.Outcome == corefile.Migrated {
		t.Errorf("migrated a second time over the same way:\n%s\nto\n%s", a.Corefile, twice.Corefile)
	}
}
