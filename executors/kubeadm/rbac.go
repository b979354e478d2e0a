// SPDX-License-Identifier: Apache-2.0

package kubeadm

import (
	"context"
	"errors"
	"fmt"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

const nodesGroup = "system:nodes"

// configReader lets subjects read one ConfigMap, by a Role and a RoleBinding of one name.
type configReader struct {
	name, namespace, config string
	subjects                []rbacv1.Subject
}

// configReaders and clusterBindings are the rights that `kubeadm init` and `kubeadm upgrade apply` give, and `kubeadm join`
// relies on: cmd/kubeadm/app/phases/{uploadconfig,kubelet,bootstraptoken} and constants of kubernetes/kubernetes v1.37.2.
func configReaders() []configReader {
	joiners := []rbacv1.Subject{subject(rbacv1.GroupKind, tokenGroup), subject(rbacv1.GroupKind, nodesGroup)}
	return []configReader{
		{"kubeadm:nodes-kubeadm-config", namespace, configName, joiners},
		{"kubeadm:kubelet-config", namespace, "kubelet-config", joiners},
		{"kubeadm:bootstrap-signer-clusterinfo", infoNamespace, infoName, []rbacv1.Subject{subject(rbacv1.UserKind, "system:anonymous")}},
	}
}

func clusterBindings() []*rbacv1.ClusterRoleBinding {
	return []*rbacv1.ClusterRoleBinding{
		clusterBinding("kubeadm:get-nodes", "kubeadm:get-nodes", rbacv1.GroupKind, tokenGroup),
		clusterBinding("kubeadm:kubelet-bootstrap", "system:node-bootstrapper", rbacv1.GroupKind, tokenGroup),
		clusterBinding("kubeadm:node-autoapprove-bootstrap", "system:certificates.k8s.io:certificatesigningrequests:nodeclient", rbacv1.GroupKind, tokenGroup),
		clusterBinding("kubeadm:node-autoapprove-certificate-rotation", "system:certificates.k8s.io:certificatesigningrequests:selfnodeclient", rbacv1.GroupKind, nodesGroup),
		// Without it a new API server gets no logs and no exec from kubelets: recent kubeadm issues its certificate without
		// a group (kubernetes/kubeadm#3310, kubernetes-sigs/cluster-api#13770).
		clusterBinding("kubeadm:apiserver-kubelet-client", "system:kubelet-api-admin", rbacv1.UserKind, "kube-apiserver-kubelet-client"),
		// Without it admin.conf of a new machine has no rights: from 1.29 on its group is no longer system:masters
		// (kubernetes/kubeadm#3000, kubernetes-sigs/cluster-api#9682).
		clusterBinding("kubeadm:cluster-admins", "cluster-admin", rbacv1.GroupKind, "kubeadm:cluster-admins"),
	}
}

func subject(kind, name string) rbacv1.Subject {
	return rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: kind, Name: name}
}

func clusterBinding(name, role, kind, who string) *rbacv1.ClusterRoleBinding {
	return &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
		Subjects:   []rbacv1.Subject{subject(kind, who)},
	}
}

// EnsureJoinRBAC makes the roles and bindings that a join needs, where they are missing. What is there is left as it is,
// whatever it says. It returns what it made and goes on after a failure.
func EnsureJoinRBAC(ctx context.Context, client kubernetes.Interface) ([]string, error) {
	var m maker
	for _, r := range configReaders() {
		meta := metav1.ObjectMeta{Name: r.name, Namespace: r.namespace}
		roles, bindings := client.RbacV1().Roles(r.namespace), client.RbacV1().RoleBindings(r.namespace)
		ensure(ctx, &m, "roles", r.namespace, &rbacv1.Role{ObjectMeta: meta, Rules: []rbacv1.PolicyRule{
			{Verbs: []string{"get"}, APIGroups: []string{""}, Resources: []string{"configmaps"}, ResourceNames: []string{r.config}},
		}}, roles.Get, roles.Create)
		ensure(ctx, &m, "rolebindings", r.namespace, &rbacv1.RoleBinding{
			ObjectMeta: meta, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: r.name}, Subjects: r.subjects,
		}, bindings.Get, bindings.Create)
	}
	roles, bindings := client.RbacV1().ClusterRoles(), client.RbacV1().ClusterRoleBindings()
	ensure(ctx, &m, "clusterroles", "", &rbacv1.ClusterRole{
		ObjectMeta: metav1.ObjectMeta{Name: "kubeadm:get-nodes"},
		Rules:      []rbacv1.PolicyRule{{Verbs: []string{"get"}, APIGroups: []string{""}, Resources: []string{"nodes"}}},
	}, roles.Get, roles.Create)
	for _, b := range clusterBindings() {
		ensure(ctx, &m, "clusterrolebindings", "", b, bindings.Get, bindings.Create)
	}
	return m.made, errors.Join(m.errs...)
}

type maker struct {
	made []string
	errs []error
}

// ensure reads first: to create what exists already needs rights that nobody should have to give for nothing.
func ensure[T metav1.Object](ctx context.Context, m *maker, resource, ns string, wanted T,
	get func(context.Context, string, metav1.GetOptions) (T, error), create func(context.Context, T, metav1.CreateOptions) (T, error),
) {
	where := resource + "/" + wanted.GetName()
	if ns != "" {
		where += " in " + ns
	}
	_, err := get(ctx, wanted.GetName(), metav1.GetOptions{})
	if err == nil {
		return
	}
	verb := "get"
	if apierrors.IsNotFound(err) {
		verb = "create"
		_, err = create(ctx, wanted, metav1.CreateOptions{FieldManager: fieldManager})
	}
	switch {
	case err == nil:
		m.made = append(m.made, where)
	case apierrors.IsAlreadyExists(err):
	case apierrors.IsForbidden(err):
		m.errs = append(m.errs, fmt.Errorf("%s: the API server refused to %s it; grant verb %s on %s, and to create one all rights that it gives: %w", where, verb, verb, resource, err))
	default:
		m.errs = append(m.errs, fmt.Errorf("%s: %s: %w", where, verb, err))
	}
}
