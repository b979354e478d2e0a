// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"context"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
)

// notBootstrapped selects what the API server did not make by itself, among roles and their bindings.
const notBootstrapped = "kubernetes.io/bootstrapping!=rbac-defaults"

// Reset deletes what tests usually make: workloads, configuration, leases and roles of every namespace,
// nodes, volumes, certificate requests, cluster roles. Namespaces stay, because deleting them takes a controller that does not run here.
// What the API server keeps for itself stays too.
func (s *Server) Reset(tb testing.TB) {
	tb.Helper()
	client, ctx := s.Client(tb), tb.Context()
	namespaces, err := client.CoreV1().Namespaces().List(ctx, metav1.ListOptions{})
	if err != nil {
		tb.Fatal("reset the test API server:", err)
	}
	freeVolumes(ctx, tb, client)
	deletions := clusterDeletions(client)
	for _, ns := range namespaces.Items {
		deletions = append(deletions, namespaceDeletions(client, ns.Name)...)
	}
	// The policy changes nothing without a garbage collector, but naming none earns a warning per Job.
	now, background := int64(0), metav1.DeletePropagationBackground
	for _, d := range deletions {
		err := d.run(ctx, metav1.DeleteOptions{GracePeriodSeconds: &now, PropagationPolicy: &background}, metav1.ListOptions{LabelSelector: d.labels, FieldSelector: d.fields})
		if err != nil {
			tb.Fatal("reset the test API server:", err)
		}
	}
}

// freeVolumes takes from volumes and claims what keeps them until a controller, which does not run here, sees them unused.
func freeVolumes(ctx context.Context, tb testing.TB, client kubernetes.Interface) {
	tb.Helper()
	free := []byte(`{"metadata":{"finalizers":null}}`)
	volumes, err := client.CoreV1().PersistentVolumes().List(ctx, metav1.ListOptions{})
	if err != nil {
		tb.Fatal("reset the test API server:", err)
	}
	for _, v := range volumes.Items {
		if _, err := client.CoreV1().PersistentVolumes().Patch(ctx, v.Name, types.MergePatchType, free, metav1.PatchOptions{}); err != nil {
			tb.Fatal("reset the test API server:", err)
		}
	}
	claims, err := client.CoreV1().PersistentVolumeClaims("").List(ctx, metav1.ListOptions{})
	if err != nil {
		tb.Fatal("reset the test API server:", err)
	}
	for _, c := range claims.Items {
		if _, err := client.CoreV1().PersistentVolumeClaims(c.Namespace).Patch(ctx, c.Name, types.MergePatchType, free, metav1.PatchOptions{}); err != nil {
			tb.Fatal("reset the test API server:", err)
		}
	}
}

type deletion struct {
	run            func(context.Context, metav1.DeleteOptions, metav1.ListOptions) error
	labels, fields string
}

func clusterDeletions(client kubernetes.Interface) []deletion {
	return []deletion{
		{run: client.CoreV1().Nodes().DeleteCollection},
		{run: client.CertificatesV1().CertificateSigningRequests().DeleteCollection},
		{run: client.StorageV1().VolumeAttachments().DeleteCollection},
		{run: client.CoreV1().PersistentVolumes().DeleteCollection},
		{run: client.RbacV1().ClusterRoles().DeleteCollection, labels: notBootstrapped},
		{run: client.RbacV1().ClusterRoleBindings().DeleteCollection, labels: notBootstrapped},
	}
}

func namespaceDeletions(client kubernetes.Interface, ns string) []deletion {
	return []deletion{
		{run: client.AppsV1().Deployments(ns).DeleteCollection},
		{run: client.AppsV1().DaemonSets(ns).DeleteCollection},
		{run: client.AppsV1().ReplicaSets(ns).DeleteCollection},
		{run: client.BatchV1().Jobs(ns).DeleteCollection},
		{run: client.CoreV1().Pods(ns).DeleteCollection},
		{run: client.PolicyV1().PodDisruptionBudgets(ns).DeleteCollection},
		{run: client.CoreV1().PersistentVolumeClaims(ns).DeleteCollection},
		{run: client.CoreV1().Secrets(ns).DeleteCollection},
		{run: client.CoreV1().ConfigMaps(ns).DeleteCollection, fields: "metadata.name!=extension-apiserver-authentication,metadata.name!=kube-root-ca.crt"},
		// The API server's own Leases carry the label apiserver.kubernetes.io/identity.
		{run: client.CoordinationV1().Leases(ns).DeleteCollection, labels: "!apiserver.kubernetes.io/identity"},
		{run: client.RbacV1().Roles(ns).DeleteCollection, labels: notBootstrapped},
		{run: client.RbacV1().RoleBindings(ns).DeleteCollection, labels: notBootstrapped},
	}
}
