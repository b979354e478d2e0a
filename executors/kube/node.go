// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/theseus-gitops/theseus/reconcile/live"
	"github.com/theseus-gitops/theseus/reconcile/rollout"
)

// nodeUser is what comes before a node's name in the name of its kubelet's user.
const nodeUser = "system:node:"

// Cordon keeps new pods away from a node. A node that is gone is rollout.ErrConflict, as in all of these: decide again.
func (c *Client) Cordon(ctx context.Context, act rollout.Cordon) error {
	return c.patchNode(ctx, act.Node, map[string]any{"spec": map[string]any{"unschedulable": true}})
}

// MarkLeaving writes live.LeavingAnnotation, with the time.
func (c *Client) MarkLeaving(ctx context.Context, act rollout.MarkLeaving) error {
	return c.patchNode(ctx, act.Node, map[string]any{"metadata": map[string]any{
		"annotations": map[string]any{live.LeavingAnnotation: c.clock().UTC().Format(time.RFC3339)},
	}})
}

// UnmarkLeaving takes the mark away and uncordons the node, in one write.
func (c *Client) UnmarkLeaving(ctx context.Context, act rollout.UnmarkLeaving) error {
	return c.patchNode(ctx, act.Node, map[string]any{
		"metadata": map[string]any{"annotations": map[string]any{live.LeavingAnnotation: nil}},
		"spec":     map[string]any{"unschedulable": nil},
	})
}

func (c *Client) patchNode(ctx context.Context, name string, change map[string]any) error {
	patch, err := json.Marshal(change)
	if err != nil {
		return fmt.Errorf("node %s: %w", name, err)
	}
	err = c.call(ctx, operation{"patch", "", "nodes", "", name}, func(ctx context.Context) error {
		_, err := c.kube.CoreV1().Nodes().Patch(ctx, name, types.MergePatchType, patch, metav1.PatchOptions{FieldManager: fieldManager})
		return err
	})
	if absent(err) {
		return fmt.Errorf("node %s is gone: %w", name, rollout.ErrConflict)
	}
	return err
}

// DeleteNode deletes a Node. One that is gone already is what was wanted.
func (c *Client) DeleteNode(ctx context.Context, act rollout.DeleteNode) error {
	err := c.call(ctx, operation{"delete", "", "nodes", "", act.Node}, func(ctx context.Context) error {
		return c.kube.CoreV1().Nodes().Delete(ctx, act.Node, metav1.DeleteOptions{})
	})
	if absent(err) {
		return nil
	}
	return err
}

// UpdateKubeProxy changes the image of container kube-proxy, and nothing else. A DaemonSet that changed, or went, since the
// decision is rollout.ErrConflict.
func (c *Client) UpdateKubeProxy(ctx context.Context, act rollout.UpdateKubeProxy) error {
	const what = "daemonset/" + kubeProxy + " in namespace kube-system"
	sets := c.kube.AppsV1().DaemonSets(metav1.NamespaceSystem)
	o := operation{"get", "apps", "daemonsets", metav1.NamespaceSystem, kubeProxy}
	err := c.call(ctx, o, func(ctx context.Context) error {
		present, err := sets.Get(ctx, kubeProxy, metav1.GetOptions{})
		if err != nil {
			return err
		}
		if present.ResourceVersion != act.ResourceVersion {
			return rollout.ErrConflict
		}
		// A strategic merge would add the container.
		if containerOf(present.Spec.Template.Spec, kubeProxy) == nil {
			return fmt.Errorf("it has no container %s", kubeProxy)
		}
		return nil
	})
	if err == nil {
		var patch []byte
		patch, err = json.Marshal(map[string]any{
			"metadata": map[string]any{"resourceVersion": act.ResourceVersion},
			"spec": map[string]any{"template": map[string]any{"spec": map[string]any{
				"containers": []map[string]any{{"name": kubeProxy, "image": act.Image}},
			}}},
		})
		if err != nil {
			return fmt.Errorf("%s: %w", what, err)
		}
		o.verb = "patch"
		err = c.call(ctx, o, func(ctx context.Context) error {
			_, err := sets.Patch(ctx, kubeProxy, types.StrategicMergePatchType, patch, metav1.PatchOptions{FieldManager: fieldManager})
			return err
		})
	}
	if apierrors.IsConflict(err) || absent(err) {
		return fmt.Errorf("%s: %w: %w", what, rollout.ErrConflict, err)
	}
	return err
}
