// SPDX-License-Identifier: Apache-2.0

package kube_test

import (
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/theseus-gitops/theseus/executors/kube"
)

// bare is a right without its reason, as one comparable text.
func bare(namespace, verb, group, resource, name string) string {
	return strings.Join([]string{namespace, verb, group, resource, name}, " ")
}

// The page is what people grant: it must say exactly what the tables say.
func TestPageOfRightsIsTheTable(t *testing.T) {
	data, err := os.ReadFile(filepath.Join("..", "..", "docs", "rights.md"))
	if err != nil {
		t.Fatal(err)
	}
	rest := string(data)
	for _, table := range [][]kube.Right{kube.Rights(), kube.PlaneRights()} {
		var block string
		_, rest, _ = strings.Cut(rest, "```yaml\n")
		block, rest, _ = strings.Cut(rest, "\n```")
		got, want := granted(t, block), []string(nil)
		for _, r := range table {
			want = append(want, bare(r.Namespace, r.Verb, r.Group, r.Resource, r.Name))
		}
		slices.Sort(got)
		slices.Sort(want)
		if !slices.Equal(got, want) {
			t.Errorf("docs/rights.md grants\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
	}
}

// granted are the rights that the roles in a text of YAML documents give.
func granted(t *testing.T, block string) []string {
	t.Helper()
	var out []string
	for _, text := range strings.Split(block, "\n---\n") {
		var role rbacv1.ClusterRole // a Role has the same fields
		if err := yaml.Unmarshal([]byte(text), &role); err != nil {
			t.Fatal(err)
		}
		for _, rule := range role.Rules {
			out = append(out, expand(role.Namespace, rule)...)
		}
	}
	return out
}

func expand(namespace string, rule rbacv1.PolicyRule) []string {
	names := rule.ResourceNames
	if len(names) == 0 {
		names = []string{""}
	}
	var out []string
	for _, verb := range rule.Verbs {
		for _, resource := range rule.Resources {
			for _, name := range names {
				out = append(out, bare(namespace, verb, rule.APIGroups[0], resource, name))
			}
		}
	}
	return out
}

func missing(t *testing.T, client *kube.Client) []string {
	t.Helper()
	rights, err := client.MissingRights(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, r := range rights {
		out = append(out, r.String())
	}
	return out
}

// needed are the rights that are asked for, as texts.
func needed(kinds ...kube.Need) []string {
	var out []string
	for _, r := range kube.Rights() {
		if slices.Contains(kinds, r.Need) {
			out = append(out, r.String())
		}
	}
	return out
}

func dnsRole(t *testing.T, client *kube.Client, rules ...rbacv1.PolicyRule) {
	t.Helper()
	create(t, client, &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "system:coredns"}, Rules: rules})
}

func TestMissingRights(t *testing.T) {
	server.Reset(t)
	g := newGate(t)
	client := g.client(t)
	if got := missing(t, client); got != nil {
		t.Errorf("an administrator lacks %q", got)
	}
	for _, call := range g.calls {
		if !strings.HasPrefix(call, "GET ") && call != "POST /apis/authorization.k8s.io/v1/selfsubjectaccessreviews" {
			t.Errorf("%s: asking for rights must write nothing", call)
		}
	}
	if g.most > 4 {
		t.Errorf("%d calls at once, want at most 4", g.most)
	}
	nobody := connect(t, kube.Access{Kubeconfig: server.UserKubeconfig(t, "nobody")})
	if got, want := missing(t, nobody), needed(kube.Always, kube.ForRole); !slices.Equal(got, want) {
		t.Errorf("a role that can't be read: got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// What only an old role makes necessary is not asked of everybody.
func TestMissingRightsToChangeTheRole(t *testing.T) {
	read := []string{"list", "watch"}
	old := rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"endpoints", "services"}, Verbs: read}
	metrics := rbacv1.PolicyRule{NonResourceURLs: []string{"/metrics"}, Verbs: []string{"get"}}
	slicesRule := rbacv1.PolicyRule{APIGroups: []string{"discovery.k8s.io"}, Resources: []string{"endpointslices"}, Verbs: read}
	of := func(verbs ...string) rbacv1.PolicyRule {
		return rbacv1.PolicyRule{APIGroups: []string{rbacv1.GroupName}, Resources: []string{"clusterroles"}, ResourceNames: []string{"system:coredns"}, Verbs: verbs}
	}
	escalate := "escalate clusterroles.rbac.authorization.k8s.io system:coredns (to give CoreDNS a right that this account lacks)"
	patch := "patch clusterroles.rbac.authorization.k8s.io system:coredns (to let CoreDNS read EndpointSlices)"
	for name, c := range map[string]struct {
		role, account []rbacv1.PolicyRule
		want          []string
	}{
		"the role is as it must be": {[]rbacv1.PolicyRule{old, slicesRule}, []rbacv1.PolicyRule{of("get")}, nil},
		"no role":                   {nil, []rbacv1.PolicyRule{of("get")}, nil},
		"an old role":               {[]rbacv1.PolicyRule{old}, []rbacv1.PolicyRule{of("get")}, []string{patch, escalate}},
		"may escalate":              {[]rbacv1.PolicyRule{old}, []rbacv1.PolicyRule{of("get", "patch", "escalate")}, nil},
		"has what it grants":        {[]rbacv1.PolicyRule{old, metrics}, []rbacv1.PolicyRule{of("get", "patch"), old, slicesRule, metrics}, nil},
		"lacks what it will grant":  {[]rbacv1.PolicyRule{old, metrics}, []rbacv1.PolicyRule{of("get", "patch"), old, metrics}, []string{escalate}},
		"lacks what it grants":      {[]rbacv1.PolicyRule{old, metrics}, []rbacv1.PolicyRule{of("get", "patch"), old, slicesRule}, []string{escalate}},
	} {
		t.Run(name, func(t *testing.T) {
			client := admin(t)
			if c.role != nil {
				dnsRole(t, client, c.role...)
			}
			create(t, client, &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "account"}, Rules: c.account})
			binding := &rbacv1.ClusterRoleBinding{
				ObjectMeta: metav1.ObjectMeta{Name: "account"}, Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "User", Name: "account"}},
				RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "account"},
			}
			if _, err := client.Interface().RbacV1().ClusterRoleBindings().Create(t.Context(), binding, metav1.CreateOptions{}); err != nil {
				t.Fatal(err)
			}
			account := connect(t, kube.Access{Kubeconfig: server.UserKubeconfig(t, "account")})
			var got []string
			for deadline := time.Now().Add(20 * time.Second); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
				got = slices.DeleteFunc(missing(t, account), func(s string) bool { return !strings.Contains(s, "clusterroles") })
				if slices.Equal(got, c.want) { // roles take effect a moment after they are written
					return
				}
			}
			t.Errorf("got %q, want %q", got, c.want)
		})
	}
}

func TestMissingRightsWithoutAnAnswer(t *testing.T) {
	server.Reset(t)
	g := newGate(t)
	status := http.StatusForbidden
	g.setFail(func(w http.ResponseWriter, r *http.Request) bool {
		if r.Method != http.MethodPost {
			return false
		}
		http.Error(w, "no", status)
		return true
	})
	if got := missing(t, g.client(t)); got != nil {
		t.Errorf("a server that refuses the question was taken to refuse %q", got)
	}
	status = http.StatusBadGateway
	var unreachable *kube.UnreachableError
	if got, err := g.client(t).MissingRights(t.Context()); !errors.As(err, &unreachable) || got != nil {
		t.Errorf("got %v, %v; want an UnreachableError", got, err)
	}
}
