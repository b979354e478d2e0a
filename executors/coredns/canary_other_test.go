// SPDX-License-Identifier: Apache-2.0

package coredns_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/theseus-gitops/theseus/executors/coredns"
	"github.com/theseus-gitops/theseus/reconcile/rollout"
)

// Another container's trouble says nothing about the CoreDNS that is wanted.
func TestOtherContainersDoNotCondemnTheTarget(t *testing.T) {
	running := func(name string, ready bool) corev1.ContainerStatus {
		return corev1.ContainerStatus{Name: name, Ready: ready, State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}
	}
	waits := func(name, reason, message string) corev1.ContainerStatus {
		return corev1.ContainerStatus{Name: name, State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: message}}}
	}
	exited := func(name string, code int32) corev1.ContainerStatus {
		return corev1.ContainerStatus{Name: name, State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: code, Reason: "Error"}}}
	}
	type list = []corev1.ContainerStatus
	tests := []struct {
		name        string
		init, all   list
		elsewhere   string // "" wants a failure of the target
		target      string
		elsewhereIn string
	}{
		{name: "its image can't be pulled", all: list{waits("watcher", "ImagePullBackOff", "no such host"), running("coredns", true)},
			elsewhere: "container watcher of the pod can't start: ImagePullBackOff: no such host", elsewhereIn: "see to container watcher"},
		{name: "while CoreDNS is not Ready either", all: list{waits("watcher", "ErrImagePull", "no such host"), running("coredns", false)},
			elsewhere: "container watcher of the pod can't start: ErrImagePull"},
		{name: "its name is no image", all: list{waits("watcher", "InvalidImageName", "x"), running("coredns", true)}, elsewhere: "container watcher of the pod can't start: InvalidImageName"},
		{name: "it crashes", all: list{exited("watcher", 3), running("coredns", true)}, elsewhere: "container watcher exited with code 3 (Error)"},
		{name: "its configuration is missing", all: list{waits("watcher", "CreateContainerConfigError", "secret x not found"), running("coredns", true)},
			elsewhere: "container watcher of the pod can't start: CreateContainerConfigError: secret x not found"},
		{name: "it is never Ready", all: list{running("watcher", false), running("coredns", true)}, elsewhere: "container watcher runs, but its readiness probe does not pass"},
		{name: "an init container fails", init: list{exited("setup", 1)}, all: list{waits("coredns", "PodInitializing", "")}, elsewhere: "init container setup exited with code 1"},
		{name: "an init container does not end", init: list{running("setup", false)}, all: list{waits("coredns", "PodInitializing", "")}, elsewhere: "init container setup has not ended"},
		{name: "CoreDNS can't be pulled either", all: list{waits("watcher", "InvalidImageName", "x"), waits("coredns", "ErrImagePull", "manifest unknown")},
			target: "container coredns waits: ErrImagePull: manifest unknown"},
		{name: "CoreDNS exits too", all: list{exited("watcher", 3), exited("coredns", 1)}, target: "container coredns exited with code 1 (Error); container watcher exited with code 3 (Error)"},
		{name: "neither is Ready", all: list{running("watcher", false), running("coredns", false)}, target: "container coredns runs, but its readiness probe does not pass"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			w := newWorld(t)
			line := w.wired(func(o *coredns.Options) { o.ReadyTimeout = 500 * time.Millisecond })
			w.play(func(pod *corev1.Pod) {
				pod.Status.Phase = corev1.PodPending
				pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses = tt.init, tt.all
			})
			err := w.refused(w.canaryAct())
			if tt.elsewhere == "" {
				wantFailure(t, err, "DNSCanaryFailed", tt.target)
				return
			}
			wantElsewhere(t, err, "DNSOtherContainer", target, tt.elsewhere)
			var failure *rollout.Failure
			if errors.As(err, &failure) && !strings.Contains(failure.Remedy, tt.elsewhereIn) {
				t.Errorf("remedy is %q, want it to contain %q", failure.Remedy, tt.elsewhereIn)
			}
			if len(line.queries) > 0 {
				t.Errorf("CoreDNS's log was asked for: %q", line.queries)
			}
		})
	}
}

// A message that changes from pass to pass would be a commit of status each time.
func TestOtherContainersTroubleIsToldInOneWay(t *testing.T) {
	w := newWorld(t)
	pull := func(reason string) func(*corev1.Pod) {
		return func(pod *corev1.Pod) {
			isReady(pod)
			pod.Status.Conditions = nil
			pod.Status.ContainerStatuses = append(pod.Status.ContainerStatuses, corev1.ContainerStatus{
				Name: "watcher", State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: "no such host"}},
			})
		}
	}
	w.play(pull("ErrImagePull"), pull("ImagePullBackOff"))
	const want = "CoreDNS canary of " + target + " could not be tried: container watcher of the pod can't start: ErrImagePull: no such host"
	if err := w.refused(w.canaryAct()); err.Error() != want {
		t.Errorf("message is\n%v\nwant\n%s", err, want)
	}
}
