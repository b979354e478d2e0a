// SPDX-License-Identifier: Apache-2.0

package coredns

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"unicode"

	corev1 "k8s.io/api/core/v1"

	"github.com/theseus-gitops/theseus/reconcile/live"
)

// podState is how far a canary is.
type podState int

const (
	// starting: on a node and on its way, for all that is known.
	starting podState = iota
	// unplaced: no node has taken it.
	unplaced
	// pulling: a kubelet could not pull an image, and will try again.
	pulling
	// ready: it says that it is.
	ready
	// broken: it won't ever be Ready.
	broken
	// disrupted: it was taken away for reasons that are not its own.
	disrupted
)

// verdict is what a pod's status says about a canary, with the sentence for it.
type verdict struct {
	state podState
	why   string
	// other names the container whose trouble it is, when that is not CoreDNS's: the target is then not to blame.
	other string
}

// verdictOn reads a pod that is never restarted. Trouble of the CoreDNS container comes before that of any other.
func verdictOn(pod *corev1.Pod) verdict {
	if why := taken(pod); why != "" {
		return verdict{state: disrupted, why: why}
	}
	if v := ended(pod); v.why != "" {
		return v
	}
	if condition(pod, corev1.PodReady) == corev1.ConditionTrue {
		return verdict{state: ready}
	}
	if v := waits(pod); v.why != "" {
		return v
	}
	if pod.Spec.NodeName == "" {
		return verdict{state: unplaced, why: unplacedWhy(pod)}
	}
	return unready(pod)
}

// taken says who took the pod away: an eviction, a preemption, a node that went or would not have it.
// status.reason is set by the kubelet and by controllers, never for a container that just exited.
func taken(pod *corev1.Pod) string {
	if pod.DeletionTimestamp != nil {
		return "somebody is deleting it"
	}
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.DisruptionTarget && c.Status == corev1.ConditionTrue {
			return brief(c.Reason+": "+c.Message, 300)
		}
	}
	if pod.Status.Phase == corev1.PodFailed && pod.Status.Reason != "" && pod.Status.Reason != "DeadlineExceeded" {
		return brief(pod.Status.Reason+": "+pod.Status.Message, 300)
	}
	return ""
}

// ended is about containers that came to their end; its why is "" when none did.
func ended(pod *corev1.Pod) verdict {
	var own, others []string
	other := ""
	for _, s := range pod.Status.InitContainerStatuses {
		if t := s.State.Terminated; t != nil && t.ExitCode != 0 {
			others, other = append(others, exit("init container "+s.Name, t)), cmp.Or(other, s.Name)
		}
	}
	for _, s := range pod.Status.ContainerStatuses {
		switch t := s.State.Terminated; {
		case t == nil:
		case s.Name == containerName:
			own = append(own, exit("container "+s.Name, t))
		default:
			others, other = append(others, exit("container "+s.Name, t)), cmp.Or(other, s.Name)
		}
	}
	if len(own) > 0 {
		other = ""
	}
	all := slices.Concat(own, others)
	if len(all) == 0 && (pod.Status.Phase == corev1.PodFailed || pod.Status.Phase == corev1.PodSucceeded) {
		all = append(all, strings.TrimSpace(fmt.Sprintf("the pod ended as %s %s", pod.Status.Phase, pod.Status.Reason)))
	}
	return verdict{state: broken, why: strings.Join(all, "; "), other: other}
}

func exit(who string, t *corev1.ContainerStateTerminated) string {
	text := fmt.Sprintf("%s exited with code %d", who, t.ExitCode)
	if t.Reason != "" {
		text += " (" + t.Reason + ")"
	}
	if t.Message != "" {
		text += ": " + live.LastWords(t.Message)
	}
	return text
}

func unplacedWhy(pod *corev1.Pod) string {
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse {
			return brief(c.Reason+": "+c.Message, 400)
		}
	}
	return "the scheduler has not looked at it"
}

func condition(pod *corev1.Pod, kind corev1.PodConditionType) corev1.ConditionStatus {
	for _, c := range pod.Status.Conditions {
		if c.Type == kind {
			return c.Status
		}
	}
	return corev1.ConditionUnknown
}

// containerStatus is that of the CoreDNS container, its zero value while there is none.
func containerStatus(pod *corev1.Pod) corev1.ContainerStatus {
	for _, s := range pod.Status.ContainerStatuses {
		if s.Name == containerName {
			return s
		}
	}
	return corev1.ContainerStatus{}
}

func hasTerminationMessage(s corev1.ContainerStatus) bool {
	return (s.State.Terminated != nil && s.State.Terminated.Message != "") ||
		(s.LastTerminationState.Terminated != nil && s.LastTerminationState.Terminated.Message != "")
}

func onNode(pod *corev1.Pod) string {
	if pod == nil || pod.Spec.NodeName == "" {
		return ""
	}
	return " (node " + pod.Spec.NodeName + ")"
}

// brief is one line of bounded length, without control characters: it goes into statuses and commits.
func brief(text string, most int) string {
	line := []rune(oneLine(text))
	if len(line) <= most {
		return string(line)
	}
	return string(line[:most]) + "…"
}

func oneLine(text string) string {
	words := strings.FieldsFunc(strings.ToValidUTF8(text, "?"), func(r rune) bool { return unicode.IsSpace(r) || unicode.IsControl(r) })
	return strings.Join(words, " ")
}
