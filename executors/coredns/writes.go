// SPDX-License-Identifier: Apache-2.0

package coredns

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/theseus-gitops/theseus/reconcile/live"
	"github.com/theseus-gitops/theseus/reconcile/rollout"
)

// EnsureRole appends the rule for EndpointSlices to ClusterRole system:coredns, if it is not granted yet.
// A changed role is rollout.ErrConflict.
func (e *Executor) EnsureRole(ctx context.Context, act rollout.EnsureDNSRole) error {
	get := call{"get", "clusterroles", roleName}
	role, err := e.Client.RbacV1().ClusterRoles().Get(ctx, roleName, metav1.GetOptions{})
	if err != nil {
		return get.explain(err)
	}
	if err := get.atVersion(role.ResourceVersion, act.ResourceVersion); err != nil {
		return err
	}
	seen := live.DNSRole{}
	for _, r := range role.Rules {
		seen.Rules = append(seen.Rules, live.PolicyRule{APIGroups: r.APIGroups, Resources: r.Resources, Verbs: r.Verbs})
	}
	if seen.ReadsEndpointSlices() {
		return nil
	}
	rule := rbacv1.PolicyRule{APIGroups: []string{"discovery.k8s.io"}, Resources: []string{"endpointslices"}, Verbs: []string{"list", "watch"}}
	path, value := "/rules/-", any(rule)
	if len(role.Rules) == 0 {
		path, value = "/rules", []rbacv1.PolicyRule{rule}
	}
	// A resourceVersion that is replaced by an outdated one is answered with 409, as in an update. A failed
	// "test" operation would be 422, which an invalid object is too.
	patch, err := json.Marshal([]map[string]any{
		{"op": "replace", "path": "/metadata/resourceVersion", "value": act.ResourceVersion},
		{"op": "add", "path": path, "value": value},
	})
	if err != nil {
		return fmt.Errorf("clusterroles/%s: %w", roleName, err)
	}
	_, err = e.Client.RbacV1().ClusterRoles().Patch(ctx, roleName, types.JSONPatchType, patch, metav1.PatchOptions{FieldManager: fieldManager})
	return call{"patch", "clusterroles", roleName}.explain(err)
}

// WriteCorefile sets one key of ConfigMap coredns and touches nothing else of it.
func (e *Executor) WriteCorefile(ctx context.Context, act rollout.WriteCorefile) error {
	if act.Key != live.CorefileKey && act.Key != live.CorefileBackupKey {
		return fmt.Errorf("configmaps/%s in %s: key %q is neither %s nor %s", objectName, namespace, act.Key, live.CorefileKey, live.CorefileBackupKey)
	}
	return e.patchConfig(ctx, act.ResourceVersion, map[string]any{"data": map[string]any{act.Key: act.Text}})
}

// RecordRun writes the annotation with the run to ConfigMap coredns.
func (e *Executor) RecordRun(ctx context.Context, act rollout.RecordDNSRun) error {
	return e.record(ctx, act.Run, act.ResourceVersion)
}

func (e *Executor) record(ctx context.Context, run live.DNSRun, resourceVersion string) error {
	text, err := json.Marshal(run)
	if err != nil {
		return fmt.Errorf("annotation %s: %w", live.DNSRunAnnotation, err)
	}
	return e.patchConfig(ctx, resourceVersion, map[string]any{
		"metadata": map[string]any{"annotations": map[string]any{live.DNSRunAnnotation: string(text)}},
	})
}

// patchConfig sends a merge patch that holds only for the given resourceVersion.
func (e *Executor) patchConfig(ctx context.Context, resourceVersion string, change map[string]any) error {
	what := call{"patch", "configmaps", objectName}
	body, err := precondition(what, change, resourceVersion)
	if err != nil {
		return err
	}
	_, err = e.Client.CoreV1().ConfigMaps(namespace).Patch(ctx, objectName, types.MergePatchType, body, metav1.PatchOptions{FieldManager: fieldManager})
	return what.explain(err)
}

