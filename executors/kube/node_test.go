// SPDX-License-Identifier: Apache-2.0

package kube_test

import (
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/theseus-gitops/theseus/executors/kube"
	"github.com/theseus-gitops/theseus/reconcile/live"
	"github.com/theseus-gitops/theseus/reconcile/rollout"
)

func evictee(name string) live.Evictee { return live.Evictee{Namespace: "shop", Name: name} }

func theNode(t *testing.T, client *kube.Client) live.Node {
	t.Helper()
	have, err := client.Observe(t.Context())
	if err != nil || len(have.Nodes) != 1 {
		t.Fatalf("nodes %+v, %v", have.Nodes, err)
	}
	return have.Nodes[0]
}

func TestANodeIsMarkedCordonedAndTakenBack(t *testing.T) {
	client := admin(t)
	place(t, client, planeNode("cp-1", "10.0.0.11"))
	before := theNode(t, client)
	if before.Leaving != "" || !before.Schedulable || time.Since(before.Created) > time.Hour || before.Labels["topology.kubernetes.io/zone"] != "a" || before.Taints[0].Key != "node-role.kubernetes.io/control-plane" {
		t.Errorf("a new node is %+v", before)
	}
	for range 2 { // each act may be repeated
		if err := client.MarkLeaving(t.Context(), rollout.MarkLeaving{Node: "cp-1"}); err != nil {
			t.Fatal(err)
		}
		if err := client.Cordon(t.Context(), rollout.Cordon{Node: "cp-1"}); err != nil {
			t.Fatal(err)
		}
	}
	marked := theNode(t, client)
	if at, err := time.Parse(time.RFC3339, marked.Leaving); err != nil || time.Since(at) > time.Hour || marked.Schedulable {
		t.Errorf("a node that leaves is %+v, want it cordoned, with the time of the mark", marked)
	}
	for range 2 {
		if err := client.UnmarkLeaving(t.Context(), rollout.UnmarkLeaving{Node: "cp-1"}); err != nil {
			t.Fatal(err)
		}
	}
	if n := theNode(t, client); !reflect.DeepEqual(n, before) {
		t.Errorf("a node that stays is %+v, want it as before: %+v", n, before)
	}
	for range 2 {
		if err := client.DeleteNode(t.Context(), rollout.DeleteNode{Node: "cp-1"}); err != nil {
			t.Errorf("a node that is gone is what was wanted, got %v", err)
		}
	}
	for _, err := range []error{
		client.Cordon(t.Context(), rollout.Cordon{Node: "cp-1"}),
		client.MarkLeaving(t.Context(), rollout.MarkLeaving{Node: "cp-1"}),
		client.UnmarkLeaving(t.Context(), rollout.UnmarkLeaving{Node: "cp-1"}),
	} {
		if !errors.Is(err, rollout.ErrConflict) || !strings.Contains(err.Error(), "node cp-1 is gone") {
			t.Errorf("got %v, want a conflict that names the node", err)
		}
	}
}

func TestUpdateKubeProxyChangesTheImageOnly(t *testing.T) {
	client := admin(t)
	seed(t, client)
	sets := client.Interface().AppsV1().DaemonSets("kube-system")
	before, err := sets.Get(t.Context(), "kube-proxy", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	act := rollout.UpdateKubeProxy{Image: "registry.k8s.io/kube-proxy:v1.37.2", ResourceVersion: before.ResourceVersion}
	if err := client.UpdateKubeProxy(t.Context(), act); err != nil {
		t.Fatal(err)
	}
	after, err := sets.Get(t.Context(), "kube-proxy", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if got := after.Spec.Template.Spec.Containers[0].Image; got != act.Image || len(after.Spec.Template.Spec.Containers) != 1 {
		t.Errorf("image %q, want %q, and one container", got, act.Image)
	}
	after.Spec.Template.Spec.Containers[0].Image = before.Spec.Template.Spec.Containers[0].Image
	if !reflect.DeepEqual(after.Spec, before.Spec) {
		t.Errorf("more than the image was changed:\n%s\nwant\n%s", after.Spec.String(), before.Spec.String())
	}
	act.Image = "registry.k8s.io/kube-proxy:v1.38.0"
	if err := client.UpdateKubeProxy(t.Context(), act); !errors.Is(err, rollout.ErrConflict) {
		t.Errorf("an old resourceVersion: got %v, want a conflict", err)
	}
	if err := sets.Delete(t.Context(), "kube-proxy", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := client.UpdateKubeProxy(t.Context(), act); !errors.Is(err, rollout.ErrConflict) {
		t.Errorf("a DaemonSet that is gone: got %v, want a conflict", err)
	}
}

func TestUpdateKubeProxyAddsNoContainer(t *testing.T) {
	client := admin(t)
	seed(t, client)
	sets := client.Interface().AppsV1().DaemonSets("kube-system")
	set, err := sets.Get(t.Context(), "kube-proxy", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	set.Spec.Template.Spec.Containers[0].Name = "proxy"
	if set, err = sets.Update(t.Context(), set, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	err = client.UpdateKubeProxy(t.Context(), rollout.UpdateKubeProxy{Image: "x:1", ResourceVersion: set.ResourceVersion})
	if err == nil || !strings.Contains(err.Error(), "it has no container kube-proxy") {
		t.Errorf("got %v, want a refusal", err)
	}
}
