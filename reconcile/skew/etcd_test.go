// SPDX-License-Identifier: Apache-2.0

package skew_test

import (
	"strings"
	"testing"

	"github.com/theseus-gitops/theseus/reconcile/skew"
)

func TestEtcdBase(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ from, to, want string }{
		{"3.5.26", "3.6.16", ""},
		{"3.5.25", "3.6.4", "3.5.26 or later"},
		{"3.5.16", "3.6.16", "3.5.26 or later"},
		{"3.6.11", "3.7.0", ""},
		{"3.6.10", "3.7.3", "3.6.11 or later"},
		{"3.5.35", "3.7.3", "from 3.5.35 to 3.6 first"},
		{"3.6.8", "3.6.16", ""},
		{"3.7.3", "3.6.16", ""}, // the way back of a hop: members of both minors are there
		{"3.6.16", "4.0.0", "one minor at a time"},
	} {
		from, err := skew.ParseTag(c.from)
		if err != nil {
			t.Fatal(err)
		}
		to, err := skew.ParseTag(c.to)
		if err != nil {
			t.Fatal(err)
		}
		if got := skew.EtcdBase(from, to); (got == "") != (c.want == "") || !strings.Contains(got, c.want) {
			t.Errorf("%s → %s: %q, want %q", c.from, c.to, got, c.want)
		}
	}
}

func TestKubeadmEtcdIsPerPatch(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{"v1.34.0": "3.6.4-0", "v1.34.4": "3.6.5-0", "v1.37.2": "3.7.0-0", "v1.37.9": "", "v1.30.14": ""} {
		v, err := skew.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		if got := skew.KubeadmEtcd(v); got != want {
			t.Errorf("%s: %q, want %q", text, got, want)
		}
	}
}
