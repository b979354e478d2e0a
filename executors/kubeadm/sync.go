// SPDX-License-Identifier: Apache-2.0

// Package kubeadm keeps what kubeadm stores in a cluster in agreement with what runs there, and lets new machines join.
// It does not decide what is wanted (package rollout does) and keeps no originals (the pass does, before it calls).
// Start at SyncDNS and UserData; the texts themselves are edited by package kubeadmconfig.
package kubeadm

import (
	"context"
	"encoding/json"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/theseus-gitops/theseus/reconcile/kubeadmconfig"
	"github.com/theseus-gitops/theseus/reconcile/rollout"
)

const (
	namespace    = "kube-system"
	configName   = "kubeadm-config"
	configKey    = "ClusterConfiguration"
	fieldManager = "theseus"
	where        = "configmaps/" + configName + " in " + namespace
)

// SyncDNS writes the dns section of kubeadm-config and touches nothing else of it. It writes nothing when the section
// is as wanted. A ConfigMap that changed since the step was decided is rollout.ErrConflict.
func SyncDNS(ctx context.Context, client kubernetes.Interface, act rollout.SyncDNSConfig) error {
	return edit(ctx, client, configName, configKey, act.ResourceVersion, func(text string) (string, error) {
		return kubeadmconfig.EditDNS(text, act.DNS)
	})
}

// SyncKubeadmConfig writes the ClusterConfiguration of kubeadm-config, under the same conditions.
func SyncKubeadmConfig(ctx context.Context, client kubernetes.Interface, act rollout.SyncKubeadmConfig) error {
	return edit(ctx, client, configName, configKey, act.ResourceVersion, func(string) (string, error) { return act.Text, nil })
}

// SyncKubeletConfig writes the KubeletConfiguration of kubelet-config, under the same conditions.
func SyncKubeletConfig(ctx context.Context, client kubernetes.Interface, act rollout.SyncKubeletConfig) error {
	return edit(ctx, client, "kubelet-config", "kubelet", act.ResourceVersion, func(string) (string, error) { return act.Text, nil })
}

// edit changes one key of a ConfigMap of kubeadm's; the others stay.
func edit(ctx context.Context, client kubernetes.Interface, name, key, resourceVersion string, change func(text string) (string, error)) error {
	where := "configmaps/" + name + " in " + namespace
	if resourceVersion == "" {
		return fmt.Errorf("%s: the step carries no resourceVersion, so it could overwrite what it has not seen", where)
	}
	config, err := client.CoreV1().ConfigMaps(namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return explain(where, "get", err)
	}
	if config.ResourceVersion != resourceVersion {
		return fmt.Errorf("%s: %w: it is at resourceVersion %s, the step was decided at %s", where, rollout.ErrConflict, config.ResourceVersion, resourceVersion)
	}
	text, ok := config.Data[key]
	if !ok {
		return fmt.Errorf("%s has no key %s; restore it with `kubeadm init phase upload-config all`", where, key)
	}
	edited, err := change(text)
	if err != nil {
		return fmt.Errorf("%s: key %s: %w", where, key, err)
	}
	if edited == text {
		return nil
	}
	patch, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"resourceVersion": resourceVersion},
		"data":     map[string]any{key: edited},
	})
	if err != nil {
		return fmt.Errorf("%s: %w", where, err)
	}
	_, err = client.CoreV1().ConfigMaps(namespace).Patch(ctx, name, types.MergePatchType, patch, metav1.PatchOptions{FieldManager: fieldManager})
	return explain(where, "patch", err)
}

func explain(where, verb string, err error) error {
	switch {
	case err == nil:
		return nil
	case apierrors.IsConflict(err):
		return fmt.Errorf("%s: %w: %w", where, rollout.ErrConflict, err)
	case apierrors.IsNotFound(err):
		return fmt.Errorf("%s does not exist; restore it with `kubeadm init phase upload-config all`: %w", where, err)
	case apierrors.IsForbidden(err):
		return fmt.Errorf("%s: the API server refused to %s it; if the account lacks the right, grant verb %s on configmaps: %w", where, verb, verb, err)
	}
	return fmt.Errorf("%s: %s: %w", where, verb, err)
}
