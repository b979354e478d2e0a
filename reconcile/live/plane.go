// SPDX-License-Identifier: Apache-2.0

package live

import (
	"slices"
	"time"
)

// LeavingAnnotation on a Node marks a machine that Theseus is removing; its value is the RFC 3339 time of the mark.
const LeavingAnnotation = "theseus.dev/leaving"

// Plane is what only the roll of a control plane asks for, beside the Nodes.
type Plane struct {
	// Parts are the control-plane parts of each control-plane node, by the node's name.
	Parts map[string]Parts
	// Served are the nodes whose API server was met through the endpoint in this look, by its serving certificate.
	// Nil when the endpoint was not asked, or showed certificates of no node only: see EndpointForeign.
	Served []string
	// EndpointDown is why the endpoint did not answer at all, "" when it did.
	EndpointDown string
	// EndpointForeign describes a certificate that the endpoint showed and that is no control-plane node's, "" when there was
	// none: of a load balancer that ends TLS, of another cluster, or of an API server whose Node is gone.
	EndpointForeign string
	// OwnNode is the node that this very process runs on, "" when it runs elsewhere.
	OwnNode string
	// Credentials tells that something which lets a machine join is still in the cluster: a token or certificates
	// of ours, or the pod that obtains them.
	Credentials bool
}

// Parts is what makes a node a part of the control plane.
type Parts struct {
	APIServer, ControllerManager, Scheduler, Etcd Part
	// Pods are those that a drain has to evict, sorted by namespace and name.
	Pods []Evictee
	// Volumes are attached to the node, by the names of their VolumeAttachments.
	Volumes []string
	// PendingCSR is a certificate request of its kubelet that nobody approved, "" when there is none: no
	// port-forward to the node works before.
	PendingCSR string
}

// Part is one static pod.
type Part struct {
	// Image is "" when there is no such pod.
	Image string
	Ready bool
	// Why says why it is not ready, as far as the pod tells.
	Why string
}

// Healthy says that all four static pods are ready.
func (p Parts) Healthy() bool {
	return p.APIServer.Ready && p.ControllerManager.Ready && p.Scheduler.Ready && p.Etcd.Ready
}

// Unhealthy are the names of the parts that are not ready, with why.
func (p Parts) Unhealthy() []string {
	var out []string
	for _, part := range []struct {
		name string
		Part
	}{{"etcd", p.Etcd}, {"kube-apiserver", p.APIServer}, {"kube-controller-manager", p.ControllerManager}, {"kube-scheduler", p.Scheduler}} {
		switch {
		case part.Ready:
		case part.Image == "":
			out = append(out, part.name+" has no pod")
		case part.Why != "":
			out = append(out, part.name+": "+part.Why)
		default:
			out = append(out, part.name+" is not ready")
		}
	}
	return out
}

// Evictee is a pod that must leave a node before its machine goes.
type Evictee struct {
	Namespace, Name string
	// Terminating pods were evicted and have not ended yet; Since is when that began.
	Terminating bool
	Since       time.Time
	// Budgets are PodDisruptionBudgets over it that allow no eviction now; two over one pod never do.
	Budgets []string
	// Unmanaged pods are brought back by no controller. EmptyDir pods lose data, as do those with LocalVolumes, whose
	// data lives on this node only.
	Unmanaged, EmptyDir bool
	LocalVolumes        []string
	// NowhereElse is why no other node could take the pod, "" when one could.
	NowhereElse string
}

// String names the pod.
func (e Evictee) String() string { return e.Namespace + "/" + e.Name }

// ServedBy reports whether the API server of a node was met through the endpoint.
func (p Plane) ServedBy(node string) bool { return slices.Contains(p.Served, node) }
