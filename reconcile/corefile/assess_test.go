// SPDX-License-Identifier: Apache-2.0

package corefile_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/theseus-gitops/theseus/reconcile/corefile"
	"github.com/theseus-gitops/theseus/reconcile/skew"
)

// block is a Corefile with these plugins in one root server block.
func block(plugins ...string) string {
	return ".:53 {\n    " + strings.Join(plugins, "\n    ") + "\n}\n"
}

// full has everything that the library would add on the way from 1.6.7, so that only the case's own plugin matters.
func full(plugins ...string) string {
	return block(append([]string{"errors", "ready", "health {\n        lameduck 5s\n    }", "loop"}, plugins...)...)
}

const concurrent = "forward . 10.0.0.2 {\n        max_concurrent 1000\n    }"

// row is one case: what goes in, and what must come out.
type row struct {
	name       string
	from, to   string
	in         string
	keys       map[string]string
	skip       bool
	want       corefile.Outcome
	reason     string   // part of the reason
	notices    []string // "severity plugin option", exactly these; nil: not looked at
	says       string   // part of a notice
	contains   []string // parts of the resulting Corefile
	containsNo []string
}

func (r row) request() corefile.Request {
	return corefile.Request{From: r.from, To: r.to, Corefile: r.in, OtherKeys: r.keys, SkipMigration: r.skip}
}

func run(t *testing.T, rows []row) {
	t.Helper()
	for _, r := range rows {
		t.Run(r.name, func(t *testing.T) {
			t.Parallel()
			got := corefile.Assess(r.request())
			if got.Outcome != r.want {
				t.Fatalf("outcome %s, want %s; reason: %s; notices: %v\n%s", got.Outcome, r.want, got.Reason, got.Notices, got.Corefile)
			}
			if !strings.Contains(got.Reason, r.reason) {
				t.Errorf("reason %q lacks %q", got.Reason, r.reason)
			}
			if !slices.ContainsFunc(got.Notices, func(n corefile.Notice) bool { return strings.Contains(n.Message, r.says) }) && r.says != "" {
				t.Errorf("no notice says %q: %v", r.says, got.Notices)
			}
			if r.notices != nil && !slices.Equal(short(got.Notices), r.notices) {
				t.Errorf("notices %q, want %q", short(got.Notices), r.notices)
			}
			for _, part := range r.contains {
				if !strings.Contains(got.Corefile, part) {
					t.Errorf("Corefile lacks %q:\n%s", part, got.Corefile)
				}
			}
			for _, part := range r.containsNo {
				if strings.Contains(got.Corefile, part) {
					t.Errorf("Corefile still has %q:\n%s", part, got.Corefile)
				}
			}
			checkAssessment(t, r.request(), got)
		})
	}
}

func short(notices []corefile.Notice) []string {
	list := []string{}
	for _, n := range notices {
		list = append(list, strings.TrimSpace(n.Severity.String()+" "+n.Plugin+" "+n.Option))
	}
	return list
}

