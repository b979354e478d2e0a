// SPDX-License-Identifier: Apache-2.0

package coredns

import (
	"cmp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// waits is about a container that can't start: CoreDNS's if it is one, else the one that is worst off. Its why is ""
// when none waits for more than its turn.
func waits(pod *corev1.Pod) verdict {
	var all verdict
	for _, s := range slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses) {
		v := waiting(s)
		switch {
		case v.why == "":
		case s.Name == containerName:
			return v
		default:
			v.other = s.Name
			all = worse(all, v)
		}
	}
	return all
}

func waiting(s corev1.ContainerStatus) verdict {
	w := s.State.Waiting
	if w == nil || w.Reason == "" || w.Reason == "ContainerCreating" || w.Reason == podInitializing {
		return verdict{}
	}
	v := verdict{state: starting, why: "container " + s.Name + " of the pod can't start: " + w.Reason}
	if s.Name == containerName {
		v.why = "container " + s.Name + " waits: " + w.Reason
	}
	if w.Message != "" {
		v.why += ": " + brief(w.Message, 400)
	}
	if t := s.LastTerminationState.Terminated; t != nil {
		v.why += "; before, " + exit("it", t)
	}
	switch w.Reason {
	case "InvalidImageName", "ErrImageNeverPull", "CrashLoopBackOff":
		v.state = broken
	case "ErrImagePull", "ImagePullBackOff", "RegistryUnavailable", "ImageInspectError", "SignatureValidationFailed":
		v.state = pulling
	}
	return v
}

// podInitializing is what a container waits for until all init containers have ended.
const podInitializing = "PodInitializing"

func worse(a, b verdict) verdict {
	if a.why == "" || b.state > a.state {
		return b
	}
	return a
}

// unready is about what runs, or has yet to. Another container than CoreDNS's is to blame when CoreDNS is Ready, or was
// not given its turn.
func unready(pod *corev1.Pod) verdict {
	if name := unfinished(pod); name != "" {
		return verdict{state: starting, why: "init container " + name + " has not ended", other: name}
	}
	var others []string
	v := verdict{state: starting, why: "its node has not started it"}
	for _, s := range pod.Status.ContainerStatuses {
		text := notReady(s)
		switch {
		case text == "":
		case s.Name == containerName:
			return verdict{state: starting, why: text}
		default:
			others, v.other = append(others, text), cmp.Or(v.other, s.Name)
		}
	}
	if len(others) > 0 {
		v.why = strings.Join(others, "; ")
	}
	return v
}

// notReady says what a container lacks, as far as the kubelet told.
func notReady(s corev1.ContainerStatus) string {
	switch {
	case s.State.Running != nil && !s.Ready:
		return "container " + s.Name + " runs, but its readiness probe does not pass"
	case s.State.Waiting != nil:
		return "container " + s.Name + " waits: " + s.State.Waiting.Reason
	}
	return ""
}

// unfinished names the init container that the others wait for.
func unfinished(pod *corev1.Pod) string {
	for _, s := range pod.Status.InitContainerStatuses {
		if s.State.Terminated == nil && (s.Started == nil || !*s.Started) {
			return s.Name
		}
	}
	return ""
}
