// SPDX-License-Identifier: Apache-2.0

package coredns

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// awaitReady waits until the canary is Ready, and not longer than it takes to be sure that it won't be.
func (e *Executor) awaitReady(ctx context.Context, pod *corev1.Pod, image string) error {
	timeout := time.NewTimer(e.ReadyTimeout)
	defer timeout.Stop()
	var pullingSince time.Time
	for {
		now, err := e.lookAtCanary(ctx, pod)
		if ctx.Err() != nil {
			return fmt.Errorf("CoreDNS canary: waiting for it to be Ready: %w", context.Cause(ctx))
		}
		var gone *goneError
		if errors.As(err, &gone) {
			return err
		}
		v := verdict{state: starting}
		if err == nil {
			v = verdictOn(now)
		}
		switch v.state {
		case ready:
			return nil
		case broken:
			return failed(fmt.Sprintf("CoreDNS canary of %s failed: %s%s", image, v.why, e.evidence(ctx, now)))
		case disrupted:
			return disruption(v, now)
		case pulling:
			if pullingSince.IsZero() {
				pullingSince = time.Now()
			}
			if time.Since(pullingSince) >= e.PullPatience {
				return failed(fmt.Sprintf("CoreDNS canary: image %s could not be pulled for %s: %s%s", image, e.PullPatience, v.why, onNode(now)))
			}
		case starting, unplaced:
			pullingSince = time.Time{}
		}
		select {
		case <-timeout.C:
			return e.neverReady(ctx, v, now, err, image)
		default:
		}
		if err := sleep(ctx, e.Poll); err != nil {
			return fmt.Errorf("CoreDNS canary: waiting for it to be Ready: %w", err)
		}
	}
}

// neverReady is the end of the wait. Only what the target itself may be the cause of is a failure of it.
func (e *Executor) neverReady(ctx context.Context, v verdict, pod *corev1.Pod, lookErr error, image string) error {
	if lookErr != nil {
		return fmt.Errorf("CoreDNS canary: not seen Ready within %s: %w", e.ReadyTimeout, lookErr)
	}
	if v.state == unplaced {
		return fmt.Errorf("CoreDNS canary: no node took it within %s: %s; the target was not tried", e.ReadyTimeout, v.why)
	}
	return failed(fmt.Sprintf("CoreDNS canary of %s was not Ready within %s: %s%s", image, e.ReadyTimeout, v.why, e.evidence(ctx, pod)))
}

func disruption(v verdict, pod *corev1.Pod) error {
	return fmt.Errorf("CoreDNS canary was taken away before it could be judged: %s%s", v.why, onNode(pod))
}

// goneError says that the canary that was started does not exist any more.
type goneError struct{ why string }

func (g *goneError) Error() string {
	return "CoreDNS canary: pods/" + canaryName + " in " + namespace + " " + g.why + " while it was being tried; the target was not judged"
}

func (e *Executor) lookAtCanary(ctx context.Context, started *corev1.Pod) (*corev1.Pod, error) {
	pod, err := e.Client.CoreV1().Pods(namespace).Get(ctx, canaryName, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return nil, &goneError{"was deleted"}
	case err != nil:
		return nil, call{"get", "pods", canaryName}.explain(err)
	case pod.UID != started.UID:
		return nil, &goneError{"was replaced by another"}
	}
	return pod, nil
}

// evidence is the node and, where there is one, the end of the log. It is best effort: what it can't get is left out.
func (e *Executor) evidence(ctx context.Context, pod *corev1.Pod) string {
	if hasTerminationMessage(pod) {
		return onNode(pod)
	}
	ctx, cancel := context.WithTimeout(ctx, e.AskTimeout)
	defer cancel()
	lines, size := int64(10), int64(2000)
	text, err := e.Client.CoreV1().Pods(namespace).GetLogs(canaryName, &corev1.PodLogOptions{
		Container: containerName, TailLines: &lines, LimitBytes: &size,
	}).DoRaw(ctx)
	if err != nil || len(text) == 0 {
		return onNode(pod)
	}
	return "; its log ends: " + tail(string(text)) + onNode(pod)
}

// removeCanary deletes what is left of a canary, this run's or that of one that was killed, and refuses to touch
// anybody else's object of its name. Nothing is left when it returns nil.
func (e *Executor) removeCanary(ctx context.Context) error {
	if err := e.removePod(ctx); err != nil {
		return err
	}
	maps := e.Client.CoreV1().ConfigMaps(namespace)
	config, err := maps.Get(ctx, canaryName, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return call{"get", "configmaps", canaryName}.explain(err)
	}
	if err := ours("configmaps", config.ObjectMeta); err != nil {
		return err
	}
	err = maps.Delete(ctx, canaryName, metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions(string(config.UID))})
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
	for key, value := range canaryLabels() {
		if meta.Labels[key] != value {
			return fmt.Errorf("%s/%s in %s exists, but without the label %s=%s it is not Theseus's: rename or delete it", resource, canaryName, namespace, key, value)
		}
	}
	return nil
}
