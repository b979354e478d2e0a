// SPDX-License-Identifier: Apache-2.0

package corefile_test

import (
	"errors"
	"slices"
	"testing"

	"github.com/theseus-gitops/theseus/reconcile/corefile"
)

func TestZones(t *testing.T) {
	t.Parallel()
	type zones = []corefile.Zone
	reverse := zones{{".", 53, false}, {"cluster.local.", 53, true}, {"in-addr.arpa.", 53, true}, {"ip6.arpa.", 53, true}}
	for _, c := range []struct {
		name, in string
		want     zones
	}{
		{"the default of kubeadm", kubeadmDefaults()[27].corefile, reverse},
		{"a stub zone on its own port", block("errors") + "Corp.Example:5353 {\n forward . 10.1.1.1\n}\n", zones{{".", 53, false}, {"corp.example.", 5353, false}}},
		{"several addresses", "a.example, b.example.:54 {\n errors\n}\n", zones{{"a.example.", 53, false}, {"b.example.", 54, false}}},
		{"kubernetes without zones serves its block's", "cluster.local:53 {\n kubernetes\n}\n", zones{{"cluster.local.", 53, true}}},
		{"kubernetes named by the block too", "cluster.local {\n kubernetes cluster.local\n}\n", zones{{"cluster.local.", 53, true}}},
		{"kubernetes in a snippet", "(k) {\n kubernetes cluster.local\n}\n.:53 {\n import k\n}\n", zones{{".", 53, false}, {"cluster.local.", 53, true}}},
		{"other transports are left out", "tls://.:853 {\n forward . 10.0.0.2\n}\ndns://x.example:54 {\n errors\n}\n", zones{{"x.example.", 54, false}}},
		{"variables are left out", "{$ZONE}:53, y.example {\n errors\n}\n", zones{{"y.example.", 53, false}}},
		{"a bare port", ":1053 {\n errors\n}\n", zones{{".", 1053, false}}},
		{"IPv4 networks", "10.0.0.0/8, 192.168.4.0/22:54 {\n errors\n}\n", zones{{"10.in-addr.arpa.", 53, false}, {"4.168.192.in-addr.arpa.", 54, false}}},
		{"an IPv6 network", "2001:db8::/32 {\n errors\n}\n", zones{{"8.b.d.0.1.0.0.2.ip6.arpa.", 53, false}}},
		{"a port that is none", "a.example:99999, b.example:x, c.example:0 {\n errors\n}\n", nil},
		{"an import between blocks", "import x\n" + block("errors"), zones{{".", 53, false}}},
		{"without braces", "z.example:53\nerrors\n", zones{{"z.example.", 53, false}}},
		{"nothing", "", nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			got, err := corefile.Zones(c.in)
			if err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("got  %v\nwant %v", got, c.want)
			}
		})
	}
}

func TestDirectiveNames(t *testing.T) {
	t.Parallel()
	got, err := corefile.DirectiveNames("import y\n(s) {\n log\n}\n" + block("errors", "import s", "cache 30", "errors"))
	if want := []string{"cache", "errors", "log"}; err != nil || !slices.Equal(got, want) {
		t.Errorf("got %v, %v; want %v", got, err, want)
	}
}

// What CoreDNS's own parser refuses is refused here, with the line.
func TestSyntaxErrors(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, in string
		line     int
	}{
		{"stray brace", ".:53 {\n errors\n}\n}\n", 4},
		{"brace on the plugin's line", ".:53 {\n errors }\n", 2},
		{"no address", "\n{\n errors\n}\n", 2},
		{"no address after a comma", "a, {\n errors\n}\n", 1},
		{"end after a comma", "a,\n", 0},
		{"never closed", ".:53 {\n errors\n", 0},
		{"never closed inside", ".:53 {\n errors {\n}\n", 0},
		{"brace without a plugin", ".:53 {\n {\n }\n}\n", 2},
		{"text after a plugin's block", ".:53 {\n log {\n } x\n}\n", 3},
		{"import without a file", "import\n.:53 {\n}\n", 1},
		{"import of two files", "import a b\n", 1},
		{"snippet without braces", "(s)\nerrors\n", 1},
		{"stray brace without braces", ".:53\nerrors\n}\n", 3},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			_, err := corefile.Zones(c.in)
			var syntax *corefile.SyntaxError
			if !errors.As(err, &syntax) || syntax.Line != c.line {
				t.Fatalf("error %v, want a syntax error in line %d", err, c.line)
			}
			got := corefile.Assess(corefile.Request{From: "v1.12.1", To: "v1.13.1", Corefile: c.in})
			if got.Outcome != corefile.Refused || got.Err != nil {
				t.Errorf("outcome %s, error %v: want refused without an error of its own", got.Outcome, got.Err)
			}
		})
	}
}
