// SPDX-License-Identifier: Apache-2.0

package skew_test

import (
	"errors"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/theseus-gitops/theseus/reconcile/skew"
)

func TestParse(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]skew.Version{
		"v1.37.2":            {Major: 1, Minor: 37, Patch: 2},
		"v0.0.0":             {},
		"v1.38.0-beta.0":     {Major: 1, Minor: 38, Pre: "beta.0"},
		"v1.2.3-x-y.0.a0":    {Major: 1, Minor: 2, Patch: 3, Pre: "x-y.0.a0"},
		"v10.200.3000-rc.10": {Major: 10, Minor: 200, Patch: 3000, Pre: "rc.10"},
	} {
		got, err := skew.Parse(text)
		if err != nil || got != want {
			t.Errorf("Parse(%q) = %v, %v; want %v", text, got, err, want)
		}
		if got.String() != text {
			t.Errorf("Parse(%q).String() = %q", text, got)
		}
	}
	for _, text := range []string{
		"", "v", "1.37.2", "v1.37", "v1", "v1.37.2.1", "V1.37.2", "v1.37.2 ", " v1.37.2", "v01.37.2", "v1.037.2", "v1.37.-2", "v+1.37.2", "v1..2",
		"v1.37.2-", "v1.37.2-a..b", "v1.37.2-01", "v1.37.2-a_b", "v1.37.2+build", "v1.37.2_x", "vv1.37.2", "v1.37.x", "latest", "v1.37.99999999999999999999", "v1.٣.2",
	} {
		var syntax *skew.SyntaxError
		if got, err := skew.Parse(text); !errors.As(err, &syntax) || syntax.Text != text {
			t.Errorf("Parse(%q) = %v, %v; want a SyntaxError", text, got, err)
		}
	}
}

// Tags of real images and those that Cluster API's tests use.
func TestParseTag(t *testing.T) {
	t.Parallel()
	for tag, want := range map[string]skew.Version{
		"1.6.2":                {Major: 1, Minor: 6, Patch: 2},
		"v1.14.6":              {Major: 1, Minor: 14, Patch: 6},
		"v1.6.2-100":           {Major: 1, Minor: 6, Patch: 2, Pre: "100"},
		"1.7.2-foobar.1":       {Major: 1, Minor: 7, Patch: 2, Pre: "foobar.1"},
		"v1.8.6_vmware.1":      {Major: 1, Minor: 8, Patch: 6},
		"v1.8.6_vmware.1_b2":   {Major: 1, Minor: 8, Patch: 6}, // Cluster API turns both underscores into plus signs and fails
		"v1.8.6__x":            {Major: 1, Minor: 8, Patch: 6},
		"v1.8.6-rc.1_x":        {Major: 1, Minor: 8, Patch: 6, Pre: "rc.1"},
		"1.11.1-eksbuild.4":    {Major: 1, Minor: 11, Patch: 1, Pre: "eksbuild.4"},
		"3.7.3-0":              {Major: 3, Minor: 7, Patch: 3, Pre: "0"},
		"v1.34.2-gke.01":       {Major: 1, Minor: 34, Patch: 2, Pre: "gke.01"},
		"3.10":                 {Major: 3, Minor: 10},
		"v99.99.99":            {Major: 99, Minor: 99, Patch: 99},
		"v0.20.0_validBuild-1": {Minor: 20},
	} {
		if got, err := skew.ParseTag(tag); err != nil || got != want {
			t.Errorf("ParseTag(%q) = %v, %v; want %v", tag, got, err, want)
		}
	}
	for _, tag := range []string{
		"", "v", "foobar", "latest", "v1X6.2", "v1X6.2-foobar.1", "1-7", "1.8-7", "1.8_x", "7", "20240102", "v0.20.0+invalidBuild1", "1.6.2-", "1.6.2_", "1.6.2-_x",
		"1.6.2.3", "1.6.", ".6.2", "-1.6.2", "1.6.2@sha256", "1.6.2 ", "01.6.2", strings.Repeat("1", 19) + "." + strings.Repeat("9", 20) + ".0", "1.6.2-" + strings.Repeat("x", 130),
	} {
		var syntax *skew.SyntaxError
		if got, err := skew.ParseTag(tag); !errors.As(err, &syntax) || syntax.Text != tag {
			t.Errorf("ParseTag(%q) = %v, %v; want a SyntaxError", tag, got, err)
		}
	}
}

