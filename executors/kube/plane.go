// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"context"
	"errors"
	"slices"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/theseus-gitops/theseus/reconcile/live"
	"github.com/theseus-gitops/theseus/reconcile/logbook"
)

// rootCA is the ConfigMap in which every namespace has the cluster's CA.
const (
	rootCA    = "kube-root-ca.crt"
	rootCAKey = "ca.crt"
)

// PlaneOptions say what a look at the control plane asks beside its nodes.
type PlaneOptions struct {
	// Endpoint is where the API servers are reached, "10.0.0.1:6443"; "" leaves it out.
	Endpoint string
	// Expect are the nodes to be met through the endpoint: the look ends early once all were. Nil is every control-plane node.
	// A node that must no longer be met has to be among them, or too few attempts are made to tell.
	Expect []string
	// CA is the cluster's, in PEM. Without it, the one that the cluster publishes is taken (ConfigMap kube-root-ca.crt), else
	// the client's own; with none of them, certificates count unverified.
	CA []byte
	// OwnPod is the pod that this process runs in, wherever that is; its zero value for a process in no pod.
	OwnPod OwnPod
}

// OwnPod names one pod. Its UID is of no other one, in this cluster or another, as names are.
type OwnPod struct{ Namespace, Name, UID string }

// planeObjects is what the API server gave. pods are by control-plane node, in the order of nodes.
type planeObjects struct {
	nodes       []live.Node
	pods        [][]corev1.Pod
	budgets     []policyv1.PodDisruptionBudget
	attachments []storagev1.VolumeAttachment
	requests    []certificatesv1.CertificateSigningRequest
	own         *corev1.Pod
	root        *corev1.ConfigMap
	claims      map[claimRef]*claim
}

// ObservePlane adds have.Plane to what Observe saw, in a call for each control-plane node and three more; one each when the
// endpoint and the own pod are asked for; and two for each volume claim of a pod on these nodes. Plane.Credentials stays as
// it is: it is observed elsewhere. Errors are those of Observe; have is then as it was.
func (c *Client) ObservePlane(ctx context.Context, have *live.Kube, o PlaneOptions) error {
	var got planeObjects
	for _, n := range have.Nodes {
		if n.ControlPlane {
			got.nodes = append(got.nodes, n)
		}
	}
	got.pods = make([][]corev1.Pod, len(got.nodes))
	if err := c.together(ctx, c.planeQuestions(&got, o)); err != nil {
		return err
	}
	got.claims = claimsToRead(got)
	var met endpointSight
	questions := c.claimQuestions(got.claims)
	if o.Endpoint != "" {
		questions = append(questions, func(ctx context.Context) error {
			var err error
			met, err = c.lookThroughEndpoint(ctx, o, got, have.KubeadmConfig)
			return err
		})
	}
	if err := c.together(ctx, questions); err != nil {
		return err
	}
	plane := live.Plane{
		Parts:  map[string]live.Parts{},
		Served: met.served, EndpointDown: met.down, EndpointForeign: met.foreign,
		OwnNode: ownNode(got.own, o.OwnPod),
	}
	for i := range got.nodes {
		plane.Parts[got.nodes[i].Name] = got.parts(i, have.Nodes)
	}
	if have.Plane != nil {
		plane.Credentials = have.Plane.Credentials
	}
	have.Plane = &plane
	return nil
}

func (c *Client) planeQuestions(got *planeObjects, o PlaneOptions) []question {
	core := c.kube.CoreV1()
	questions := []question{
		listed(c, operation{verb: "list", group: policyv1.GroupName, resource: "poddisruptionbudgets"}, metav1.ListOptions{},
			c.kube.PolicyV1().PodDisruptionBudgets("").List, func(l *policyv1.PodDisruptionBudgetList) { got.budgets = l.Items }),
		listed(c, operation{verb: "list", group: storagev1.GroupName, resource: "volumeattachments"}, metav1.ListOptions{},
			c.kube.StorageV1().VolumeAttachments().List, func(l *storagev1.VolumeAttachmentList) { got.attachments = l.Items }),
		listed(c, operation{verb: "list", group: certificatesv1.GroupName, resource: "certificatesigningrequests"},
			metav1.ListOptions{FieldSelector: "spec.signerName=" + certificatesv1.KubeletServingSignerName},
			c.kube.CertificatesV1().CertificateSigningRequests().List, func(l *certificatesv1.CertificateSigningRequestList) { got.requests = l.Items }),
	}
	for i, n := range got.nodes {
		questions = append(questions, c.podsOn(n.Name, &got.pods[i]))
	}
	if o.OwnPod.UID != "" {
		get := core.Pods(o.OwnPod.Namespace).Get
		questions = append(questions, named(c, operation{"get", "", "pods", o.OwnPod.Namespace, o.OwnPod.Name}, &got.own, get))
	}
	if o.Endpoint != "" && o.CA == nil {
		ask := named(c, operation{"get", "", "configmaps", logbook.Namespace, rootCA}, &got.root, core.ConfigMaps(logbook.Namespace).Get)
		questions = append(questions, tolerant(ask))
	}
	return questions
}

func (c *Client) podsOn(node string, into *[]corev1.Pod) question {
	return listed(c, operation{verb: "list", resource: "pods"}, metav1.ListOptions{FieldSelector: "spec.nodeName=" + node},
		c.kube.CoreV1().Pods("").List, func(l *corev1.PodList) { *into = l.Items })
}

func listed[T any](c *Client, o operation, options metav1.ListOptions, list func(context.Context, metav1.ListOptions) (*T, error), use func(*T)) question {
	return func(ctx context.Context) error {
		return c.call(ctx, o, func(ctx context.Context) error {
			objects, err := list(ctx, options)
			if err == nil {
				use(objects)
			}
			return err
		})
	}
}

// tolerant is a question whose answer can be done without, where it may not be asked.
func tolerant(ask question) question {
	return func(ctx context.Context) error {
		err := ask(ctx)
		var refused *ForbiddenError
		if errors.As(err, &refused) {
			return nil
		}
		return err
	}
}

func ownNode(pod *corev1.Pod, ref OwnPod) string {
	if pod == nil || string(pod.UID) != ref.UID {
		return ""
	}
	return pod.Spec.NodeName
}

// parts are those of the node at i; all are the whole cluster's nodes.
func (g planeObjects) parts(i int, all []live.Node) live.Parts {
	node := g.nodes[i]
	out := staticParts(g.pods[i], node)
	for _, p := range g.pods[i] {
		if leavesByDrain(p) {
			out.Pods = append(out.Pods, g.evictee(p, node, all))
		}
	}
	slices.SortFunc(out.Pods, byNamespaceAndName)
	out.Volumes = g.attached(i)
	out.PendingCSR = pendingCSR(g.requests, node.Name)
	return out
}

// pendingCSR is the newest serving request of a node's kubelet that waits for somebody to decide on it.
func pendingCSR(requests []certificatesv1.CertificateSigningRequest, node string) string {
	var name string
	var newest time.Time
	for _, r := range requests {
		if r.Spec.Username != nodeUser+node || len(r.Status.Certificate) > 0 || decided(r) {
			continue
		}
		if created := r.CreationTimestamp.Time; name == "" || created.After(newest) || created.Equal(newest) && r.Name > name {
			name, newest = r.Name, created
		}
	}
	return name
}

// decided reports whether a request was approved, denied or given up.
func decided(r certificatesv1.CertificateSigningRequest) bool {
	return is(r, certificatesv1.CertificateApproved) || is(r, certificatesv1.CertificateDenied) || is(r, certificatesv1.CertificateFailed)
}
