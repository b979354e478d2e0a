// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/theseus-gitops/theseus/executors/kube"
	"github.com/theseus-gitops/theseus/reconcile/rollout"
	"github.com/theseus-gitops/theseus/reconcile/spec"
)

// Reasons of a cluster that there is no way to before a person acts.
const (
	// accessInvalid: what spec.access points to is missing, or is no kubeconfig.
	accessInvalid = "AccessInvalid"
	// accessRefused: the kubeconfig asks for what spec.access does not allow.
	accessRefused = "AccessRefused"
)

// complete makes a kubeconfig that needs no file beside it.
const complete = "`kubectl config view --raw --flatten --minify` writes one that is complete in itself"

// access reads what is needed to connect as a spec says. A *rollout.Failure is for a person; any other error may pass.
func (c connector) access(ctx context.Context, a spec.Access) (kube.Access, error) {
	out := kube.Access{InCluster: a.InCluster, AllowExec: a.AllowExec, AllowInsecureTLS: a.AllowInsecureTLS, Version: version}
	if a.Kubeconfig == nil {
		return out, nil
	}
	var err error
	if out.Kubeconfig, err = c.kubeconfig(ctx, *a.Kubeconfig); err != nil {
		return out, err
	}
	if len(bytes.TrimSpace(out.Kubeconfig)) == 0 {
		return out, &rollout.Failure{Reason: accessInvalid, Message: wayOf(a) + " is empty", Remedy: "put a kubeconfig there; " + complete}
	}
	return out, nil
}

func (c connector) kubeconfig(ctx context.Context, k spec.Kubeconfig) ([]byte, error) {
	if k.Path != "" {
		data, err := os.ReadFile(k.Path)
		if err != nil {
			return nil, &rollout.Failure{
				Reason: accessInvalid, Message: fmt.Sprintf("access.kubeconfig.path: %v", err),
				Remedy: "put a kubeconfig there that the job can read, or correct spec.access.kubeconfig.path",
			}
		}
		return data, nil
	}
	data, err := c.secrets.key(ctx, k.SecretRef.Namespace, k.SecretRef.Name, k.SecretRef.Key)
	var missing *secretError
	if errors.As(err, &missing) {
		return nil, &rollout.Failure{Reason: accessInvalid, Message: "access.kubeconfig.secretRef: " + missing.message, Remedy: missing.remedy}
	}
	if err != nil {
		return nil, fmt.Errorf("access.kubeconfig.secretRef: %w", err)
	}
	return data, nil
}

// noAccess is the failure of an access that was read but can't be used. No other try mends it.
func noAccess(a spec.Access, err error) *rollout.Failure {
	var refused *kube.NotAllowedError
	switch {
	case errors.As(err, &refused):
		return &rollout.Failure{
			Reason: accessRefused, Message: fmt.Sprintf("%s: %s", wayOf(a), refused.Why),
			Remedy: fmt.Sprintf("%s, or set spec.%s: true", refused.Instead, refused.Field),
		}
	case a.Kubeconfig == nil:
		return &rollout.Failure{
			Reason: accessInvalid, Message: err.Error(),
			Remedy: "access.inCluster is for a job that runs in that cluster; from anywhere else give spec.access.kubeconfig",
		}
	}
	return &rollout.Failure{Reason: accessInvalid, Message: fmt.Sprintf("%s: %v", wayOf(a), err), Remedy: "correct it; " + complete}
}

// wayOf names where a cluster's kubeconfig is.
func wayOf(a spec.Access) string {
	switch k := a.Kubeconfig; {
	case k == nil:
		return "access.inCluster"
	case k.Path != "":
		return "kubeconfig " + k.Path
	default:
		return fmt.Sprintf("kubeconfig in secret %s, key %s", k.SecretRef.Name, k.SecretRef.Key)
	}
}
