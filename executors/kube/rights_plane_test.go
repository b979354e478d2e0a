// SPDX-License-Identifier: Apache-2.0

package kube_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/theseus-gitops/theseus/executors/kube"
	"github.com/theseus-gitops/theseus/reconcile/live"
	"github.com/theseus-gitops/theseus/reconcile/rollout"
)

func missingPlane(t *testing.T, client *kube.Client, approve bool) []string {
	t.Helper()
	rights, err := client.MissingPlaneRights(t.Context(), approve)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, r := range rights {
		out = append(out, r.String())
	}
	return out
}

func TestMissingPlaneRights(t *testing.T) {
	server.Reset(t)
	g := newGate(t)
	if got := missingPlane(t, g.client(t), true); got != nil {
		t.Errorf("an administrator lacks %q", got)
	}
	for _, call := range g.calls {
		if call != "POST /apis/authorization.k8s.io/v1/selfsubjectaccessreviews" {
			t.Errorf("%s: asking for rights must write nothing", call)
		}
	}
	nobody := connect(t, kube.Access{Kubeconfig: server.UserKubeconfig(t, "nobody")})
	for approve, kinds := range map[bool][]kube.Need{false: {kube.Always}, true: {kube.Always, kube.ForServingCSR}} {
		var want []string
		for _, r := range kube.PlaneRights() {
			if slices.Contains(kinds, r.Need) {
				want = append(want, r.String())
			}
		}
		if got := missingPlane(t, nobody, approve); !slices.Equal(got, want) {
			t.Errorf("approve %t: got\n%s\nwant\n%s", approve, strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
	}
}

// grantTable gives a user exactly the rights of a table.
func grantTable(t *testing.T, client *kube.Client, user string, rights []kube.Right) {
	t.Helper()
	rules := map[string][]rbacv1.PolicyRule{}
	for _, r := range rights {
		rule := rbacv1.PolicyRule{APIGroups: []string{r.Group}, Resources: []string{r.Resource}, Verbs: []string{r.Verb}}
		if r.Name != "" {
			rule.ResourceNames = []string{r.Name}
		}
		rules[r.Namespace] = append(rules[r.Namespace], rule)
	}
	bindRole(t, client, user, rules[""])
	rbac := client.Interface().RbacV1()
	for ns, rules := range rules {
		if ns == "" {
			continue
		}
		meta := metav1.ObjectMeta{Namespace: ns, Name: user}
		if _, err := rbac.Roles(ns).Create(t.Context(), &rbacv1.Role{ObjectMeta: meta, Rules: rules}, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		_, err := rbac.RoleBindings(ns).Create(t.Context(), &rbacv1.RoleBinding{
			ObjectMeta: meta, Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "User", Name: user}},
			RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: user},
		}, metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
	}
}

// The tables are complete: with them, all that is done to nodes here is allowed.
func TestPlaneRightsAreEnough(t *testing.T) {
	client := admin(t)
	seed(t, client) // cp-1 is among it
	namespace(t, client.Interface(), "shop")
	claim, pv := volume("local", "pv-local", nil)
	for _, o := range []any{claim, pv, podOn("cp-1", "api", claiming("local"))} {
		place(t, client, o)
	}
	endPods(t, client.Interface())
	request := proper()
	request.template.IPAddresses = nil
	name := request.request(t)
	grantTable(t, client, "theseus", append(kube.Rights(), kube.PlaneRights()...))
	account := connect(t, kube.Access{Kubeconfig: server.UserKubeconfig(t, "theseus")})
	for deadline := time.Now().Add(20 * time.Second); missingPlane(t, account, true) != nil; time.Sleep(50 * time.Millisecond) {
		if time.Now().After(deadline) { // roles take effect a moment after they are written
			t.Fatalf("missing are %q", missingPlane(t, account, true))
		}
	}
	ca := newAuthority(t, "kubernetes")
	b := newBalancer(t, ca.node(t, "cp-1"))
	have := lookAt(t, account, kube.PlaneOptions{Endpoint: b.address, OwnPod: kube.OwnPod{Namespace: "shop", Name: "api", UID: "x"}})
	pods := have.Plane.Parts["cp-1"].Pods
	if len(pods) != 1 || pods[0].LocalVolumes != nil {
		t.Errorf("pods %+v, want one whose claim was read", pods)
	}
	for what, act := range []func() error{
		func() error {
			return account.ApproveServingCSR(t.Context(), rollout.ApproveServingCSR{Name: name, Node: "cp-1"})
		},
		func() error {
			return account.UpdateKubeProxy(t.Context(), rollout.UpdateKubeProxy{Image: "p:2", ResourceVersion: have.KubeProxy.ResourceVersion})
		},
		func() error { return leave(t, account, pods) }, // last: the request names the node
	} {
		if err := act(); err != nil {
			t.Errorf("act %d: %v", what, err)
		}
	}
}

// leave does all that a node goes through that leaves.
func leave(t *testing.T, client *kube.Client, pods []live.Evictee) error {
	t.Helper()
	for _, act := range []func() error{
		func() error { return client.MarkLeaving(t.Context(), rollout.MarkLeaving{Node: "cp-1"}) },
		func() error { return client.UnmarkLeaving(t.Context(), rollout.UnmarkLeaving{Node: "cp-1"}) },
		func() error { return client.Cordon(t.Context(), rollout.Cordon{Node: "cp-1"}) },
		func() error { return client.Drain(t.Context(), rollout.Drain{Node: "cp-1", Pods: pods}, nil) },
	} {
		if err := act(); err != nil {
			return err
		}
	}
	if got := names(t, client, "shop"); got != nil {
		t.Errorf("left on the node are %q", got)
	}
	return client.DeleteNode(t.Context(), rollout.DeleteNode{Node: "cp-1"})
}
