// SPDX-License-Identifier: Apache-2.0

package corefile_test

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/theseus-gitops/theseus/reconcile/corefile"
)

// versionPairs are ways that cross each action of the library, and ways without any.
func versionPairs() [][2]string {
	return [][2]string{
		{"1.1.3", "v1.14.6"}, {"1.2.0", "1.2.1"}, {"1.3.1", "1.5.0"}, {"1.4.0", "1.5.0"}, {"1.6.4", "1.6.5"}, {"1.6.7", "1.7.0"},
		{"1.7.1", "v1.8.0"}, {"1.6.7", "v1.15.0"}, {"v1.8.3", "v1.15.0"}, {"v1.12.1", "v1.13.1"}, {"v1.11.2", "v1.99.0"}, {"1.6.8", "1.7.0"},
		{"v1.14.6", "v1.14.6-x"}, {"v1.14.6", "v1.14.2"},
	}
}

// No text makes Assess panic or break one of its promises.
func FuzzAssess(f *testing.F) {
	for i, d := range kubeadmDefaults() {
		f.Add(uint(i), d.corefile, "forward . 10.0.0.2\n")
	}
	for i, text := range []string{
		full(`log . "#fmt"`, "forward . 10.0.0.2"), "{\n errors\n}\n", "}\n", ".:53 {\n}\n", "(s) {\n proxy . x\n}\n.:53 {\n import s\n import k\n}\n",
		block("proxy a.example 10.0.0.3", "proxy . 10.0.0.2", "loop"), block("kubernetes {\n transfer to *\n}"), "import k\n", "a,\nb {\n \"\"\n}\n", "\"", "\\", "\ufeff.:53",
		block("kubernetes cluster.local {\n upstream\n resyncperiod 5m\n endpoint a b\n import k\n}", "federation a"), "a.example:53 {\n forward b.example 10.0.0.3\n}\n",
	} {
		f.Add(uint(i), text, text)
	}
	f.Fuzz(func(t *testing.T, way uint, text, key string) {
		pairs := versionPairs()
		pair := pairs[way%uint(len(pairs))]
		r := corefile.Request{From: pair[0], To: pair[1], Corefile: text, OtherKeys: map[string]string{"k": key}}
		got := corefile.Assess(r)
		checkAssessment(t, r, got)
		_, errZones := corefile.Zones(text)
		_, errNames := corefile.DirectiveNames(text)
		if (errZones == nil) != (errNames == nil) {
			t.Errorf("one reads the text, the other does not: %v, %v", errZones, errNames)
		}
	})
}

// genCorefile draws Corefiles of the kind people write.
func genCorefile() *rapid.Generator[string] {
	plugin := rapid.Custom(func(t *rapid.T) string {
		return rapid.SampledFrom([]string{
			"errors", "health", "health {\n        lameduck 9s\n    }", "ready", "log", "prometheus :9153", "cache 30", "loop", "reload", "loadbalance", "# a comment",
			"kubernetes cluster.local in-addr.arpa {\n        pods insecure\n        upstream\n        endpoint a b\n    }", "kubernetes cluster.local {\n        transfer to *\n    }",
			"forward . 10.0.0.2", "forward . 10.0.0.2 {\n        max_concurrent 5\n    }", "proxy . 10.0.0.2 {\n        policy random\n    }", "proxy a.example 10.0.0.3",
			`template IN A {` + "\n" + `        answer "{{ .Name }} 60 IN A 10.0.0.1"` + "\n    }", `log . "#x"`, "hosts {\n        10.0.0.1 a\n        fallthrough\n    }",
		}).Draw(t, "plugin")
	})
	return rapid.Custom(func(t *rapid.T) string {
		var b strings.Builder
		zones := rapid.SliceOfNDistinct(rapid.SampledFrom([]string{".:53", "a.example:53", "b.example", "cluster.local:1053"}), 1, 3, rapid.ID[string]).Draw(t, "zones")
		for _, zone := range zones {
			b.WriteString(zone + " {\n")
			for _, p := range rapid.SliceOfN(plugin, 0, 8).Draw(t, "plugins") {
				b.WriteString("    " + p + "\n")
			}
			b.WriteString("}\n")
		}
		return b.String()
	})
}

// Zones that were served are served afterwards, and a way cut in two ends where the whole way does.
func TestMigrationProperties(t *testing.T) {
	t.Parallel()
	versions := []string{"1.1.3", "1.2.6", "1.3.1", "1.4.0", "1.5.0", "1.6.5", "1.6.7", "1.7.0", "v1.8.0", "v1.8.4", "v1.12.1", "v1.15.0"}
	rapid.Check(t, func(rt *rapid.T) {
		text := genCorefile().Draw(rt, "corefile")
		i := rapid.IntRange(0, len(versions)-3).Draw(rt, "from")
		j := rapid.IntRange(i+1, len(versions)-2).Draw(rt, "middle")
		k := rapid.IntRange(j+1, len(versions)-1).Draw(rt, "to")
		whole := corefile.Request{From: versions[i], To: versions[k], Corefile: text}
		got := corefile.Assess(whole)
		if got.Outcome != corefile.Migrated {
			if got.Corefile != text {
				rt.Fatalf("%s, but the text differs", got.Outcome)
			}
			return
		}
		served(rt, text, got.Corefile)
		half := corefile.Assess(corefile.Request{From: versions[i], To: versions[j], Corefile: text})
		end := corefile.Assess(corefile.Request{From: versions[j], To: versions[k], Corefile: half.Corefile})
		if end.Corefile != got.Corefile {
			rt.Fatalf("over %s:\n%s\ndirectly:\n%s", versions[j], end.Corefile, got.Corefile)
		}
	})
}

func served(t *rapid.T, before, after string) {
	old, err := corefile.Zones(before)
	if err != nil {
		t.Fatal(err)
	}
	now, err := corefile.Zones(after)
	if err != nil {
		t.Fatal(err)
	}
	have := map[corefile.Zone]bool{}
	for _, z := range now {
		have[z] = true
	}
	for _, z := range old {
		if !have[z] {
			t.Fatalf("zone %v is no longer served:\n%s", z, after)
		}
	}
}