// precondition is a merge patch as JSON, with the resourceVersion that it was decided at.
func precondition(what call, change map[string]any, resourceVersion string) ([]byte, error) {
	if resourceVersion == "" {
		return nil, what.unconditional()
	}
	meta, ok := change["metadata"].(map[string]any)
	if !ok {
		meta = map[string]any{}
		change["metadata"] = meta
	}
	meta["resourceVersion"] = resourceVersion
	body, err := json.Marshal(change)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", what.object(), err)
	}
	return body, nil
}

// Patch changes the pod template of Deployment coredns in one patch that names nothing but what changes, so
// that fields which this program does not know survive. The time goes on the Deployment itself: on the
// template it would start a rollout of its own.
func (e *Executor) Patch(ctx context.Context, act rollout.PatchDNS) error {
	what := call{"patch", "deployments", objectName}
	deploy, err := e.deployment(ctx)
	if err != nil {
		return err
	}
	if err := what.atVersion(deploy.ResourceVersion, act.ResourceVersion); err != nil {
		return err
	}
	// By strategic merge a name that is not there would be added as a container or volume of its own.
	template := map[string]any{}
	if act.Image != "" {
		if container(deploy.Spec.Template.Spec.Containers) == nil {
			return noContainer(deploy)
		}
		template["containers"] = []any{map[string]any{"name": containerName, "image": act.Image}}
	}
	if act.Volume != "" {
		if !mounts(deploy, act.Volume) {
			return fmt.Errorf("%s: its pod template has no volume %q of ConfigMap %s", what.object(), act.Volume, objectName)
		}
		template["volumes"] = []any{map[string]any{"name": act.Volume, "configMap": map[string]any{"items": items(act.Items)}}}
	}
	body, err := precondition(what, map[string]any{
		"metadata": map[string]any{"annotations": map[string]any{live.DNSChangedAnnotation: e.Now().UTC().Format(time.RFC3339)}},
		"spec":     map[string]any{"template": map[string]any{"spec": template}},
	}, act.ResourceVersion)
	if err != nil {
		return err
	}
	_, err = e.Client.AppsV1().Deployments(namespace).Patch(ctx, objectName, types.StrategicMergePatchType, body, metav1.PatchOptions{FieldManager: fieldManager})
	return what.explain(err)
}

// items is the new list; nil, which removes it, for a volume of all keys.
func items(list []live.VolumeItem) any {
	if list == nil {
		return nil
	}
	out := make([]corev1.KeyToPath, 0, len(list))
	for _, it := range list {
		out = append(out, corev1.KeyToPath{Key: it.Key, Path: it.Path, Mode: it.Mode})
	}
	return out
}

func (e *Executor) deployment(ctx context.Context) (*appsv1.Deployment, error) {
	deploy, err := e.Client.AppsV1().Deployments(namespace).Get(ctx, objectName, metav1.GetOptions{})
	if err != nil {
		return nil, call{"get", "deployments", objectName}.explain(err)
	}
	return deploy, nil
}

// container finds the CoreDNS container by its name, as kubeadm and Cluster API do; nil when there is none.
func container(list []corev1.Container) *corev1.Container {
	i := slices.IndexFunc(list, func(c corev1.Container) bool { return c.Name == containerName })
	if i < 0 {
		return nil
	}
	return &list[i]
}

func noContainer(deploy *appsv1.Deployment) error {
	var names []string
	for _, c := range deploy.Spec.Template.Spec.Containers {
		names = append(names, c.Name)
	}
	return fmt.Errorf("deployments/%s in %s has no container named %s, only %q", objectName, namespace, containerName, names)
}

func mounts(deploy *appsv1.Deployment, volume string) bool {
	return slices.ContainsFunc(deploy.Spec.Template.Spec.Volumes, func(v corev1.Volume) bool {
		return v.Name == volume && v.ConfigMap != nil && v.ConfigMap.Name == objectName
	})
}
