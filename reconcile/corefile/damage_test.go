// SPDX-License-Identifier: Apache-2.0

package corefile_test

import (
	"testing"

	"github.com/theseus-gitops/theseus/reconcile/corefile"
)

// Everything that corefile-migration loses or breaks. Where no version on the way asks for a change, the library is not
// used and the text stays as it is, so that nothing can be lost; where one asks (1.6.7 to 1.7.0: max_concurrent is added),
// the loss is a reason to refuse. A text that CoreDNS itself could not load is refused on every way.
func TestWhatTheLibraryDamages(t *testing.T) {
	t.Parallel()
	const quiet, migrating = false, true
	fwd := "forward . 10.0.0.2"
	third := "x {\n        option {\n            deeper value\n        }\n    }"
	for _, c := range []struct {
		name   string
		in     string
		way    bool
		want   corefile.Outcome
		reason string
	}{
		{"comments and own spacing", "# a\r\n.:53 {\r\n\terrors # b\r\n\r\n  " + fwd + "\r\n}\r\n", quiet, corefile.Unchanged, ""},
		{"comments and own spacing", "# a\r\n.:53 {\r\n\terrors # b\r\n\r\n  " + fwd + "\r\n}\r\n", migrating, corefile.Migrated, "max_concurrent"},
		{"a quoted number sign", full(`log . "#fmt"`, fwd), quiet, corefile.Unchanged, ""},
		{"a quoted number sign", full(`log . "#fmt"`, fwd), migrating, corefile.Refused, "which no notice explains"},
		{"a quoted empty argument", full(`log . "" "{remote}"`, fwd), quiet, corefile.Unchanged, ""},
		{"a quoted empty argument", full(`log . "" "{remote}"`, fwd), migrating, corefile.Refused, "which no notice explains"},
		{"an empty server block", ".:53 {\n}\n" + full(fwd), quiet, corefile.Unchanged, ""},
		{"an empty server block", "a:53 {\n}\n" + full(fwd), migrating, corefile.Refused, "1 of 2 server blocks are lost"},
		{"a third level", full(third, fwd), quiet, corefile.Unchanged, ""},
		{"a third level", full(third, fwd), migrating, corefile.Refused, "nested in an option"},
		{"a missing closing brace", ".:53 {\n    errors\n", quiet, corefile.Refused, "the { in line 1 is never closed"},
		{"a missing closing brace", ".:53 {\n    errors\n", migrating, corefile.Refused, "the { in line 1 is never closed"},
		{"a leading stray brace", "}\n" + full(fwd), quiet, corefile.Refused, "line 1: unexpected }"},
		{"a leading stray brace", "}\n" + full(fwd), migrating, corefile.Refused, "line 1: unexpected }"},
		{"a block without an address", "{\n    errors\n}\n", quiet, corefile.Refused, "needs an address"},
		{"a block without an address", "{\n    errors\n}\n", migrating, corefile.Refused, "needs an address"},
		{"a line continuation, which the lexer does not know", full("forward . \\\n    8.8.8.8"), quiet, corefile.Unchanged, ""},
		{"a line continuation, which the lexer does not know", full("forward . \\\n    8.8.8.8"), migrating, corefile.Migrated, "max_concurrent"},
		{"a quoted expression without blanks", full(`log "^foo[.]$"`, fwd), migrating, corefile.Migrated, ""},
		{"quoted text with blanks and quotes", full(`log . "a \"b\" c"`, fwd), migrating, corefile.Migrated, ""},
		{"variables and placeholders", full("log {$ENV} {%ENV%} {args[0]}", fwd), migrating, corefile.Migrated, ""},
		{"a snippet", "(up) {\n    loop\n    " + fwd + "\n}\n.:53 {\n    import up\n}\n", migrating, corefile.Migrated, ""},
		{"addresses over several lines", "a:53,\nb:53 {\n    loop\n    " + fwd + "\n}\n", quiet, corefile.Unchanged, ""},
		{"addresses over several lines", "a:53,\nb:53 {\n    loop\n    " + fwd + "\n}\n", migrating, corefile.Migrated, ""},
		{"several addresses on a line", "a:53, b:53 {\n    loop\n    " + fwd + "\n}\n", migrating, corefile.Migrated, ""},
		{"an import between blocks", "import x\n" + full(fwd), migrating, corefile.Migrated, ""},
		{"an unknown plugin", full("mine a {\n        b c\n    }", fwd), migrating, corefile.Migrated, ""},
		{"one server block without braces", ".:53\nerrors\n" + fwd + "\n", quiet, corefile.Unchanged, ""},
		{"one server block without braces", ".:53\nerrors\n" + fwd + "\n", migrating, corefile.Refused, "without braces"},
		{"a block on one line", full("x { option }", fwd), quiet, corefile.Unchanged, ""},
		{"a block on one line", full("x { option }", fwd), migrating, corefile.Refused, "on one line"},
		{"an empty plugin block", full("log {\n    }", fwd), migrating, corefile.Migrated, ""},
		{"not text", full("log \xff", fwd), quiet, corefile.Refused, "not UTF-8"},
		{"nothing at all", "", migrating, corefile.Unchanged, ""},
		{"only comments", "# nothing\n", migrating, corefile.Unchanged, ""},
		{"hostile nesting", ".:53 {\n" + repeat("x {\n", 1000), quiet, corefile.Refused, "nested more than"},
	} {
		way, from, to := "untouched", "v1.12.1", "v1.13.1"
		if c.way == migrating {
			way, from, to = "migrating", "1.6.7", "1.7.0"
		}
		run(t, []row{{name: c.name + ", " + way, from: from, to: to, in: c.in, want: c.want, reason: c.reason}})
	}
}