// Pairs of tags as Cluster API's control plane checks them, on a Corefile that needs nothing. One differs on purpose:
// 1.7.5 never existed. Cluster API's check of the two tags lets it pass to a migration that then fails, after kubeadm-config
// was written; we refuse it before anything is written.
func TestTagPairs(t *testing.T) {
	t.Parallel()
	good := full(concurrent)
	run(t, []row{
		{name: "lower", from: "1.6.2", to: "1.1.3", in: good, want: corefile.Refused, reason: "must be greater than or equal"},
		{name: "5: lower, and unknown to the library", from: "1.6.2", to: "1.1.2", in: good, want: corefile.Refused, reason: "must be greater than or equal"},
		{name: "unknown source before 1.8.3", from: "0.204.123", to: "1.6.3", in: good, want: corefile.Refused, reason: "0.204.123 is not a compatible version"},
		{name: "only the suffix differs", from: "1.6.5_foobar.1", to: "1.6.5_foobar.2", in: good, want: corefile.Unchanged, reason: "stays 1.6.5"},
		{name: "only the suffix differs, downwards", from: "1.6.5_foobar.2", to: "1.6.5_foobar.1", in: good, want: corefile.Unchanged},
		{name: "equal", from: "1.6.5", to: "1.6.5", in: good, want: corefile.Unchanged},
		{name: "suffix at the source", from: "1.6.5-foobar.1", to: "1.7.5", in: good, want: corefile.Refused, reason: "1.7.5 is not a compatible version"},
		{name: "suffix at the source, known target", from: "1.6.5-foobar.1", to: "1.7.1", in: good, want: corefile.Unchanged},
		{name: "v and suffix at the source", from: "v1.6.5-foobar.1", to: "1.7.1", in: good, want: corefile.Unchanged},
		{name: "suffix on both ends", from: "1.6.5-foobar.1", to: "v1.7.1_foobar.1", in: good, want: corefile.Unchanged},
		{name: "two underscores", from: "v1.8.6_vmware.1_b2", to: "v1.9.3_vmware.1_b7", in: good, want: corefile.Unchanged},
		{name: "webhook: other suffix", from: "v1.6.6_foobar.1", to: "v1.6.6_foobar.2", in: good, want: corefile.Unchanged},
		{name: "webhook: same unknown version on both ends", from: "v99.99.99", to: "v99.99.99", in: good, want: corefile.Unchanged, notices: []string{}},
		{name: "webhook: to an unknown version", from: "v1.6.6_foobar.1", to: "v99.99.99", in: good, want: corefile.Refused, reason: "1.15.0"},
		{name: "webhook: to an unknown version, told to skip", from: "v1.6.6_foobar.1", to: "v99.99.99", in: good, skip: true, want: corefile.Unchanged},
		{name: "webhook: lower patch", from: "v1.6.6_foobar.1", to: "1.6.5", in: good, want: corefile.Refused, reason: "lower"},
		{name: "a lower version stays refused when told to skip", from: "v1.14.6", to: "v1.14.2", in: good, skip: true, want: corefile.Refused, reason: "lower"},
	})
}

func TestUnreadableTags(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, from, to, field string }{
		{"target is a word", "1.5.1", "foobar", "to"},
		{"source is a word", "foobar", "1.6.1", "from"},
		{"a letter inside", "1.6.2", "v1X6.2", "to"},
		{"a letter inside, with suffix", "1.6.2", "v1X6.2-foobar.1", "to"},
		{"a plus sign", "1.6.2", "v0.20.0+invalidBuild1", "to"},
		{"a shortened version with suffix", "1.6.2", "1-7", "to"},
		{"no tag", "", "1.6.1", "from"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			got := corefile.Assess(corefile.Request{From: c.from, To: c.to, Corefile: "x", SkipMigration: true})
			var tag *corefile.TagError
			if !errors.As(got.Err, &tag) || tag.Field != c.field {
				t.Fatalf("error %v, want a TagError about %q", got.Err, c.field)
			}
			var syntax *skew.SyntaxError
			if !errors.As(got.Err, &syntax) {
				t.Errorf("error %v does not carry the version's syntax error", got.Err)
			}
			if got.Outcome != corefile.Refused || got.Corefile != "x" {
				t.Errorf("outcome %s with %q", got.Outcome, got.Corefile)
			}
		})
	}
}

