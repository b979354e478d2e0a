// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"time"

	"github.com/theseus-gitops/theseus/executors/etcd"
	"github.com/theseus-gitops/theseus/executors/kube"
	"github.com/theseus-gitops/theseus/executors/kubeadm"
	"github.com/theseus-gitops/theseus/executors/terraform"
	"github.com/theseus-gitops/theseus/reconcile/live"
	"github.com/theseus-gitops/theseus/reconcile/logbook"
	"github.com/theseus-gitops/theseus/reconcile/rollout"
	"github.com/theseus-gitops/theseus/reconcile/spec"
)

// controlPlane is one cluster's control plane behind what a roll looks at and does, over four adapters.
type controlPlane struct {
	client   *kube.Client
	spec     spec.ClusterSpec
	secrets  secretSource
	machines *machines
	tell     func(text string)

	// credentials and members are what this process has once it obtained them; nil before.
	credentials *kubeadm.Credentials
	members     *etcd.Client
	// seen is the last look.
	seen live.Cluster
}

// close ends connections and deletes files.
func (p *controlPlane) close() error {
	err := p.machines.close()
	if p.members != nil {
		err = errors.Join(err, p.members.Close())
	}
	return err
}

// observe adds to a look at Kubernetes what only the control plane's part asks for.
func (p *controlPlane) observe(ctx context.Context, have *live.Cluster) error {
	var err error
	if have.Machines, err = p.machines.observe(ctx); err != nil {
		return err
	}
	options := kube.PlaneOptions{Endpoint: have.Machines.Endpoint, OwnPod: ownPod()}
	if err := p.client.ObservePlane(ctx, have.Kube, options); err != nil {
		return err
	}
	if have.Kube.Plane.Credentials, err = kubeadm.CredentialsLeft(ctx, p.client.Interface()); err != nil {
		return err
	}
	if p.members != nil {
		view, err := p.members.Observe(ctx)
		if err != nil {
			return err
		}
		have.Etcd = &view
	}
	p.seen = *have
	return nil
}

// ownPod is the pod that this process runs in, as the downward API tells it; the zero value elsewhere.
func ownPod() kube.OwnPod {
	return kube.OwnPod{Namespace: os.Getenv("POD_NAMESPACE"), Name: os.Getenv("POD_NAME"), UID: os.Getenv("POD_UID")}
}

// execute carries out a step of the control plane's part. Known reports whether the step is one.
//
//nolint:cyclop // one line per step
func (p *controlPlane) execute(ctx context.Context, step rollout.Step) (known bool, err error) {
	client := p.client.Interface()
	if step.LocksState() {
		if err := p.machines.reclaim(ctx, p.seen.Kube.Book.LockHolders, p.tell); err != nil {
			return true, err
		}
	}
	switch act := step.Act.(type) {
	case rollout.CheckModule:
		err = p.machines.check(ctx)
	case rollout.ObtainCredentials:
		err = p.obtain(ctx, act)
	case rollout.DeleteCredentials:
		err = kubeadm.DeleteCredentials(ctx, client)
	case rollout.SnapshotEtcd:
		err = p.snapshot(ctx, act)
	case rollout.SyncKubeadmConfig:
		err = kubeadm.SyncKubeadmConfig(ctx, client, act)
	case rollout.EnsureJoinRBAC:
		_, err = kubeadm.EnsureJoinRBAC(ctx, client)
	case rollout.SyncKubeletConfig:
		err = kubeadm.SyncKubeletConfig(ctx, client, act)
	case rollout.AddMachine:
		err = p.add(ctx, act)
	case rollout.LeaveEndpoint:
		err = p.machines.change(ctx, terraform.Serve, act.Machine)
	case rollout.DestroyMachine:
		err = p.machines.change(ctx, terraform.Destroy, act.Machine)
	case rollout.DropEntry:
		err = p.machines.change(ctx, terraform.Drop, act.Machine)
	case rollout.StopAPIServer:
		err = kubeadm.StopAPIServer(ctx, client, act, func(ctx context.Context) bool { return p.answers(ctx, act.Node) }, p.tell)
	case rollout.MoveLeader:
		err = p.members.MoveLeader(ctx, act.To)
	case rollout.RemoveMember:
		err = p.removeMember(ctx, act)
	case rollout.AddPlaceholder:
		_, err = p.members.AddLearner(ctx, act.PeerURL)
	case rollout.RemovePlaceholder:
		err = p.members.Remove(ctx, act.Member)
	default:
		return p.executeOnNodes(ctx, step)
	}
	return true, err
}

func (p *controlPlane) executeOnNodes(ctx context.Context, step rollout.Step) (known bool, err error) {
	switch act := step.Act.(type) {
	case rollout.MarkLeaving:
		err = p.client.MarkLeaving(ctx, act)
	case rollout.UnmarkLeaving:
		err = p.client.UnmarkLeaving(ctx, act)
	case rollout.Cordon:
		err = p.client.Cordon(ctx, act)
	case rollout.Drain:
		err = p.client.Drain(ctx, act, p.tell)
	case rollout.DeleteNode:
		err = p.client.DeleteNode(ctx, act)
	case rollout.ApproveServingCSR:
		err = p.client.ApproveServingCSR(ctx, act)
	case rollout.UpdateKubeProxy:
		err = p.client.UpdateKubeProxy(ctx, act)
	default:
		return false, nil
	}
	return true, err
}

