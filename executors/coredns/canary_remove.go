// SPDX-License-Identifier: Apache-2.0

package coredns

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/theseus-gitops/theseus/reconcile/rollout"
)

// RemoveCanary deletes what a killed run left of its canary.
func (e *Executor) RemoveCanary(ctx context.Context) error { return e.removeCanary(ctx) }

// removeCanary deletes what is left of a canary, this run's or that of one that was killed, and refuses to touch
// anybody else's object of its name. Nothing is left when it returns nil.
func (e *Executor) removeCanary(ctx context.Context) error {
	if err := e.removePod(ctx); err != nil {
		return err
	}
	configs := e.Client.CoreV1().ConfigMaps(namespace)
	config, err := configs.Get(ctx, canaryName, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return call{"get", "configmaps", canaryName}.explain(err)
	}
	if err := ours("configmaps", config.ObjectMeta); err != nil {
		return err
	}
	err = configs.Delete(ctx, canaryName, metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions(string(config.UID))})
	if apierrors.IsNotFound(err) {
		return nil
	}
	return call{"delete", "configmaps", canaryName}.explain(err)
}

func (e *Executor) removePod(ctx context.Context) error {
	pods := e.Client.CoreV1().Pods(namespace)
	deadline, cancel := context.WithTimeout(ctx, e.CleanUpTimeout)
	defer cancel()
	for {
		pod, err := pods.Get(deadline, canaryName, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return nil
		}
		if err != nil {
			return call{"get", "pods", canaryName}.explain(err)
		}
		if err := ours("pods", pod.ObjectMeta); err != nil {
			return err
		}
		// Without a grace period the object goes at once, also on a node that is away. Nobody depends on the canary.
		now := int64(0)
		err = pods.Delete(deadline, canaryName, metav1.DeleteOptions{GracePeriodSeconds: &now, Preconditions: metav1.NewUIDPreconditions(string(pod.UID))})
		if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
			return call{"delete", "pods", canaryName}.explain(err)
		}
		if err := sleep(deadline, e.Poll/10); err != nil {
			return fmt.Errorf("pods/%s in %s does not go away (finalizers: %q): %w", canaryName, namespace, pod.Finalizers, err)
		}
	}
}

// ours refuses an object that Theseus did not make.
func ours(resource string, meta metav1.ObjectMeta) error {
	var missing []string
	labels := canaryLabels()
	for _, key := range slices.Sorted(maps.Keys(labels)) {
		if meta.Labels[key] != labels[key] {
			missing = append(missing, key+"="+labels[key])
		}
	}
	if len(missing) == 0 {
		return nil
	}
	return &rollout.Failure{
		Reason:    "DNSCanaryNameTaken",
		Message:   fmt.Sprintf("%s/%s in %s exists, but is not Theseus's: it lacks %s", resource, canaryName, namespace, strings.Join(missing, " and ")),
		Remedy:    fmt.Sprintf("rename or delete it (kubectl -n %s delete %s %s); the next pass then goes on", namespace, resource, canaryName),
		Elsewhere: true,
	}
}
