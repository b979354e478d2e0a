// SPDX-License-Identifier: Apache-2.0

package corefile_test

import (
	"testing"

	"github.com/theseus-gitops/theseus/reconcile/corefile"
)

// Directives that CoreDNS once had: refused only when the source had it and the target has not.
func TestRemovedDirectives(t *testing.T) {
	t.Parallel()
	run(t, []row{
		{name: "federation across 1.7.0", from: "1.6.9", to: "1.7.1", in: full(concurrent, "federation cluster.local {\n a b.example\n}"), want: corefile.Refused, reason: `no plugin "federation" since 1.7.0`},
		{name: "federation before", from: "1.6.5", to: "1.6.9", in: full(concurrent, "federation cluster.local"), want: corefile.Unchanged},
		{name: "federation after, an own build", from: "1.7.0", to: "1.8.0", in: full(concurrent, "federation cluster.local"), want: corefile.Unchanged, notices: []string{"warning", "unsupported federation"}},
		{
			name: "federation in an imported key", from: "1.6.9", to: "1.7.1", in: full(concurrent, "import fed"), keys: map[string]string{"fed": "errors\nfederation cluster.local\n"},
			want: corefile.Refused, reason: "ConfigMap key fed (imported in line 11), line 2: CoreDNS has no plugin \"federation\"",
		},
		{name: "proxy where braces hide it from the library", from: "1.3.1", to: "1.5.0", in: ".:53\nproxy . 10.0.0.2\n", want: corefile.Refused, reason: "braces"},
		{name: "an own plugin", from: "v1.8.4", to: "v1.14.6", in: full("companydns a b"), want: corefile.Unchanged, notices: []string{"unsupported companydns"}},
	})
}

func TestImports(t *testing.T) {
	t.Parallel()
	run(t, []row{
		{
			name: "keys are listed", from: "v1.12.1", to: "v1.13.1", in: full("import custom/*.override", "import *.server", "import /etc/coredns/b.server"),
			keys: map[string]string{"a.server": "log\n", "b.server": "log\n", "c.txt": ""}, want: corefile.Unchanged, notices: []string{"warning", "warning", "warning"},
		},
		{
			name: "between blocks, after 1.8.3", from: "v1.12.1", to: "v1.13.1", in: full(concurrent) + "import extra\n", keys: map[string]string{"extra": "a.example {\n forward . 10.1.1.1\n}\n"},
			want: corefile.Unchanged, notices: []string{"warning"},
		},
		{
			name: "a key in a block needs a change", from: "1.6.7", to: "1.7.0", in: full("import up"), keys: map[string]string{"up": "forward . 10.0.0.2\n"},
			want: corefile.Refused, reason: `ConfigMap key up (imported in line 8): Option "max_concurrent"`,
		},
		{
			name: "whole blocks in a key need a change", from: "1.4.0", to: "1.5.0", in: block("forward . 10.0.0.2", "loop") + "import k8s\n",
			keys: map[string]string{"k8s": "cluster.local:53 {\n kubernetes\n}\n"}, want: corefile.Refused, reason: `Plugin "ready"`,
		},
		{
			name: "whole blocks in a key need nothing", from: "1.4.0", to: "1.5.0", in: block("forward . 10.0.0.2", "loop") + "import x\n",
			keys: map[string]string{"x": "a.example:53 {\n file a.db\n}\n"}, want: corefile.Unchanged, notices: []string{"warning"},
		},
		{
			name: "options in a key", from: "1.6.9", to: "1.7.0", in: full(concurrent, "kubernetes cluster.local {\n        import opts\n    }"), keys: map[string]string{"opts": "upstream\n"},
			want: corefile.Refused, reason: "removed in 1.7.0",
		},
		{
			name: "a key imports a key", from: "1.6.9", to: "1.7.0", in: full(concurrent, "import one"), keys: map[string]string{"one": "import two\n", "two": "federation x\n"},
			want: corefile.Refused, reason: "ConfigMap key two (imported in ConfigMap key one, line 1)",
		},
		{name: "keys import each other", from: "v1.12.1", to: "v1.13.1", in: full("import one"), keys: map[string]string{"one": "import two\n", "two": "import one\n"}, want: corefile.Unchanged},
		{name: "a key does not load", from: "v1.12.1", to: "v1.13.1", in: full("import one"), keys: map[string]string{"one": "log {\n"}, want: corefile.Refused, reason: "never closed"},
		{name: "a snippet is no import of a file", from: "v1.12.1", to: "v1.13.1", in: "(common) {\n    errors\n}\n.:53 {\n    import common\n}\n", want: corefile.Unchanged, notices: []string{}},
		{
			name: "an import beside a plugin that changes", from: "1.6.7", to: "1.7.0", in: full("forward . 10.0.0.2", "import loops"), keys: map[string]string{"loops": "log\n"},
			want: corefile.Migrated, contains: []string{"import loops", "max_concurrent 1000"},
		},
		{
			name: "loop would come twice through an import", from: "1.2.0", to: "1.2.6", in: block("proxy . 10.0.0.2", "import loops"), keys: map[string]string{"loops": "loop\n"},
			want: corefile.Refused, reason: "2 loop plugins, imports included",
		},
		{
			name: "loop would come twice through a snippet", from: "1.2.0", to: "1.2.6", in: "(s) {\n    loop\n}\n" + block("proxy . 10.0.0.2", "import s"),
			want: corefile.Refused, reason: "2 loop plugins, imports included",
		},
		{name: "a snippet imports itself", from: "1.6.7", to: "1.7.0", in: "(s) {\n    log\n    import s\n}\n" + full("forward . 10.0.0.2", "import s"), want: corefile.Migrated},
		{name: "a plugin in a variable is named", from: "v1.12.1", to: "v1.13.1", in: full("{$PLUGIN} x"), want: corefile.Unchanged, notices: []string{"warning", "unsupported {$PLUGIN}"}},
	})
}
