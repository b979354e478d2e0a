// SPDX-License-Identifier: Apache-2.0

package coredns

import (
	"context"
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/theseus-gitops/theseus/reconcile/rollout"
)

// Verify asks every Ready pod of the Deployment all questions and then records the run, closed. A pod that answers
// worse than the canary did is a *rollout.Failure. Pods that leave meanwhile are not judged. A Deployment
// scaled to zero has nothing to ask.
func (e *Executor) Verify(ctx context.Context, act rollout.VerifyDNS) error {
	deploy, err := e.deployment(ctx)
	if err != nil {
		return err
	}
	pods, err := e.readyPods(ctx, deploy)
	if err != nil {
		return err
	}
	if len(pods) == 0 && (deploy.Spec.Replicas == nil || *deploy.Spec.Replicas > 0) {
		return fmt.Errorf("deployments/%s in %s wants pods, but none is Ready to be asked now", objectName, namespace)
	}
	if err := e.examineAll(ctx, pods, act); err != nil {
		return err
	}
	return e.record(ctx, act.Run, act.ResourceVersion)
}

// examineAll asks the pods in turn until all are asked, or enough are bad.
func (e *Executor) examineAll(ctx context.Context, pods []corev1.Pod, act rollout.VerifyDNS) error {
	var judged []finding
	var poor []string
	for i := range pods {
		e.Tell(fmt.Sprintf("verify: pod %s is asked (%d of %d)", pods[i].Name, i+1, len(pods)))
		f, err := e.examine(ctx, &pods[i], act)
		if err != nil {
			return err
		}
		if f.left {
			continue
		}
		judged = append(judged, f)
		if f.poor != "" {
			poor = append(poor, f.poor)
		}
		if len(poor) >= enoughPoor {
			break
		}
	}
	switch {
	case len(pods) > 0 && len(judged) == 0:
		return fmt.Errorf("CoreDNS can't be verified: every pod of deployments/%s in %s left while it was asked", objectName, namespace)
	case len(poor) == 0:
		return nil
	case !slices.ContainsFunc(judged, func(f finding) bool { return f.reached }):
		return fmt.Errorf("CoreDNS can't be verified: no connection to any pod (may pods in %s be port-forwarded to?): %s", namespace, several(poor))
	}
	return &rollout.Failure{
		Reason: "DNSVerifyFailed", Message: fmt.Sprintf("CoreDNS of %s answers worse than it should: %s", act.Image, several(poor)),
		Remedy: "look at the logs of these pods and at their nodes; to try the same again, set spec.retry to any new text",
	}
}

// finding is what came out of asking one pod.
type finding struct {
	// poor is the first poor answer, "" when there was none.
	poor string
	// reached is that a connection was made, left that the pod was not to stay.
	reached, left bool
}

// examine asks one pod all questions, up to the first poor answer.
func (e *Executor) examine(ctx context.Context, pod *corev1.Pod, act rollout.VerifyDNS) (finding, error) {
	out := finding{reached: len(act.Questions) == 0}
	for _, q := range act.Questions {
		owes := owed(act.Answers, q)
		got, err := e.ask(ctx, pod.Name, q, owes, e.AskTries)
		if err != nil {
			return out, err
		}
		out.reached = out.reached || got.reached
		if got.worth() >= owes {
			continue
		}
		if out.left, err = e.left(ctx, pod); err != nil || out.left {
			return out, err
		}
		canary := act.Answers[q.String()]
		if canary == "" {
			canary = "nothing, it was not asked"
		}
		out.poor = fmt.Sprintf("%s: pod %s says %s, the canary said %s%s", q, pod.Name, got, canary, onNode(pod))
		return out, nil
	}
	return out, nil
}

// left reports whether a pod has gone or is going, by a scale-down or a drain.
func (e *Executor) left(ctx context.Context, pod *corev1.Pod) (bool, error) {
	now, err := e.Client.CoreV1().Pods(namespace).Get(ctx, pod.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return true, nil
	}
	if err != nil {
		return false, call{"get", "pods", pod.Name}.explain(err)
	}
	return now.UID != pod.UID || now.DeletionTimestamp != nil || taken(now) != "", nil
}

// readyPods are the pods of the Deployment that are Ready and stay, in the order of their names.
func (e *Executor) readyPods(ctx context.Context, deploy *appsv1.Deployment) ([]corev1.Pod, error) {
	selector, err := metav1.LabelSelectorAsSelector(deploy.Spec.Selector)
	if err != nil {
		return nil, fmt.Errorf("deployments/%s in %s: selector: %w", objectName, namespace, err)
	}
	list, err := e.Client.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{LabelSelector: selector.String()})
	if err != nil {
		return nil, call{"list", "pods", objectName}.explain(err)
	}
	var out []corev1.Pod
	for _, pod := range list.Items {
		if condition(&pod, corev1.PodReady) == corev1.ConditionTrue && pod.DeletionTimestamp == nil {
			out = append(out, pod)
		}
	}
	return out, nil
}