// obtain gets the cluster's certificates, and with them a way to etcd.
func (p *controlPlane) obtain(ctx context.Context, act rollout.ObtainCredentials) error {
	credentials, err := kubeadm.Obtain(ctx, p.client.Interface(), act, kubeadm.ObtainOptions{KubeadmPath: p.spec.ControlPlane.Join.KubeadmPath, Tell: p.tell})
	if err != nil {
		return err
	}
	var nodes []string
	for name, parts := range p.seen.Kube.Plane.Parts {
		if parts.Etcd.Image != "" {
			nodes = append(nodes, name)
		}
	}
	members, err := etcd.Connect(etcd.Options{
		Nodes: nodes, CACertificate: credentials.EtcdCACertificate(), CAKey: credentials.EtcdCAKey(),
		Dial: func(ctx context.Context, node string) (net.Conn, error) {
			return p.client.PortForward(ctx, logbook.Namespace, "etcd-"+node, 2379)
		},
	})
	if err != nil {
		return err
	}
	p.credentials, p.members = credentials, members
	return nil
}

// snapshot streams etcd's data to where the spec says.
func (p *controlPlane) snapshot(ctx context.Context, act rollout.SnapshotEtcd) error {
	place := p.spec.Etcd.Snapshot
	take := func() (etcd.Snapshot, string, error) {
		return p.members.SnapshotTo(ctx, etcd.Directory(place.To), act.Name)
	}
	if strings.HasPrefix(place.To, "s3://") {
		bucket, err := p.bucket(ctx)
		if err != nil {
			return &rollout.Failure{Reason: "SnapshotPlaceInvalid", Message: "etcd.snapshot: " + err.Error(), Remedy: "correct it, or its secret", Elsewhere: true}
		}
		take = func() (etcd.Snapshot, string, error) { return p.members.SnapshotToBucket(ctx, bucket, act.Name) }
	}
	taken, where, err := take()
	var unusable *etcd.PlaceError
	if errors.As(err, &unusable) {
		return &rollout.Failure{Reason: "SnapshotNotKept", Message: unusable.Error(), Remedy: unusable.Remedy, Elsewhere: true}
	}
	if err != nil {
		return err
	}
	p.tell(fmt.Sprintf("etcd snapshot of revision %d, %d bytes, in %s", taken.Revision, taken.Size, where))
	return nil
}

// bucket is the object store that the spec names.
func (p *controlPlane) bucket(ctx context.Context) (etcd.Bucket, error) {
	place := p.spec.Etcd.Snapshot
	if place.SecretRef == nil {
		return etcd.Bucket{}, errors.New("a bucket needs secretRef, with the keys accesskey and secretkey")
	}
	data, err := p.secrets.all(ctx, place.SecretRef.Namespace, place.SecretRef.Name)
	if err != nil {
		return etcd.Bucket{}, err
	}
	return etcd.ParseBucket(place.To, data)
}

// add puts what a join needs into the cluster, and has Terraform make the machine.
func (p *controlPlane) add(ctx context.Context, act rollout.AddMachine) error {
	contents := map[string]kubeadm.Secret{}
	for _, f := range p.spec.ControlPlane.Join.Files {
		data, err := p.secrets.key(ctx, f.SecretRef.Namespace, f.SecretRef.Name, f.SecretRef.Key)
		if err != nil {
			return fmt.Errorf("controlPlane.join.files %s: %w", f.Path, err)
		}
		contents[f.Path] = kubeadm.Secret(data)
	}
	userData, err := p.credentials.Prepare(ctx, p.client.Interface(), kubeadm.JoinRequest{Act: act, Spec: p.spec.ControlPlane.Join, Contents: contents})
	if err != nil {
		return err
	}
	return p.machines.add(ctx, act.Machine, terraform.Secret(userData))
}

// removeMember removes a member from etcd. That of a machine goes only when its destruction was planned and may be done.
func (p *controlPlane) removeMember(ctx context.Context, act rollout.RemoveMember) error {
	if act.Machine != "" {
		if err := p.machines.rehearseDestroy(ctx, act.Machine); err != nil {
			return err
		}
	}
	view, err := p.members.Observe(ctx)
	if err != nil {
		return err
	}
	if left := view.CountWithout(act.Member.ID); !view.Confirmed || !left.Quorum() {
		return fmt.Errorf("%s stays: without it %d of %d voters would be healthy: %w", act.Member, left.Healthy, left.Voters, rollout.ErrConflict)
	}
	return p.members.Remove(ctx, act.Member)
}

// answers reports whether the API server of a node takes connections.
func (p *controlPlane) answers(ctx context.Context, node string) bool {
	conn, err := p.client.PortForward(ctx, logbook.Namespace, "kube-apiserver-"+node, 6443)
	if err != nil {
		return false
	}
	defer conn.Close() //nolint:errcheck // nothing was sent
	_ = conn.SetReadDeadline(time.Now().Add(time.Second))
	// A TLS server waits for the client's first word; what a kubelet says of a closed port ends the connection.
	_, err = conn.Read(make([]byte, 1))
	var timeout net.Error
	return errors.As(err, &timeout) && timeout.Timeout()
}
