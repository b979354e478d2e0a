// SPDX-License-Identifier: Apache-2.0

package main

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// The pod of a lost node is called failed while nobody knows what still runs there.
func TestPodEnded(t *testing.T) {
	t.Parallel()
	running := corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}
	ended := corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{}}
	for name, c := range map[string]struct {
		phase corev1.PodPhase
		state corev1.ContainerState
		want  bool
	}{
		"running":             {corev1.PodRunning, running, false},
		"its container ended": {corev1.PodRunning, ended, false}, // it is started again
		"failed":              {corev1.PodFailed, ended, true},
		"succeeded":           {corev1.PodSucceeded, ended, true},
		"its node is lost":    {corev1.PodFailed, running, false},
		"unknown":             {corev1.PodUnknown, running, false},
	} {
		got := podEnded(corev1.PodStatus{Phase: c.phase, ContainerStatuses: []corev1.ContainerStatus{{State: c.state}}})
		if got != c.want {
			t.Errorf("%s: ended %t", name, got)
		}
	}
}