// Public reports about Corefiles in upgrades, one case for each.
func TestReports(t *testing.T) {
	t.Parallel()
	custom := "# stub domains of the office\n" + block("errors", "kubernetes cluster.local", "forward . /etc/resolv.conf", "cache 30") +
		"corp.example:53 {\n    forward . 10.1.1.1\n}\n"
	run(t, []row{
		{
			name: "k8s 82889: hosts does not stop the upgrade", from: "1.3.1", to: "1.6.2",
			in:   block("hosts {\n        1.1.1.1 a\n        fallthrough\n    }", "forward . 10.0.0.2", "loop"),
			want: corefile.Unchanged, contains: []string{"1.1.1.1 a\n", "fallthrough"},
		},
		{
			name: "k8s 82889: proxy does not stop the upgrade", from: "1.3.1", to: "1.6.2", in: block("hosts {\n 1.1.1.1 a\n fallthrough\n}", "proxy . 10.0.0.2"),
			want: corefile.Migrated, contains: []string{"1.1.1.1 a", "fallthrough", "forward . 10.0.0.2"}, containsNo: []string{"proxy"},
		},
		{name: "corefile-migration 23: vendor suffix", from: "v1.12.0-100", to: "v1.12.1", in: custom, want: corefile.Unchanged, notices: []string{}},
		{name: "k8s 84326: vendor suffix on an old version", from: "v1.6.2-100", to: "v1.6.5", in: custom, want: corefile.Unchanged},
		{name: "k8s 88623: no notices is no error", from: "v1.14.2", to: "v1.14.6", in: kubeadmDefaults()[25].corefile, want: corefile.Unchanged, notices: []string{}},
		{
			name: "corefile-migration 42: quotes with blanks survive a migration", from: "1.6.7", to: "v1.14.6",
			in:   full(`template IN A example.org {`+"\n"+`        answer "{{ .Name }} 60 IN A 10.0.0.1"`+"\n    }", "forward . 10.0.0.2"),
			want: corefile.Migrated, contains: []string{`answer "{{ .Name }} 60 IN A 10.0.0.1"`, "max_concurrent 1000"},
		},
		{name: "corefile-migration 71: two root proxies", from: "1.3.1", to: "1.5.0", in: block("proxy . 10.0.0.2", "proxy . 10.0.0.3"), want: corefile.Refused, reason: "2 forward plugins"},
		{name: "corefile-migration 87: the default of kubeadm 1.32", from: "v1.11.3", to: "v1.14.6", in: kubeadmDefaults()[21].corefile, want: corefile.Unchanged, notices: []string{}},
		{name: "kubespray 6596: unknown source before 1.8.3", from: "1.6.8", to: "1.7.0", in: custom, want: corefile.Refused, reason: "1.6.8 is not a compatible version"},
		{name: "kubespray 5960: newer than the library", from: "v1.15.0", to: "v1.99.0", in: custom, want: corefile.Unchanged, notices: []string{"warning"}},
		{name: "between two versions that the library knows", from: "v1.14.6", to: "v1.14.8", in: custom, want: corefile.Unchanged, says: "1.14.7 and 1.15.0 are the nearest"},
		{name: "a plugin that only a build of one's own has", from: "1.6.7", to: "1.7.0", in: full("proxy . 10.0.0.2"), want: corefile.Unchanged, says: "no plugin \"proxy\" since 1.5.0"},
		{name: "the line is that of the Corefile given", from: "1.3.1", to: "1.14.6", in: block("proxy a.example 10.0.0.3", "federation cluster.local {\n  x y\n}", "proxy . 10.0.0.2"), want: corefile.Refused, reason: "the Corefile, line 3"},
		{name: "cluster-api 5952: source newer than the library", from: "v1.99.0", to: "v1.99.1", in: custom, want: corefile.Unchanged, notices: []string{"warning"}},
		{name: "cluster-api 13281: a version the library left out", from: "v1.11.2", to: "v1.11.3", in: custom, want: corefile.Unchanged, notices: []string{"warning"}},
		{name: "1.8.1, which the library left out, to itself", from: "v1.8.1", to: "v1.8.1", in: custom, want: corefile.Unchanged, notices: []string{}},
		{name: "kubeadm 2830: grpc on equal versions", from: "1.9.3", to: "1.9.3", in: full("grpc . 127.0.0.1:9005"), want: corefile.Unchanged, notices: []string{}},
		{name: "kubeadm 2830: grpc is only warned about", from: "1.9.3", to: "1.10.1", in: full("grpc . 127.0.0.1:9005"), want: corefile.Unchanged, notices: []string{"unsupported grpc"}},
		{
			name: "sealos 515: max_concurrent before the library knows it", from: "1.6.6", to: "1.6.7", in: full(concurrent),
			want: corefile.Unchanged, notices: []string{"unsupported forward max_concurrent"}, contains: []string{"max_concurrent 1000"},
		},
		{name: "sealos 515: from 1.6.7 on", from: "1.6.7", to: "v1.8.0", in: full(concurrent), want: corefile.Unchanged, notices: []string{}},
		{name: "kubeadm 2371: the highest known version is named", from: "1.7.0", to: "v99.0.0", in: custom, want: corefile.Refused, reason: "up to 1.15.0"},
		{name: "eks-anywhere 4714: one above the table", from: "v1.15.0", to: "v1.15.1", in: custom, want: corefile.Unchanged, notices: []string{"warning"}},
		{name: "k8s 84523: consent keeps the Corefile", from: "1.3.1", to: "1.5.0", in: block("proxy . 10.0.0.2", "proxy . 10.0.0.3"), skip: true, want: corefile.Unchanged, notices: []string{"warning"}},
		{
			name: "eksctl 1098: custom blocks stay and other keys are not asked for", from: "v1.8.4", to: "v1.14.6", in: custom,
			keys: map[string]string{"example.db": "not { a Corefile"}, want: corefile.Unchanged, notices: []string{},
		},
		{name: "coredns 6318: auto is left to the canary", from: "v1.10.1", to: "v1.11.1", in: full("auto example.org {\n directory /zones\n}"), want: corefile.Unchanged, notices: []string{"unsupported auto"}},
	})
}
