// SPDX-License-Identifier: Apache-2.0

package corefile_test

import (
	"strings"
	"testing"

	"github.com/theseus-gitops/theseus/reconcile/corefile"
	"github.com/theseus-gitops/theseus/reconcile/skew"
)

// The check does not depend on the mistakes that today's library makes: each kind of unexplained difference is refused.
func TestVerifySeesEachKindOfDamage(t *testing.T) {
	t.Parallel()
	const before = ".:53 {\n    errors\n    kubernetes cluster.local {\n        pods insecure\n        upstream\n    }\n    forward . 10.0.0.2\n}\n"
	notices := []corefile.Notice{
		{Plugin: "kubernetes", Option: "upstream", Severity: corefile.SeverityRemoved},
		{Plugin: "forward", Option: "max_concurrent", Severity: corefile.SeverityNewDefault},
		{Plugin: "loop", Severity: corefile.SeverityNewDefault},
		{Plugin: "ready", Severity: corefile.SeverityNewDefault},
	}
	good := strings.NewReplacer("        upstream\n", "", "10.0.0.2", "10.0.0.2 {\n        max_concurrent 1000\n    }\n    loop").Replace(before)
	told, err := corefile.Verify(skew.Version{Major: 1, Minor: 6, Patch: 9}, skew.Version{Major: 1, Minor: 7}, notices, before, good)
	if err != nil || len(told) != 3 {
		t.Fatalf("a good migration: told %v, %v; want the three notices that came true, without ready", told, err)
	}
	but := func(part, instead string) string { return strings.Replace(good, part, instead, 1) }
	for _, c := range []struct{ name, after, reason string }{
		{"a plugin is lost", but("    errors\n", ""), `"errors"`},
		{"the last plugin is lost", but("    forward . 10.0.0.2 {\n        max_concurrent 1000\n    }\n    loop\n", ""), `"forward . 10.0.0.2", is lost`},
		{"a plugin is added", but("    loop\n", "    loop\n    log\n"), `"log" was added`},
		{"an argument changes", but("10.0.0.2", "10.0.0.3"), "which no notice explains"},
		{"plugins change their order", but("    errors\n", "    loop\n    errors\n"), "which no notice explains"},
		{"an option without notice is lost", but("        pods insecure\n", ""), "which no notice explains"},
		{"an option without notice is added", but("max_concurrent 1000\n", "max_concurrent 1000\n        max_fails 1\n"), "which no notice explains"},
		{"an option without notice changes", but("pods insecure", "pods verified"), "which no notice explains"},
		{"a removed option stays", but("        pods insecure\n", "        pods insecure\n        upstream\n"), "kubernetes upstream is removed, and still there"},
		{"a default comes twice", but("    loop\n", "    loop\n    loop\n"), "2 loop plugins"},
		{"the address changes", but(".:53 {", ".:54 {"), `its address became ".:54"`},
		{"the braces are lost", strings.TrimSuffix(but(" {\n    errors", "\n    errors"), "}\n"), "its braces are lost"},
		{"a block is lost", "", "1 of 1 server blocks are lost"},
		{"a block appears", good + "a.example {\n    forward . 10.1.1.1\n    loop\n    errors\n    cache 30\n}\n", `"a.example" appeared`},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			_, err := corefile.Verify(skew.Version{Major: 1, Minor: 6, Patch: 9}, skew.Version{Major: 1, Minor: 7}, notices, before, c.after)
			if err == nil || !strings.Contains(err.Error(), c.reason) {
				t.Errorf("error %v, want one with %q; after:\n%s", err, c.reason, c.after)
			}
		})
	}
}

// A stub domain may leave the root block only into a server block of its own.
func TestVerifyStubDomains(t *testing.T) {
	t.Parallel()
	from, to := skew.Version{Major: 1, Minor: 4}, skew.Version{Major: 1, Minor: 5}
	const root = ".:53 {\n    forward . 10.0.0.2\n"
	const before = root + "    forward a.example 10.0.0.3\n}\n"
	const stub = "a.example {\n    forward . 10.0.0.3\n    loop\n    errors\n    cache 30\n}\n"
	for _, c := range []struct{ name, after, reason string }{
		{"moved", root + "}\n" + stub, ""},
		{"not moved", before, ""},
		{"lost", root + "}\n", `"forward a.example 10.0.0.3", is lost`},
		{"moved twice", root + "}\n" + stub + stub, "appeared"},
		{"moved to another upstream", root + "}\n" + strings.Replace(stub, "10.0.0.3", "10.0.0.4", 1), "appeared"},
		{"moved to another zone", root + "}\n" + strings.Replace(stub, "a.example", "b.example", 1), "appeared"},
		{"moved without its cache", root + "}\n" + strings.Replace(stub, "    cache 30\n", "", 1), "appeared"},
		{"moved with something more", root + "}\n" + strings.Replace(stub, "cache 30\n", "cache 30\n    log\n", 1), "appeared"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			_, err := corefile.Verify(from, to, nil, before, c.after)
			if (err == nil) != (c.reason == "") || err != nil && !strings.Contains(err.Error(), c.reason) {
				t.Errorf("error %v, want %q", err, c.reason)
			}
		})
	}
	if _, err := corefile.Verify(to, skew.Version{Major: 1, Minor: 5, Patch: 1}, nil, before, root+"}\n"+stub); err == nil {
		t.Error("a move after 1.5.0 is accepted")
	}
}

func TestStable(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]bool{".:53 {\n    errors\n}\n": true, ".:53 {\n  errors\n}\n": false, ".:53 {\n    log \"#x\"\n}\n": false} {
		if got, err := corefile.Stable(text); err != nil || got != want {
			t.Errorf("Stable(%q) = %t, %v; want %t", text, got, err, want)
		}
	}
}
