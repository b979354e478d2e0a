// SPDX-License-Identifier: Apache-2.0

package coredns

import (
	"context"
	"errors"
	"fmt"
	"maps"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/theseus-gitops/theseus/reconcile/rollout"
)

// baselinePods is how many present pods are asked at most: they run one image with one Corefile.
const baselinePods = 3

// presentTries is how often a present pod is asked. It has been serving, so that there is no warming up to wait for.
const presentTries = 2

// enoughPoor is how many poor answers end an interview, and how many bad pods a verification: more only take time.
const enoughPoor = 3

// Canary runs one pod of the target image with the candidate Corefile outside the Service, asks the present
// pods and then the canary, removes it, and records the run with the canary's answers. A canary that does not
// start, or answers worse, is a *rollout.Failure. What stands in its way until a person acts (somebody else's object of
// its name, another container of the pod that can't run) is one that is Elsewhere. What says nothing about the target (no
// node for the canary, an eviction, the API server away, no way to reach any pod) is an ordinary error: try again later.
// The canary is removed whatever happens, a cancelled ctx included; after a kill the next Canary removes it, and
// until then the pod ends by its own deadline.
func (e *Executor) Canary(ctx context.Context, act rollout.CanaryDNS) error {
	config, err := e.Client.CoreV1().ConfigMaps(namespace).Get(ctx, objectName, metav1.GetOptions{})
	what := call{"get", "configmaps", objectName}
	if err != nil {
		return what.explain(err)
	}
	if err := what.atVersion(config.ResourceVersion, act.ResourceVersion); err != nil {
		return err
	}
	deploy, err := e.deployment(ctx)
	if err != nil {
		return err
	}
	if container(deploy.Spec.Template.Spec.Containers) == nil {
		return noContainer(deploy)
	}
	if err := outside(deploy); err != nil {
		return err
	}
	answers, err := e.runCanary(ctx, act, config, deploy)
	if err != nil {
		return err
	}
	run := act.Run
	run.Answers = answers
	return e.record(ctx, run, act.ResourceVersion)
}

// outside makes sure that the Deployment does not take the canary for one of its own pods.
func outside(deploy *appsv1.Deployment) error {
	selector, err := metav1.LabelSelectorAsSelector(deploy.Spec.Selector)
	if err != nil {
		return fmt.Errorf("deployments/%s in %s: selector: %w", objectName, namespace, err)
	}
	if !selector.Matches(canaryLabels()) {
		return nil
	}
	return &rollout.Failure{
		Reason:    "DNSSelectorTooWide",
		Message:   fmt.Sprintf("deployments/%s in %s: its selector %q also selects pods with the labels %s, as Theseus's canary has; CoreDNS can't be tried beside it", objectName, namespace, selector, canaryLabels()),
		Remedy:    "create the Deployment anew with a selector of its own, k8s-app=kube-dns as kubeadm has it (a selector can't be changed); the next pass then goes on",
		Elsewhere: true,
	}
}

// runCanary returns the canary's accepted answers by question.
func (e *Executor) runCanary(ctx context.Context, act rollout.CanaryDNS, config *corev1.ConfigMap, deploy *appsv1.Deployment) (answers map[string]string, err error) {
	if err := e.removeCanary(ctx); err != nil {
		return nil, err
	}
	defer func() {
		detached, cancel := context.WithTimeout(context.WithoutCancel(ctx), e.CleanUpTimeout)
		defer cancel()
		if left := e.removeCanary(detached); left != nil {
			answers, err = nil, errors.Join(err, left)
		}
	}()
	pod, err := e.startCanary(ctx, act, config, deploy)
	if err != nil {
		return nil, err
	}
	if err := e.awaitReady(ctx, pod, act.Image); err != nil {
		return nil, err
	}
	all, err := e.interview(ctx, act.Questions, deploy)
	if err != nil {
		return nil, err
	}
	return e.judge(ctx, all, pod, act.Image)
}

