// SPDX-License-Identifier: Apache-2.0

package kube_test

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/theseus-gitops/theseus/executors/kube"
)

func TestObserveMakesTwelveReadingCalls(t *testing.T) {
	server.Reset(t)
	g := newGate(t)
	have, err := g.client(t).Observe(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"GET /api/v1/namespaces/kube-system/configmaps/coredns",
		"GET /api/v1/namespaces/kube-system/configmaps/kube-proxy",
		"GET /api/v1/namespaces/kube-system/configmaps/kubeadm-config",
		"GET /api/v1/namespaces/kube-system/configmaps/kubelet-config",
		"GET /api/v1/namespaces/kube-system/configmaps/theseus",
		"GET /api/v1/namespaces/kube-system/configmaps/theseus-coredns-canary",
		"GET /api/v1/namespaces/kube-system/pods?labelSelector=k8s-app%3Dkube-dns",
		"GET /api/v1/nodes",
		"GET /apis/apps/v1/namespaces/kube-system/daemonsets/kube-proxy",
		"GET /apis/apps/v1/namespaces/kube-system/deployments/coredns",
		"GET /apis/rbac.authorization.k8s.io/v1/clusterroles/system:coredns",
		"GET /version",
	}
	if got := slices.Sorted(slices.Values(g.calls)); !slices.Equal(got, want) {
		t.Errorf("got  %s\nwant %s", strings.Join(got, "\n     "), strings.Join(want, "\n     "))
	}
	if g.most > 4 {
		t.Errorf("%d calls at once, want at most 4", g.most)
	}
	if !g.agents["theseus/v0.0.0-test"] || len(g.agents) != 1 {
		t.Errorf("user agents %v", g.agents)
	}

	if have.ServerVersion == "" || !strings.HasPrefix(have.ServerVersion, "v1.") {
		t.Errorf("server version %q", have.ServerVersion)
	}
	if have.KubeadmConfig != nil || have.KubeletConfig != nil || have.KubeProxy != nil || have.BookVersion != "" ||
		have.DNS.Config != nil || have.DNS.Deployment != nil || have.DNS.Role != nil || have.DNS.Pods != nil || have.Nodes != nil {
		t.Errorf("an empty cluster became %+v", have)
	}
}

func TestObserveSeesWhatIsThere(t *testing.T) {
	client := admin(t)
	seed(t, client)
	have, err := client.Observe(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if len(have.Nodes) != 1 || have.Nodes[0].Name != "cp-1" || !have.Nodes[0].ControlPlane {
		t.Errorf("nodes %+v", have.Nodes)
	}
	if have.KubeadmConfig == nil || have.KubeadmConfig.KubernetesVersion != "v1.36.3" || have.KubeadmConfig.ResourceVersion == "" {
		t.Errorf("kubeadm-config %+v", have.KubeadmConfig)
	}
	if have.KubeletConfig == nil || have.KubeletConfig.Data["kubelet"] == "" {
		t.Errorf("kubelet-config %+v", have.KubeletConfig)
	}
	if p := have.KubeProxy; p == nil || p.Image != "registry.k8s.io/kube-proxy:v1.36.3" || p.Config == nil || p.Config.Data["config.conf"] == "" {
		t.Errorf("kube-proxy %+v", p)
	}
	d := have.DNS.Deployment
	if d == nil || d.Image != "registry.k8s.io/coredns/coredns:v1.14.2" || d.Volume == nil || d.Volume.Key() != "Corefile" || d.Rollout.Generation != 1 || d.Rollout.Wanted != 2 {
		t.Errorf("deployment %+v", d)
	}
	if c := have.DNS.Config; c == nil || c.Data["Corefile"] == "" || c.Manager.Known() {
		t.Errorf("config %+v", c)
	}
	if r := have.DNS.Role; r == nil || !r.ReadsEndpointSlices() {
		t.Errorf("role %+v", r)
	}
	if len(have.DNS.Pods) != 1 || have.DNS.Pods[0].Image != "registry.k8s.io/coredns/coredns:v1.14.2" {
		t.Errorf("pods %+v", have.DNS.Pods)
	}
}

func TestObserveRefusesAKubeadmConfigItCannotRead(t *testing.T) {
	client := admin(t)
	create(t, client, configMap("kubeadm-config", map[string]string{"ClusterConfiguration": "kind: [\n"}))
	_, err := client.Observe(t.Context())
	var damaged *kube.DamagedError
	if !errors.As(err, &damaged) || !strings.Contains(err.Error(), "configmap/kubeadm-config") {
		t.Errorf("got %v, want a DamagedError about kubeadm-config", err)
	}
}

func TestObserveNamesEveryMissingRight(t *testing.T) {
	server.Reset(t)
	client := connect(t, kube.Access{Kubeconfig: server.UserKubeconfig(t, "newcomer")})
	_, err := client.Observe(t.Context())
	var forbidden *kube.ForbiddenError
	if !errors.As(err, &forbidden) {
		t.Fatalf("got %v, want a ForbiddenError", err)
	}
	for _, want := range []string{
		`not allowed to list nodes: bind the user to a ClusterRole that has the verb "list" on resource "nodes" of API group ""`,
		`not allowed to get configmaps theseus in namespace kube-system: bind the user to a Role in namespace kube-system that has the verb "get"`,
		`not allowed to get deployments coredns in namespace kube-system`,
		`not allowed to get clusterroles system:coredns: bind the user to a ClusterRole`,
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("got %v\nwant in it %s", err, want)
		}
	}
}

