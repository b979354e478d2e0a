// SPDX-License-Identifier: Apache-2.0

package apiserver_test

import (
	"os"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/theseus-gitops/theseus/internal/apiserver"
)

var server apiserver.Server

func TestMain(m *testing.M) { os.Exit(server.Run(m)) }

func TestResetDeletesWhatTestsMake(t *testing.T) {
	client := server.Client(t)
	maps := client.CoreV1().ConfigMaps(metav1.NamespaceSystem)
	made := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "coredns"}}
	for range 2 { // the second round fails when the first left anything
		if _, err := maps.Create(t.Context(), made, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		if _, err := client.CoreV1().Nodes().Create(t.Context(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "cp-1"}}, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		server.Reset(t)
	}
	roles, err := client.RbacV1().ClusterRoles().List(t.Context(), metav1.ListOptions{LabelSelector: "kubernetes.io/bootstrapping"})
	if err != nil {
		t.Fatal(err)
	}
	if len(roles.Items) == 0 {
		t.Error("Reset deleted the API server's own cluster roles")
	}
}