// startCanary creates the canary's ConfigMap, then its pod.
func (e *Executor) startCanary(ctx context.Context, act rollout.CanaryDNS, config *corev1.ConfigMap, deploy *appsv1.Deployment) (*corev1.Pod, error) {
	opts := metav1.CreateOptions{FieldManager: fieldManager}
	if _, err := e.Client.CoreV1().ConfigMaps(namespace).Create(ctx, canaryConfig(config, act.Corefile), opts); err != nil {
		return nil, call{"create", "configmaps", canaryName}.explain(err)
	}
	pod, err := e.Client.CoreV1().Pods(namespace).Create(ctx, canaryPod(deploy, act.Image, e.ReadyTimeout), opts)
	if apierrors.IsInvalid(err) {
		return nil, failed(fmt.Sprintf("CoreDNS canary: the API server refuses a pod of image %s: %v", act.Image, err))
	}
	if apierrors.IsForbidden(err) {
		return nil, &rollout.Failure{
			Reason: "DNSCanaryNotAdmitted", Message: fmt.Sprintf("CoreDNS canary: the API server does not admit its pod: %v", err),
			Remedy: "let the policy, quota or webhook that it names admit pod " + canaryName + " in " + namespace + ", which is like CoreDNS's own pods; the next pass then goes on", Elsewhere: true,
		}
	}
	return pod, call{"create", "pods", canaryName}.explain(err)
}

// interview asks each question of present pods, until one answers, and of the canary.
func (e *Executor) interview(ctx context.Context, questions []rollout.Question, deploy *appsv1.Deployment) ([]asked, error) {
	pods, err := e.readyPods(ctx, deploy)
	if err != nil {
		return nil, err
	}
	pods = pods[:min(len(pods), baselinePods)]
	e.Tell(fmt.Sprintf("canary: it is Ready, and is asked what the present pods are asked (questions: %d)", len(questions)))
	var all []asked
	for _, q := range questions {
		one := asked{question: q}
		for _, pod := range pods {
			got, err := e.ask(ctx, pod.Name, q, negative, presentTries)
			if err != nil {
				return nil, err
			}
			one.present = append(one.present, said{pod.Name, got})
			if got.worth() >= negative {
				break
			}
		}
		all = append(all, one)
	}
	poor := 0
	for i := range all {
		got, err := e.ask(ctx, canaryName, all[i].question, max(all[i].need(), negative), e.AskTries)
		if err != nil {
			return nil, err
		}
		all[i].canary = got
		if all[i].poor() != "" {
			poor++
		}
		if poor >= enoughPoor {
			return all[:i+1], nil
		}
	}
	return all, nil
}

// judge turns the interview into the answers to record, or into the reason why not.
func (e *Executor) judge(ctx context.Context, all []asked, pod *corev1.Pod, image string) (map[string]string, error) {
	poor := complaints(all)
	if len(poor) == 0 {
		answers := map[string]string{}
		for _, a := range all {
			answers[a.question.String()] = a.canary.code
		}
		return answers, nil
	}
	if unreachable(all) {
		return nil, fmt.Errorf("CoreDNS canary: no connection to any pod, present or canary, so nothing was learnt (may pods in %s be port-forwarded to?): %s", namespace, several(poor))
	}
	now, err := e.lookAtCanary(ctx, pod)
	if err != nil {
		return nil, err
	}
	text := fmt.Sprintf("CoreDNS canary of %s does worse than what runs: %s", image, several(poor))
	switch v := verdictOn(now); v.state {
	case disrupted:
		return nil, fmt.Errorf("%w%s", disruption(v), onNode(now))
	case broken:
		text += "; " + v.why + e.logEnd(ctx, now)
	case starting, pulling, unplaced, ready:
	}
	return nil, &rollout.Failure{
		Reason: reasonCanary, Message: text + onNode(now),
		Remedy: "correct the Corefile or choose another tag; where a NetworkPolicy selects CoreDNS by label, let it select " + labelName + "=" + canaryName + " too; to try the same again, set spec.retry to any new text",
	}
}

const reasonCanary = "DNSCanaryFailed"

func failed(message string) *rollout.Failure {
	return &rollout.Failure{
		Reason: reasonCanary, Message: message,
		Remedy: "correct the Corefile, the tag or the registry; to try the same again, set spec.retry to any new text",
	}
}

// canaryConfig is ConfigMap coredns with the candidate as its Corefile.
func canaryConfig(config *corev1.ConfigMap, corefile string) *corev1.ConfigMap {
	data := maps.Clone(config.Data)
	if data == nil {
		data = map[string]string{}
	}
	data["Corefile"] = corefile
	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: canaryName, Namespace: namespace, Labels: canaryLabels()},
		Data:       data,
		BinaryData: config.BinaryData,
	}
}
