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

	"github.com/theseus-gitops/theseus/reconcile/live"
	"github.com/theseus-gitops/theseus/reconcile/rollout"
)

// awaitReady waits until the canary is Ready, and not longer than it takes to be sure that it won't be.
func (e *Executor) awaitReady(ctx context.Context, pod *corev1.Pod, image string) error {
	w := watch{image: image, patience: e.PullPatience}
	end := time.Now().Add(e.ReadyTimeout)
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
		e.tellWait(v, err)
		if v.state == ready {
			return nil
		}
		if problem := w.certain(v, time.Now()); problem != nil {
			return e.withEvidence(ctx, problem, now)
		}
		if time.Now().After(end) {
			return e.neverReady(ctx, v, now, err, image)
		}
		if err := sleep(ctx, e.Poll); err != nil {
			return fmt.Errorf("CoreDNS canary: waiting for it to be Ready: %w", err)
		}
	}
}

// watch knows since when an image can't be pulled, and what was said first, which is all that one look at a pod does not tell.
type watch struct {
	image        string
	patience     time.Duration
	pullingSince time.Time
	pull         verdict
}

// certain is why the canary won't be Ready, nil while it may be.
func (w *watch) certain(v verdict, now time.Time) error {
	if v.state != pulling || v.other != w.pull.other {
		w.pullingSince = time.Time{}
	}
	if v.state == pulling && w.pullingSince.IsZero() {
		w.pullingSince, w.pull = now, v
	}
	switch v.state {
	case broken:
		if v.other != "" {
			return bystander(w.image, v)
		}
		return failed(fmt.Sprintf("CoreDNS canary of %s failed: %s", w.image, v.why))
	case disrupted:
		return disruption(v)
	case pulling:
		return w.pulled(v, now)
	case starting, unplaced, ready:
	}
	return nil
}

// pulled is why waiting for an image is over, nil while it is not.
func (w *watch) pulled(v verdict, now time.Time) error {
	switch {
	case now.Sub(w.pullingSince) < w.patience:
		return nil
	case v.other != "":
		// Kubelets tell a failed pull and the pause after it in turns. What was said first is the same in every pass.
		return bystander(w.image, w.pull)
	}
	return failed(fmt.Sprintf("CoreDNS canary: image %s could not be pulled for %s: %s", w.image, w.patience, v.why))
}

// neverReady is the end of the wait. Only what the target itself may be the cause of is a failure of it.
func (e *Executor) neverReady(ctx context.Context, v verdict, pod *corev1.Pod, lookErr error, image string) error {
	if lookErr != nil {
		return fmt.Errorf("CoreDNS canary: not seen Ready within %s: %w", e.ReadyTimeout, lookErr)
	}
	if v.state == unplaced {
		return fmt.Errorf("CoreDNS canary: no node took it within %s: %s; the target was not tried", e.ReadyTimeout, v.why)
	}
	if v.other != "" {
		return bystander(image, v)
	}
	return e.withEvidence(ctx, failed(fmt.Sprintf("CoreDNS canary of %s was not Ready within %s: %s", image, e.ReadyTimeout, v.why)), pod)
}

// bystander is about a pod that another container than CoreDNS keeps from being Ready: it says nothing about the target.
func bystander(image string, v verdict) error {
	return &rollout.Failure{
		Reason:    "DNSOtherContainer",
		Message:   fmt.Sprintf("CoreDNS canary of %s could not be tried: %s", image, v.why),
		Remedy:    fmt.Sprintf("see to container %s in the pod template of Deployment %s/%s: its image, its configuration, its logs; the next pass then goes on", v.other, namespace, objectName),
		Elsewhere: true,
	}
}

func disruption(v verdict) error {
	return fmt.Errorf("CoreDNS canary was taken away before it could be judged: %s", v.why)
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

// withEvidence adds the node and, to a failure of CoreDNS without an exit message, the end of its log. It is best effort:
// what it can't get is left out. What is elsewhere is met again in every pass, maybe on another node, and is told alike.
func (e *Executor) withEvidence(ctx context.Context, problem error, pod *corev1.Pod) error {
	var failure *rollout.Failure
	if !errors.As(problem, &failure) {
		return fmt.Errorf("%w%s", problem, onNode(pod))
	}
	if !failure.Elsewhere {
		failure.Message += e.logEnd(ctx, pod) + onNode(pod)
	}
	return failure
}

// logEnd quotes the log of the container's newest end, or of what runs when it never ended; "" when the pod's status tells
// its last words already.
func (e *Executor) logEnd(ctx context.Context, pod *corev1.Pod) string {
	status := containerStatus(pod)
	if hasTerminationMessage(status) {
		return ""
	}
	ctx, cancel := context.WithTimeout(ctx, e.AskTimeout)
	defer cancel()
	lines, size := int64(5), int64(32<<10) // the size is a guard: it cuts off the end, not the beginning
	text, err := e.Client.CoreV1().Pods(namespace).GetLogs(canaryName, &corev1.PodLogOptions{
		Container: containerName, TailLines: &lines, LimitBytes: &size, Previous: status.RestartCount > 0 && status.State.Running == nil,
	}).DoRaw(ctx)
	if err != nil {
		return ""
	}
	if words := live.LastWords(string(text)); words != "" {
		return "; its log ends: " + words
	}
	return ""
}
