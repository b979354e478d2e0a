// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/theseus-gitops/theseus/reconcile/live"
	"github.com/theseus-gitops/theseus/reconcile/logbook"
)

// Right is one thing that Theseus asks of the API server.
type Right struct {
	// Resource may name a subresource, "pods/log".
	Verb, Group, Resource string
	// Name is the one object that it is about; "" for lists, for what is created, which RBAC can't name, and for pods.
	Name string
	// Namespace is "" for what is of the whole cluster.
	Namespace string
	// For says what it is needed for.
	For string
	// Need says when.
	Need Need
}

// Need says when a right is needed.
type Need int

const (
	// Always is of what no step of its list works without.
	Always Need = iota
	// ForRole is of what is needed only where ClusterRole system:coredns lacks the rule that a newer CoreDNS needs.
	ForRole
	// ForQuotes is of what may be missing: failures are then told without CoreDNS's own words.
	ForQuotes
	// ForServingCSR is of what is needed only where the spec lets Theseus approve kubelets' requests.
	ForServingCSR
)

// String is the right as it stands in messages.
func (r Right) String() string {
	what := r.Verb + " " + r.Resource
	if r.Group != "" {
		what += "." + r.Group
	}
	if r.Name != "" {
		what += " " + r.Name
	}
	if r.Namespace != "" {
		what += " in " + r.Namespace
	}
	return what + " (" + r.For + ")"
}

// Rights is the one list of all that Theseus needs in a cluster for an upgrade of CoreDNS; docs/rights.md has it as YAML.
func Rights() []Right {
	whole := []Right{
		{Verb: "list", Resource: "nodes", For: "to see the nodes"},
		{Verb: "get", Group: rbacv1.GroupName, Resource: "clusterroles", Name: coreDNSRole, For: "to see what CoreDNS may read"},
		{Verb: "patch", Group: rbacv1.GroupName, Resource: "clusterroles", Name: coreDNSRole, For: "to let CoreDNS read EndpointSlices", Need: ForRole},
		{Verb: "escalate", Group: rbacv1.GroupName, Resource: "clusterroles", Name: coreDNSRole, For: "to give CoreDNS a right that this account lacks", Need: ForRole},
	}
	system := []Right{
		{Verb: "get", Resource: "configmaps", Name: coreDNSName, For: "to read the Corefile"},
		{Verb: "patch", Resource: "configmaps", Name: coreDNSName, For: "to write the Corefile and what the upgrade is about to do"},
		{Verb: "get", Resource: "configmaps", Name: "kubeadm-config", For: "to know what joining nodes would deploy"},
		{Verb: "patch", Resource: "configmaps", Name: "kubeadm-config", For: "to let joining nodes agree with what runs"},
		{Verb: "get", Resource: "configmaps", Name: "kubelet-config", For: "to see the kubelets' configuration"},
		{Verb: "get", Resource: "configmaps", Name: kubeProxy, For: "to see kube-proxy's configuration"},
		{Verb: "get", Group: "apps", Resource: "daemonsets", Name: kubeProxy, For: "to see kube-proxy's version"},
		{Verb: "get", Group: "apps", Resource: "deployments", Name: coreDNSName, For: "to see which CoreDNS runs"},
		{Verb: "patch", Group: "apps", Resource: "deployments", Name: coreDNSName, For: "to change the image of CoreDNS"},
		{Verb: "list", Resource: "pods", For: "to see the pods of CoreDNS"},
		{Verb: "get", Resource: "pods", For: "to watch the canary and the pods that are asked"},
		{Verb: "create", Resource: "pods", For: "to try the new CoreDNS in a canary"},
		{Verb: "delete", Resource: "pods", Name: live.DNSCanaryName, For: "to remove the canary"},
		{Verb: "create", Resource: "pods/portforward", For: "to ask the canary and the pods of CoreDNS"},
		{Verb: "get", Resource: "pods/log", For: "to quote a CoreDNS that crashed", Need: ForQuotes},
		{Verb: "create", Resource: "configmaps", For: "to make the canary's Corefile, and the logbook"},
		{Verb: "get", Resource: "configmaps", Name: live.DNSCanaryName, For: "to find what a killed run left"},
		{Verb: "delete", Resource: "configmaps", Name: live.DNSCanaryName, For: "to remove the canary's Corefile"},
		{Verb: "get", Resource: "configmaps", Name: logbook.Name, For: "to read the logbook"},
		{Verb: "patch", Resource: "configmaps", Name: logbook.Name, For: "to write the logbook"},
		{Verb: "create", Group: leaseGroup, Resource: "leases", For: "to make the lock that keeps runs apart"},
		{Verb: "get", Group: leaseGroup, Resource: "leases", Name: logbook.Name, For: "to see who holds the lock"},
		{Verb: "update", Group: leaseGroup, Resource: "leases", Name: logbook.Name, For: "to take and renew the lock"},
	}
	for i := range system {
		system[i].Namespace = logbook.Namespace
	}
	return append(whole, system...)
}

const leaseGroup = "coordination.k8s.io"

// subresource parts "pods/log".
func (r Right) subresource() (resource, sub string) {
	resource, sub, _ = strings.Cut(r.Resource, "/")
	return resource, sub
}
