// SPDX-License-Identifier: Apache-2.0

package kube_test

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/theseus-gitops/theseus/executors/kube"
)

// seed makes the objects of a kubeadm cluster that Observe reads.
func seed(t *testing.T, client *kube.Client) {
	t.Helper()
	dns, proxy := map[string]string{"k8s-app": "kube-dns"}, map[string]string{"k8s-app": "kube-proxy"}
	replicas := int32(2)
	system := func(name string, labels map[string]string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Namespace: "kube-system", Name: name, Labels: labels}
	}
	for _, object := range []any{
		&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "cp-1", Labels: map[string]string{"node-role.kubernetes.io/control-plane": ""}}},
		configMap("kubeadm-config", map[string]string{"ClusterConfiguration": "apiVersion: kubeadm.k8s.io/v1beta4\nkind: ClusterConfiguration\nkubernetesVersion: v1.36.3\n"}),
		configMap("kubelet-config", map[string]string{"kubelet": "kind: KubeletConfiguration\n"}),
		configMap("kube-proxy", map[string]string{"config.conf": "kind: KubeProxyConfiguration\n"}),
		configMap("coredns", map[string]string{"Corefile": ".:53 {\n    errors\n}\n"}),
		&appsv1.Deployment{ObjectMeta: system("coredns", dns), Spec: appsv1.DeploymentSpec{
			Replicas: &replicas,
			Selector: &metav1.LabelSelector{MatchLabels: dns},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: dns}, Spec: dnsPod()},
		}},
		&appsv1.DaemonSet{ObjectMeta: system("kube-proxy", proxy), Spec: appsv1.DaemonSetSpec{
			Selector: &metav1.LabelSelector{MatchLabels: proxy},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: proxy}, Spec: corev1.PodSpec{
				Containers: []corev1.Container{{Name: "kube-proxy", Image: "registry.k8s.io/kube-proxy:v1.36.3"}},
			}},
		}},
		&rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "system:coredns"}, Rules: []rbacv1.PolicyRule{
			{APIGroups: []string{"discovery.k8s.io"}, Resources: []string{"endpointslices"}, Verbs: []string{"list", "watch"}},
		}},
		&corev1.Pod{ObjectMeta: system("coredns-1", dns), Spec: dnsPod()},
		&corev1.Pod{ObjectMeta: system("somebody-else", nil), Spec: dnsPod()},
	} {
		create(t, client, object)
	}
}

func dnsPod() corev1.PodSpec {
	return corev1.PodSpec{
		Containers: []corev1.Container{{
			Name: "coredns", Image: "registry.k8s.io/coredns/coredns:v1.14.2",
			VolumeMounts: []corev1.VolumeMount{{Name: "config-volume", MountPath: "/etc/coredns"}},
		}},
		Volumes: []corev1.Volume{{Name: "config-volume", VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{
			LocalObjectReference: corev1.LocalObjectReference{Name: "coredns"},
			Items:                []corev1.KeyToPath{{Key: "Corefile", Path: "Corefile"}},
		}}}},
	}
}

func create(t *testing.T, client *kube.Client, object any) {
	t.Helper()
	i, ctx, no := client.Interface(), t.Context(), metav1.CreateOptions{}
	var err error
	switch o := object.(type) {
	case *corev1.Node:
		_, err = i.CoreV1().Nodes().Create(ctx, o, no)
	case *corev1.ConfigMap:
		_, err = i.CoreV1().ConfigMaps(o.Namespace).Create(ctx, o, no)
	case *corev1.Pod:
		_, err = i.CoreV1().Pods(o.Namespace).Create(ctx, o, no)
	case *appsv1.Deployment:
		_, err = i.AppsV1().Deployments(o.Namespace).Create(ctx, o, no)
	case *appsv1.DaemonSet:
		_, err = i.AppsV1().DaemonSets(o.Namespace).Create(ctx, o, no)
	case *rbacv1.ClusterRole:
		_, err = i.RbacV1().ClusterRoles().Create(ctx, o, no)
	default:
		t.Fatalf("don't know how to create a %T", object)
	}
	if err != nil {
		t.Fatal(err)
	}
}