// The order of the example in semver.org rule 11, and what vendors do.
func TestCompareIsInOrder(t *testing.T) {
	t.Parallel()
	ascending := []string{
		"0.9.9", "1.0.0-alpha", "1.0.0-alpha.1", "1.0.0-alpha.beta", "1.0.0-beta", "1.0.0-beta.2", "1.0.0-beta.11", "1.0.0-rc.1", "1.0.0",
		"1.0.1-02", "1.0.1-10", "1.0.1", "1.2.0", "1.10.0", "2.0.0",
	}
	for i, a := range ascending {
		for j, b := range ascending {
			want := min(max(i-j, -1), 1)
			if got := tag(t, a).Compare(tag(t, b)); got != want {
				t.Errorf("%s compared with %s: %d, want %d", a, b, got, want)
			}
		}
	}
	if got := tag(t, "1.6.5-a").Core().Compare(tag(t, "v1.6.5_b").Core()); got != 0 {
		t.Errorf("cores of two suffixes compare as %d, want 0", got)
	}
}

func tag(t *testing.T, text string) skew.Version {
	t.Helper()
	v, err := skew.ParseTag(text)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func genVersion() *rapid.Generator[skew.Version] {
	return rapid.Custom(func(t *rapid.T) skew.Version {
		n := rapid.Uint64Range(0, 30)
		return skew.Version{
			Major: n.Draw(t, "major"), Minor: n.Draw(t, "minor"), Patch: n.Draw(t, "patch"),
			Pre: rapid.StringMatching(`(|rc\.(0|[1-9][0-9]?)|[a-z]+(-[a-z0-9]+)?\.[1-9])`).Draw(t, "pre"),
		}
	})
}

func TestVersionProperties(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		a, b, c := genVersion().Draw(rt, "a"), genVersion().Draw(rt, "b"), genVersion().Draw(rt, "c")
		if got, err := skew.Parse(a.String()); err != nil || got != a {
			rt.Fatalf("Parse(%s) = %v, %v", a, got, err)
		}
		if got, err := skew.ParseTag(a.String()); err != nil || got != a {
			rt.Fatalf("ParseTag(%s) = %v, %v", a, got, err)
		}
		if a.Compare(b) != -b.Compare(a) || (a.Compare(b) == 0) != (a == b) {
			rt.Fatalf("%s and %s compare as %d and %d", a, b, a.Compare(b), b.Compare(a))
		}
		if a.Compare(b) <= 0 && b.Compare(c) <= 0 && a.Compare(c) > 0 {
			rt.Fatalf("%s ≤ %s ≤ %s, but %s > %s", a, b, c, a, c)
		}
		if a.Compare(a.Core()) > 0 {
			rt.Fatalf("%s is higher than its core", a)
		}
	})
}

// What Parse accepts, ParseTag reads as the same; neither panics.
func FuzzParse(f *testing.F) {
	for _, s := range []string{"v1.2.3", "v1.38.0-beta.0", "1.7.2-foobar.1", "v1.8.6_vmware.1_b2", "foobar", "1-7", "v1..2", "-", "_"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		strict, err := skew.Parse(text)
		tolerant, errTag := skew.ParseTag(text)
		if err == nil && len(text) <= 128 && (errTag != nil || strict != tolerant) {
			t.Errorf("Parse(%q) = %v, ParseTag: %v, %v", text, strict, tolerant, errTag)
		}
		if err == nil && strict.String() != text {
			t.Errorf("Parse(%q) prints as %q", text, strict)
		}
	})
}

func TestKubeadmCoreDNS(t *testing.T) {
	t.Parallel()
	for kubernetes, want := range map[string]string{"v1.22.17": "v1.8.4", "v1.36.3": "v1.14.2", "v1.37.2": "v1.14.6", "v1.38.0-beta.0": "v1.15.0"} {
		v, err := skew.Parse(kubernetes)
		if err != nil {
			t.Fatal(err)
		}
		if got, ok := skew.KubeadmCoreDNS(v); !ok || got.String() != want {
			t.Errorf("kubeadm %s ships %v (%t), want %s", kubernetes, got, ok, want)
		}
	}
	for _, v := range []skew.Version{{Major: 1, Minor: 21}, {Major: 1, Minor: 99}, {Major: 2, Minor: 36}} {
		if got, ok := skew.KubeadmCoreDNS(v); ok {
			t.Errorf("kubeadm %s ships %v, want unknown", v, got)
		}
	}
}
