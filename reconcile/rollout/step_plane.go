// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"time"

	"github.com/theseus-gitops/theseus/reconcile/live"
)

// CheckModule makes a plan for the present map of machines. One that changes anything is a *Failure with the list.
type CheckModule struct{}

// ObtainCredentials has kubeadm on a control-plane node print its certificates, encrypted, for a join, and reads etcd's CA
// out of them. From then on this process can see etcd. Nothing of it stays in the cluster.
type ObtainCredentials struct {
	// Node runs the pod; it has a healthy API server.
	Node string
	// Image is one that the node has already, that of its API server.
	Image string
}

// DeleteCredentials removes all that lets a machine join: tokens and certificates of ours, and the pod if it is left.
type DeleteCredentials struct{}

// SnapshotEtcd streams a snapshot to the place that the spec names, and verifies it.
type SnapshotEtcd struct {
	// Name is the file's name, without a folder.
	Name string
}

// SyncKubeadmConfig writes key ClusterConfiguration of ConfigMap kubeadm-config.
type SyncKubeadmConfig struct{ Text, ResourceVersion string }

// EnsureJoinRBAC makes the roles and bindings that a join needs and never makes, where they are missing.
type EnsureJoinRBAC struct{}

// SyncKubeletConfig writes key kubelet of ConfigMap kubelet-config.
type SyncKubeletConfig struct{ Text, ResourceVersion string }

// AddMachine puts what a join needs into the cluster and has Terraform make the machine, which joins by itself.
type AddMachine struct {
	Machine live.Machine
	// Until is how long its token has to live.
	Until time.Time
	// Taints are those of the present control-plane nodes, nil to leave them to kubeadm.
	Taints []live.Taint
}

// ApproveServingCSR approves the certificate request of a kubelet whose names and addresses are the machine's own.
type ApproveServingCSR struct{ Name, Node string }

// Note only writes the logbook: the step's Before.
type Note struct {
	// Name is the step's.
	Name string
}

// MarkLeaving marks a node as one that Theseus removes.
type MarkLeaving struct{ Node string }

// UnmarkLeaving takes the mark back and lets pods come again.
type UnmarkLeaving struct{ Node string }

// MoveLeader gives etcd's leadership to a member, before its leader goes.
type MoveLeader struct{ To live.MemberRef }

// Cordon keeps new pods away from a node.
type Cordon struct{ Node string }

// Drain asks once for the eviction of every pod that has to leave a node, and waits a little for them to end.
type Drain struct {
	Node string
	Pods []live.Evictee
}

// LeaveEndpoint takes a machine out of the endpoint by the module.
type LeaveEndpoint struct{ Machine string }

// StopAPIServer ends the API server of a node in order, so that its clients connect elsewhere.
type StopAPIServer struct{ Node, Image string }

// RemoveMember removes a member from etcd's list. What is left must have a quorum when it is carried out.
type RemoveMember struct {
	Member live.MemberRef
	// Machine is destroyed next: its plan is computed and judged before the member goes. "" for a member that no machine brought.
	Machine string
}

// AddPlaceholder adds a learner that never starts, so that no other can be added.
type AddPlaceholder struct{ PeerURL string }

// RemovePlaceholder takes the placeholder back.
type RemovePlaceholder struct{ Member live.MemberRef }

// DestroyMachine has Terraform destroy a machine.
type DestroyMachine struct{ Machine string }

// DropEntry removes an entry of the registry whose machine was never made, or only half.
type DropEntry struct{ Machine string }

// DeleteNode deletes a Node whose machine is gone.
type DeleteNode struct{ Node string }

// UpdateKubeProxy sets the image of DaemonSet kube-proxy.
type UpdateKubeProxy struct{ Image, ResourceVersion string }

// Milestone reports whether a machine has come or gone with the step, which is worth a status commit of its own.
func (s Step) Milestone() bool {
	n, ok := s.Act.(Note)
	return ok && (n.Name == noteStable || n.Name == noteGone || n.Name == noteForgotten)
}

// Names of notes that are milestones.
const (
	noteStable    = "await-stable"
	noteGone      = "verify"
	noteForgotten = "forget-machine"
)

func (CheckModule) name() string       { return "check-module" }
func (ObtainCredentials) name() string { return "obtain-credentials" }
func (DeleteCredentials) name() string { return "delete-credentials" }
func (SnapshotEtcd) name() string      { return "snapshot-etcd" }
func (SyncKubeadmConfig) name() string { return "sync-kubeadm-config" }
func (EnsureJoinRBAC) name() string    { return "ensure-join-rbac" }
func (SyncKubeletConfig) name() string { return "sync-kubelet-config" }
func (AddMachine) name() string        { return "add-machine" }
func (ApproveServingCSR) name() string { return "approve-serving-csr" }
func (n Note) name() string            { return n.Name }
func (MarkLeaving) name() string       { return "mark-leaving" }
func (UnmarkLeaving) name() string     { return "unmark-leaving" }
func (MoveLeader) name() string        { return "move-leader" }
func (Cordon) name() string            { return "cordon" }
func (Drain) name() string             { return "drain" }
func (LeaveEndpoint) name() string     { return "leave-endpoint" }
func (StopAPIServer) name() string     { return "leave-endpoint" }
func (AddPlaceholder) name() string    { return "add-placeholder-learner" }
func (RemovePlaceholder) name() string { return "remove-placeholder-learner" }
func (DestroyMachine) name() string    { return "destroy-machine" }
func (DropEntry) name() string         { return "drop-entry" }
func (DeleteNode) name() string        { return "delete-node" }
func (UpdateKubeProxy) name() string   { return "update-kube-proxy" }

func (r RemoveMember) name() string {
	if r.Machine == "" {
		return "remove-stray-member"
	}
	return "remove-member"
}