func repeat(text string, n int) string {
	out := ""
	for range n {
		out += text
	}
	return out
}

// The way over 1.5.0, where proxy becomes forward and stub domains get server blocks of their own.
func TestProxyAndStubDomains(t *testing.T) {
	t.Parallel()
	run(t, []row{
		{name: "two root proxies", from: "1.3.1", to: "1.5.0", in: block("proxy . 10.0.0.2", "proxy . 10.0.0.3"), want: corefile.Refused, reason: "2 forward plugins"},
		{
			name: "a stub outside the root block", from: "1.4.0", to: "1.5.0", in: "a.example:53 {\n    forward b.example 10.0.0.3\n    ready\n    loop\n}\n" + block("kubernetes", "forward . 10.0.0.2", "loop"),
			want: corefile.Refused, reason: "non-default domain/port server block",
		},
		{
			name: "several stubs, in any order", from: "1.3.1", to: "1.5.0",
			in:   block("errors", "proxy a.example 10.0.0.3", "proxy b.example 10.0.0.4", "proxy c.example 10.0.0.5", "proxy . 10.0.0.2", "loop", "cache 30"),
			want: corefile.Migrated, contains: []string{"a.example {\n    forward . 10.0.0.3\n", "b.example {\n    forward . 10.0.0.4\n", "c.example {\n    forward . 10.0.0.5\n", "forward . 10.0.0.2"},
			containsNo: []string{"proxy"},
		},
		{name: "the library cuts beyond the end", from: "1.3.1", to: "1.5.0", in: block("loop", "proxy a.example 10.0.0.3", "proxy b.example 10.0.0.4"), want: corefile.Refused, reason: "panicked"},
		{
			name: "a stub that has a server block already", from: "1.3.1", to: "1.5.0", in: block("proxy a.example 10.0.0.3", "proxy . 10.0.0.2", "loop") + "a.example:53 {\n    file a.db\n}\n",
			want: corefile.Refused, reason: "zone a.example. on port 53 would be served by 2 server blocks",
		},
		{
			name: "options of proxy", from: "1.3.1", to: "1.5.0",
			in:   block("proxy . 10.0.0.2 {\n        policy least_conn\n        fail_timeout 5s\n        health_check /x\n        except a.example\n    }", "loop"),
			want: corefile.Migrated, contains: []string{"force_tcp", "except a.example"}, containsNo: []string{"fail_timeout", "health_check"},
		},
		{name: "forced TCP", from: "1.3.1", to: "1.5.0", in: block("proxy . 10.0.0.2 {\n        protocol force_tcp x\n    }", "loop"), want: corefile.Migrated, contains: []string{"force_tcp"}},
		{
			name: "the transfer option becomes a plugin", from: "1.7.1", to: "v1.8.0", in: full(concurrent, "kubernetes cluster.local {\n        transfer to 10.0.0.9 10.0.0.10\n    }"),
			want: corefile.Migrated, contains: []string{"transfer cluster.local {\n        to 10.0.0.9 10.0.0.10\n    }"},
		},
		{
			name: "two transfer options, of which the library keeps the last", from: "1.7.1", to: "v1.8.0",
			in:   full(concurrent, "kubernetes cluster.local {\n        transfer to 10.0.0.9\n        transfer to 10.0.0.10\n    }"),
			want: corefile.Refused, reason: "transfers to 10.0.0.9 are lost",
		},
		{
			name: "a transfer option where the library expects a zone", from: "1.7.1", to: "v1.8.0", in: full(concurrent, "kubernetes {\n        transfer to 10.0.0.9\n    }"),
			want: corefile.Refused, reason: "panicked",
		},
		{name: "extra endpoints wait for another reason", from: "1.3.0", to: "1.3.1", in: block("kubernetes cluster.local {\n        endpoint a b\n    }"), want: corefile.Unchanged, notices: []string{"deprecated kubernetes endpoint"}},
		{name: "extra endpoints stay when nothing else changes", from: "v1.8.3", to: "v1.15.0", in: block("kubernetes cluster.local {\n        endpoint a b\n    }"), want: corefile.Unchanged, notices: []string{"ignored kubernetes endpoint"}},
		{
			name: "extra endpoints go with another change", from: "1.6.7", to: "1.7.0", in: full("forward . 10.0.0.2", "kubernetes cluster.local {\n        endpoint a b\n    }"),
			want: corefile.Migrated, contains: []string{"endpoint a\n"},
		},
	})
}