// TestObserveNeedsTheseRightsOnly is what a chart or a manual may promise.
func TestObserveNeedsTheseRightsOnly(t *testing.T) {
	client := admin(t)
	rbac := client.Interface().RbacV1()
	subjects := []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "User", Name: "observer"}}
	read := metav1.ObjectMeta{Name: "theseus-observe"}
	for _, err := range []error{
		second(rbac.ClusterRoles().Create(t.Context(), &rbacv1.ClusterRole{ObjectMeta: read, Rules: []rbacv1.PolicyRule{
			{APIGroups: []string{""}, Resources: []string{"nodes"}, Verbs: []string{"list"}},
			{APIGroups: []string{rbacv1.GroupName}, Resources: []string{"clusterroles"}, ResourceNames: []string{"system:coredns"}, Verbs: []string{"get"}},
		}}, metav1.CreateOptions{})),
		second(rbac.ClusterRoleBindings().Create(t.Context(), &rbacv1.ClusterRoleBinding{
			ObjectMeta: read, Subjects: subjects, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: read.Name},
		}, metav1.CreateOptions{})),
		second(rbac.Roles("kube-system").Create(t.Context(), &rbacv1.Role{ObjectMeta: read, Rules: []rbacv1.PolicyRule{
			{APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: []string{"list"}},
			{APIGroups: []string{""}, Resources: []string{"configmaps"}, ResourceNames: []string{"kubeadm-config", "kubelet-config", "coredns", "kube-proxy", "theseus", "theseus-coredns-canary"}, Verbs: []string{"get"}},
			{APIGroups: []string{"apps"}, Resources: []string{"deployments"}, ResourceNames: []string{"coredns"}, Verbs: []string{"get"}},
			{APIGroups: []string{"apps"}, Resources: []string{"daemonsets"}, ResourceNames: []string{"kube-proxy"}, Verbs: []string{"get"}},
		}}, metav1.CreateOptions{})),
		second(rbac.RoleBindings("kube-system").Create(t.Context(), &rbacv1.RoleBinding{
			ObjectMeta: read, Subjects: subjects, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: read.Name},
		}, metav1.CreateOptions{})),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	observer := connect(t, kube.Access{Kubeconfig: server.UserKubeconfig(t, "observer")})
	if _, err := observer.Observe(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestObserveEndsWithItsContext(t *testing.T) {
	hanging := fake(t, func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	client := connect(t, kube.Access{Kubeconfig: kubeconfig(hanging, "", ""), AllowInsecureTLS: true})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := client.Observe(ctx)
	var unreachable *kube.UnreachableError
	if !errors.Is(err, context.Canceled) || errors.As(err, &unreachable) {
		t.Errorf("got %v, want the context's error and no word about the server", err)
	}
}

func second[T any](_ T, err error) error { return err }

func configMap(name string, data map[string]string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "kube-system"}, Data: data}
}
