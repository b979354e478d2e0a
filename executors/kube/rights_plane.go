// SPDX-License-Identifier: Apache-2.0

package kube

import (
	certificatesv1 "k8s.io/api/certificates/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/theseus-gitops/theseus/reconcile/logbook"
)

// PlaneRights is the one list of all that Theseus needs in a cluster for its control plane's machines, beside Rights;
// docs/rights.md has it as YAML.
func PlaneRights() []Right {
	out := planeRightsOnNodes()
	out = append(out, planeRightsForJoins()...)
	return append(out, planeRightsInSystem()...)
}

// planeRightsOnNodes are for looking at nodes and emptying them.
func planeRightsOnNodes() []Right {
	const csr = "certificatesigningrequests"
	return []Right{
		{Verb: "get", Resource: "nodes", For: "to look at a node before it is drained"},
		{Verb: "patch", Resource: "nodes", For: "to cordon nodes and mark those that leave"},
		{Verb: "delete", Resource: "nodes", For: "to delete the Node of a machine that is gone"},
		{Verb: "list", Resource: "pods", For: "to see what runs on control-plane nodes"},
		{Verb: "get", Resource: "pods", For: "to know whether Theseus itself runs on a node that leaves"},
		{Verb: "create", Resource: "pods/eviction", For: "to drain nodes"},
		{Verb: "list", Group: policyv1.GroupName, Resource: "poddisruptionbudgets", For: "to see what a drain has to respect"},
		{Verb: "get", Resource: "persistentvolumeclaims", For: "to see whose data lives on a node"},
		{Verb: "get", Resource: "persistentvolumes", For: "to see whose data lives on a node"},
		{Verb: "list", Group: storagev1.GroupName, Resource: "volumeattachments", For: "to wait until volumes are detached"},
		{Verb: "list", Group: certificatesv1.GroupName, Resource: csr, For: "to name a kubelet's request that nobody approved"},
		{Verb: "get", Group: certificatesv1.GroupName, Resource: csr, For: "to examine a kubelet's request", Need: ForServingCSR},
		{Verb: "update", Group: certificatesv1.GroupName, Resource: csr + "/approval", For: "to approve a kubelet's request", Need: ForServingCSR},
		{Verb: "approve", Group: certificatesv1.GroupName, Resource: "signers", Name: certificatesv1.KubeletServingSignerName, For: "to approve a kubelet's request", Need: ForServingCSR},
	}
}

// planeRightsForJoins are for what executors/kubeadm makes where it is missing. To create a role or a binding, an account must
// have all that it gives, or the verb "bind" on the role.
func planeRightsForJoins() []Right {
	what := "to let machines join"
	var out []Right
	add := func(namespace, verb, resource string, names ...string) {
		for _, name := range names {
			out = append(out, Right{Verb: verb, Group: rbacv1.GroupName, Resource: resource, Name: name, Namespace: namespace, For: what})
		}
	}
	add("", "get", "clusterroles", "kubeadm:get-nodes")
	add("", "create", "clusterroles", "")
	add("", "get", "clusterrolebindings", "kubeadm:get-nodes", "kubeadm:kubelet-bootstrap", "kubeadm:node-autoapprove-bootstrap",
		"kubeadm:node-autoapprove-certificate-rotation", "kubeadm:apiserver-kubelet-client", "kubeadm:cluster-admins")
	add("", "create", "clusterrolebindings", "")
	add("", "bind", "clusterroles", "system:node-bootstrapper", "system:certificates.k8s.io:certificatesigningrequests:nodeclient",
		"system:certificates.k8s.io:certificatesigningrequests:selfnodeclient", "system:kubelet-api-admin", "cluster-admin")
	for _, resource := range []string{"roles", "rolebindings"} {
		add(logbook.Namespace, "get", resource, "kubeadm:nodes-kubeadm-config", "kubeadm:kubelet-config")
		add(logbook.Namespace, "create", resource, "")
		add(metav1.NamespacePublic, "get", resource, "kubeadm:bootstrap-signer-clusterinfo")
		add(metav1.NamespacePublic, "create", resource, "")
	}
	return append(out, Right{Verb: "get", Resource: "configmaps", Name: "cluster-info", Namespace: metav1.NamespacePublic, For: "to know when a joining machine can trust the cluster"})
}

// planeRightsInSystem are for tokens, certificates and configuration.
func planeRightsInSystem() []Right {
	out := []Right{
		{Verb: "list", Resource: "secrets", For: "to find bootstrap tokens that a killed run left"},
		{Verb: "get", Resource: "secrets", For: "to read the certificates that a machine joins with"},
		{Verb: "create", Resource: "secrets", For: "to make bootstrap tokens"},
		{Verb: "patch", Resource: "secrets", For: "to prolong a bootstrap token while its machine is awaited"},
		{Verb: "delete", Resource: "secrets", For: "to delete what lets machines join"},
		{Verb: "delete", Resource: "pods", For: "to remove the pod that obtains certificates"},
		{Verb: "patch", Resource: "configmaps", Name: "kubelet-config", For: "to give joining kubelets a configuration that they understand"},
		{Verb: "get", Resource: "configmaps", Name: rootCA, For: "to know the API servers' certificates behind the endpoint"},
		{Verb: "patch", Group: "apps", Resource: "daemonsets", Name: kubeProxy, For: "to change the image of kube-proxy"},
	}
	for i := range out {
		out[i].Namespace = logbook.Namespace
	}
	return out
}
