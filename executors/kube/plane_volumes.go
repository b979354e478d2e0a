// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"context"
	"errors"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/theseus-gitops/theseus/reconcile/live"
)

// claimRef names a PersistentVolumeClaim.
type claimRef struct{ namespace, name string }

// claim is what a claim turned out to be.
type claim struct {
	// volumeName is the PersistentVolume's, "" when none is bound.
	volumeName string
	volume     *corev1.PersistentVolume
	// refused is the right that lacks to tell.
	refused *ForbiddenError
}

// claimsOf are the claims of a pod, those that its ephemeral volumes make included.
func claimsOf(p corev1.Pod) []claimRef {
	var out []claimRef
	for _, v := range p.Spec.Volumes {
		switch {
		case v.PersistentVolumeClaim != nil:
			out = append(out, claimRef{p.Namespace, v.PersistentVolumeClaim.ClaimName})
		case v.Ephemeral != nil:
			out = append(out, claimRef{p.Namespace, p.Name + "-" + v.Name})
		}
	}
	return out
}

// claimsToRead are the claims of pods to be evicted, and of those that stay where volumes are attached.
func claimsToRead(g planeObjects) map[claimRef]*claim {
	out := map[claimRef]*claim{}
	for i, pods := range g.pods {
		attached := len(g.attached(i)) > 0
		for _, p := range pods {
			if leavesByDrain(p) || attached && staysAttached(p) {
				for _, ref := range claimsOf(p) {
					out[ref] = &claim{}
				}
			}
		}
	}
	return out
}

// staysAttached says that a drain leaves the pod, and so its volumes, on the node (kubernetes-sigs/cluster-api#6285).
func staysAttached(p corev1.Pod) bool { return (ofDaemonSet(p) || mirror(p)) && !finished(p) }

// claimQuestions read each claim, and its volume. A missing right is kept in the claim: a plan can do without.
func (c *Client) claimQuestions(claims map[claimRef]*claim) []question {
	var out []question
	for ref, into := range claims {
		out = append(out, func(ctx context.Context) error {
			err := c.readClaim(ctx, ref, into)
			if errors.As(err, &into.refused) {
				return nil
			}
			return err
		})
	}
	return out
}

func (c *Client) readClaim(ctx context.Context, ref claimRef, into *claim) error {
	var object *corev1.PersistentVolumeClaim
	o := operation{"get", "", "persistentvolumeclaims", ref.namespace, ref.name}
	if err := named(c, o, &object, c.kube.CoreV1().PersistentVolumeClaims(ref.namespace).Get)(ctx); err != nil {
		return err
	}
	if object == nil || object.Spec.VolumeName == "" {
		return nil
	}
	into.volumeName = object.Spec.VolumeName
	return named(c, operation{"get", "", "persistentvolumes", "", into.volumeName}, &into.volume, c.kube.CoreV1().PersistentVolumes().Get)(ctx)
}

// localVolumes name the claims of a pod whose data lives on the node only. A claim that may not be read is one of them, for
// want of knowledge.
func (g planeObjects) localVolumes(p corev1.Pod, node live.Node) []string {
	var out []string
	for _, ref := range claimsOf(p) {
		switch found := g.claims[ref]; {
		case found == nil:
		case found.refused != nil:
			out = append(out, "claim "+ref.name+", of which is unknown where its data lives: "+found.refused.Error())
		case found.volume != nil && livesOn(*found.volume, node):
			out = append(out, "claim "+ref.name+" (volume "+found.volumeName+")")
		}
	}
	slices.Sort(out)
	return out
}

// livesOn reports whether a volume is a part of the node: a local disk, or one that its driver binds to the node itself. One
// that is bound to the node's zone is not.
func livesOn(v corev1.PersistentVolume, node live.Node) bool {
	if v.Spec.Local != nil || v.Spec.HostPath != nil {
		return true
	}
	return v.Spec.NodeAffinity != nil && v.Spec.NodeAffinity.Required != nil && !affine(v.Spec.NodeAffinity.Required, successor(node))
}

// attached are the VolumeAttachments of the node at i that a drain can end. Before the claims are read, these are all.
func (g planeObjects) attached(i int) []string {
	stays := map[string]bool{}
	for _, p := range g.pods[i] {
		for _, ref := range claimsOf(p) {
			if found := g.claims[ref]; found != nil && staysAttached(p) {
				stays[found.volumeName] = true
			}
		}
	}
	var out []string
	for _, a := range g.attachments {
		volume := a.Spec.Source.PersistentVolumeName
		if a.Spec.NodeName == g.nodes[i].Name && (volume == nil || !stays[*volume]) {
			out = append(out, a.Name)
		}
	}
	slices.Sort(out)
	return out
}
