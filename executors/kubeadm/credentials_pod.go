// SPDX-License-Identifier: Apache-2.0

package kubeadm

import (
	"context"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/theseus-gitops/theseus/reconcile/kubeadmconfig"
	"github.com/theseus-gitops/theseus/reconcile/rollout"
)

// kubernetesDir has the node's kubeconfigs, and usually its certificates.
const kubernetesDir = "/etc/kubernetes"

// obtainPod runs the node's own kubeadm, from the host: any image will do that the node has, as kubeadm is a static program.
func obtainPod(act rollout.ObtainCredentials, o ObtainOptions, config kubeadmconfig.Facts) *corev1.Pod {
	pod := hostPod(obtainName, act.Node, act.Image)
	file, dir := corev1.HostPathFile, corev1.HostPathDirectory
	mount := func(name, path, at string, kind *corev1.HostPathType, readOnly bool) {
		pod.Spec.Volumes = append(pod.Spec.Volumes, corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: path, Type: kind}}})
		c := &pod.Spec.Containers[0]
		c.VolumeMounts = append(c.VolumeMounts, corev1.VolumeMount{Name: name, MountPath: at, ReadOnly: readOnly})
	}
	mount("kubeadm", o.KubeadmPath, "/theseus/kubeadm", &file, true)
	mount("kubernetes", kubernetesDir, kubernetesDir, &dir, true)
	if !strings.HasPrefix(config.CertificatesDir+"/", kubernetesDir+"/") {
		mount("certificates", config.CertificatesDir, config.CertificatesDir, &dir, true)
	}
	pod.Spec.Volumes = append(pod.Spec.Volumes, corev1.Volume{Name: "config", VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: obtainName}}})
	c := &pod.Spec.Containers[0]
	c.VolumeMounts = append(c.VolumeMounts, corev1.VolumeMount{Name: "config", MountPath: "/theseus/config", ReadOnly: true})
	c.Command = []string{
		"/theseus/kubeadm", "init", "phase", "upload-certs", "--upload-certs", "--skip-certificate-key-print",
		"--config=/theseus/config/" + obtainKey, "--kubeconfig=" + kubernetesDir + "/admin.conf",
	}
	return pod
}

// hostPod is a pod of ours that runs once on one node, beside whatever is there. It has no account in the cluster.
func hostPod(name, node, image string) *corev1.Pod {
	no, root := false, int64(0)
	deadline := int64(300)
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: namespace, Labels: map[string]string{credentialsLabel: "pod"}},
		Spec: corev1.PodSpec{
			NodeName: node, HostNetwork: true, RestartPolicy: corev1.RestartPolicyNever, AutomountServiceAccountToken: &no,
			ActiveDeadlineSeconds: &deadline, EnableServiceLinks: &no, PriorityClassName: "system-node-critical",
			Tolerations: []corev1.Toleration{{Operator: corev1.TolerationOpExists}},
			Containers: []corev1.Container{{
				Name: "theseus", Image: image, ImagePullPolicy: corev1.PullIfNotPresent,
				TerminationMessagePolicy: corev1.TerminationMessageFallbackToLogsOnError,
				SecurityContext:          &corev1.SecurityContext{RunAsUser: &root},
			}},
		},
	}
}

// podFailure is a pod that ended badly, or can't begin.
type podFailure struct{ why string }

func (e *podFailure) Error() string { return e.why }

// awaitPod waits until a pod of ours has ended well.
func awaitPod(ctx context.Context, client kubernetes.Interface, name string, within time.Duration, tell func(string)) error {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	told := ""
	for {
		pod, err := client.CoreV1().Pods(namespace).Get(ctx, name, metav1.GetOptions{})
		if done, err := outcome(ctx, name, pod, err); done || err != nil {
			return err
		}
		if why := waitingFor(pod); why != "" && why != told && tell != nil {
			told = why
			tell("pod " + name + ": " + why)
		}
		if err := sleep(ctx, 300*time.Millisecond); err != nil {
			if why := waitingFor(pod); why != "" {
				return &podFailure{why: fmt.Sprintf("pod %s did not end within %s: %s", name, within, cut(why))}
			}
			return fmt.Errorf("pod %s in %s did not end within %s: %w", name, namespace, within, err)
		}
	}
}

// outcome reports how a pod has ended, and what a look at it that failed means.
func outcome(ctx context.Context, name string, pod *corev1.Pod, err error) (done bool, _ error) {
	switch {
	case err == nil && pod.Status.Phase == corev1.PodSucceeded:
		return true, nil
	case err == nil && pod.Status.Phase == corev1.PodFailed:
		return true, &podFailure{why: cut(ended(pod))}
	case err != nil && ctx.Err() == nil && !apierrors.IsTimeout(err) && !apierrors.IsServerTimeout(err):
		return false, podError(name, "get", err)
	}
	return false, nil
}

// ended is what a failed pod said last.
func ended(pod *corev1.Pod) string {
	for _, s := range pod.Status.ContainerStatuses {
		if t := s.State.Terminated; t != nil {
			if t.Message != "" {
				return strings.TrimSpace(t.Message)
			}
			return fmt.Sprintf("it ended with code %d (%s)", t.ExitCode, t.Reason)
		}
	}
	return strings.TrimSpace(pod.Status.Reason + " " + pod.Status.Message)
}

// waitingFor is what keeps a pod from running, "" when nothing is known.
func waitingFor(pod *corev1.Pod) string {
	if pod == nil {
		return ""
	}
	for _, s := range pod.Status.ContainerStatuses {
		if w := s.State.Waiting; w != nil && w.Reason != "ContainerCreating" {
			return strings.TrimSpace(w.Reason + " " + w.Message)
		}
	}
	return ""
}

// cut keeps the end of a long text, where a program says what went wrong.
func cut(text string) string {
	const most = 600
	if len(text) > most {
		text = "… " + text[len(text)-most:]
	}
	return strings.Join(strings.Fields(text), " ")
}

func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func podError(name, verb string, err error) error {
	if apierrors.IsForbidden(err) {
		return fmt.Errorf("pods/%s in %s: the API server refused to %s it; if the account lacks the right, grant verb %s on pods: %w", name, namespace, verb, verb, err)
	}
	return fmt.Errorf("pods/%s in %s: %s: %w", name, namespace, verb, err)
}

func secretError(name, verb string, err error) error {
	if apierrors.IsForbidden(err) {
		return fmt.Errorf("secrets/%s in %s: the API server refused to %s it; if the account lacks the right, grant verb %s on secrets: %w", name, namespace, verb, verb, err)
	}
	return fmt.Errorf("secrets/%s in %s: %s: %w", name, namespace, verb, err)
}
