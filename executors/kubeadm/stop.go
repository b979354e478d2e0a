// SPDX-License-Identifier: Apache-2.0

package kubeadm

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/theseus-gitops/theseus/reconcile/rollout"
)

const (
	stopName = "theseus-stop-apiserver"
	manifest = kubernetesDir + "/manifests/kube-apiserver.yaml"
	// stoppedManifest is where the manifest is kept: beside the folder that the kubelet reads, so that a person can move it back.
	stoppedManifest = kubernetesDir + "/theseus-kube-apiserver.yaml"
)

// StopAPIServer moves the manifest of a node's API server out of the kubelet's folder, so that the kubelet ends it in order,
// and waits until answers reports that nothing listens there any more. It may be repeated.
//
// A pod moves it, with the mv of the host: the images of Kubernetes have no programs for it. The folders of the host that mv
// needs are mounted where its loader looks for them, which does for every Linux that has /bin/mv.
func StopAPIServer(ctx context.Context, client kubernetes.Interface, act rollout.StopAPIServer, answers func(ctx context.Context) bool, tell func(string)) error {
	if err := deletePod(ctx, client, stopName); err != nil {
		return err
	}
	node, err := client.CoreV1().Nodes().Get(ctx, act.Node, metav1.GetOptions{})
	if err != nil {
		return fmt.Errorf("nodes/%s: get: %w", act.Node, err)
	}
	if err := createPod(ctx, client, stopPod(act, node.Status.NodeInfo.Architecture)); err != nil {
		return err
	}
	defer func() {
		cleaning, cancel := context.WithTimeout(context.WithoutCancel(ctx), 30*time.Second)
		defer cancel()
		_ = deletePod(cleaning, client, stopName) // one that is left is removed with the credentials
	}()
	waiting, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	gone, moved := make(chan error, 1), make(chan error, 1)
	go func() { gone <- silent(waiting, answers) }()
	go func() { moved <- awaitPod(waiting, client, stopName, 2*time.Minute, tell) }()
	// A kubelet whose API server has ended can't tell how the pod did: what counts is that nobody answers any more.
	for {
		select {
		case err := <-gone:
			return err
		case err := <-moved:
			var failed *podFailure
			if errors.As(err, &failed) && waiting.Err() == nil {
				return fmt.Errorf("%w", &rollout.Failure{
					Reason: "APIServerNotStopped", Message: fmt.Sprintf("the API server of node %s could not be stopped: %s", act.Node, failed.why),
					Remedy: "move " + manifest + " out of its folder on that machine yourself; the next pass then goes on", Elsewhere: true,
				})
			}
			moved = nil
		}
	}
}

// createPod waits for a pod of the same name to be gone first.
func createPod(ctx context.Context, client kubernetes.Interface, pod *corev1.Pod) error {
	for {
		_, err := client.CoreV1().Pods(namespace).Create(ctx, pod, metav1.CreateOptions{FieldManager: fieldManager})
		if !apierrors.IsAlreadyExists(err) {
			if err != nil {
				return podError(pod.Name, "create", err)
			}
			return nil
		}
		if err := sleep(ctx, 300*time.Millisecond); err != nil {
			return podError(pod.Name, "create", err)
		}
	}
}

// silent waits until nobody answers, twice in a row.
func silent(ctx context.Context, answers func(ctx context.Context) bool) error {
	for quiet := 0; quiet < 2; {
		if answers(ctx) {
			quiet = 0
		} else {
			quiet++
		}
		if err := sleep(ctx, 500*time.Millisecond); err != nil {
			return fmt.Errorf("the API server still answers: %w", err)
		}
	}
	return nil
}

// stopPod is idempotent: a manifest that was moved before is as wanted.
func stopPod(act rollout.StopAPIServer, architecture string) *corev1.Pod {
	pod := hostPod(stopName, act.Node, act.Image)
	c := &pod.Spec.Containers[0]
	folders := map[string]string{"usr": "/usr", "bin": "/bin", "lib": "/lib", "kubernetes": kubernetesDir}
	if architecture == "" {
		architecture = runtime.GOARCH
	}
	if architecture == "amd64" {
		folders["lib64"] = "/lib64" // where its loader is
	}
	dir := corev1.HostPathDirectory
	for _, name := range []string{"usr", "bin", "lib", "lib64", "kubernetes"} {
		path, ok := folders[name]
		if !ok {
			continue
		}
		pod.Spec.Volumes = append(pod.Spec.Volumes, corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: path, Type: &dir}}})
		c.VolumeMounts = append(c.VolumeMounts, corev1.VolumeMount{Name: name, MountPath: path, ReadOnly: name != "kubernetes"})
	}
	c.Command = []string{"/bin/sh", "-c", fmt.Sprintf("if [ -e %[1]s ]; then mv %[1]s %[2]s; fi", manifest, stoppedManifest)}
	return pod
}
