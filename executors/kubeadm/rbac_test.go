// SPDX-License-Identifier: Apache-2.0

package kubeadm_test

import (
	"reflect"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/theseus-gitops/theseus/executors/kubeadm"
)

// kubernetes/kubeadm#1624: a joiner that may not read what it needs. The API server itself is asked, by the joiner.
func TestAJoinerMayReadWhatItNeeds(t *testing.T) {
	client, _ := create(t, map[string]string{"ClusterConfiguration": stored})
	for _, config := range []struct{ namespace, name string }{{"kube-system", "kubelet-config"}, {"kube-system", "private"}, {"kube-public", "cluster-info"}} {
		_, err := client.CoreV1().ConfigMaps(config.namespace).Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: config.name}}, metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
	}
	config := rest.AnonymousClientConfig(server.Config(t))
	anonymous, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	token := newToken(t, client, "seed-cp-4")
	config.BearerToken = token.ID + "." + string(token.Secret)
	joiner, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	reads := func(client kubernetes.Interface, namespace, name string) bool {
		t.Helper()
		_, err := client.CoreV1().ConfigMaps(namespace).Get(t.Context(), name, metav1.GetOptions{})
		if err != nil && !apierrors.IsForbidden(err) {
			t.Fatal(err)
		}
		return err == nil
	}
	if reads(joiner, "kube-system", "kubeadm-config") {
		t.Fatal("the test API server lets everybody read")
	}
	made, err := kubeadm.EnsureJoinRBAC(t.Context(), client)
	if err != nil || len(made) != 13 {
		t.Fatalf("made %d: %q, %v", len(made), made, err)
	}
	for name, want := range map[string]bool{"kubeadm-config": true, "kubelet-config": true, "private": false} {
		if got := reads(joiner, "kube-system", name); got != want {
			t.Errorf("%s is read: %t, want %t", name, got, want)
		}
	}
	if !reads(anonymous, "kube-public", "cluster-info") {
		t.Error("a machine without credentials can't read cluster-info")
	}
	if _, err := joiner.CoreV1().Nodes().Get(t.Context(), "seed-cp-4", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("the joiner may not see whether its Node exists: %v", err)
	}
	if made, err = kubeadm.EnsureJoinRBAC(t.Context(), client); err != nil || len(made) != 0 {
		t.Errorf("again: made %q, %v", made, err)
	}
}

// kubernetes/kubeadm#3310, kubernetes-sigs/cluster-api#13770 and #9682: bindings that only init and upgrade make. One that is
// there is success, and stays as people made it.
func TestBindingsThatJoinDoesNotMake(t *testing.T) {
	server.Reset(t)
	client := server.Client(t)
	bindings := client.RbacV1().ClusterRoleBindings()
	theirs, err := bindings.Create(t.Context(), &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "kubeadm:cluster-admins"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "view"},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if made, err := kubeadm.EnsureJoinRBAC(t.Context(), client); err != nil || len(made) != 12 {
		t.Fatalf("made %q, %v", made, err)
	}
	if got, err := bindings.Get(t.Context(), theirs.Name, metav1.GetOptions{}); err != nil || !reflect.DeepEqual(got, theirs) {
		t.Errorf("theirs was changed: %v, %v", got, err)
	}
	got, err := bindings.Get(t.Context(), "kubeadm:apiserver-kubelet-client", metav1.GetOptions{})
	if err != nil || got.RoleRef.Name != "system:kubelet-api-admin" || got.Subjects[0].Name != "kube-apiserver-kubelet-client" || got.Subjects[0].Kind != "User" {
		t.Errorf("got %v, %v", got, err)
	}
}

func TestEnsureJoinRBACExplains(t *testing.T) {
	server.Reset(t)
	server.Client(t)
	made, err := kubeadm.EnsureJoinRBAC(t.Context(), clientAs(t, "nobody"))
	if len(made) != 0 || err == nil || !strings.Contains(err.Error(), "clusterrolebindings/kubeadm:cluster-admins: the API server refused to get it; grant verb get on clusterrolebindings") {
		t.Errorf("made %q, error %v", made, err)
	}
}
