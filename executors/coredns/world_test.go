// SPDX-License-Identifier: Apache-2.0

package coredns_test

import (
	"context"
	"os"
	"sync"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/kubernetes"

	"github.com/theseus-gitops/theseus/executors/coredns"
	"github.com/theseus-gitops/theseus/internal/apiserver"
)

var server apiserver.Server

func TestMain(m *testing.M) { os.Exit(server.Run(m)) }

const (
	system   = "kube-system"
	canary   = "theseus-coredns-canary"
	present  = "registry.k8s.io/coredns/coredns:v1.14.2"
	target   = "registry.k8s.io/coredns/coredns:v1.14.6"
	corefile = ".:53 {\n    # ours\n    kubernetes cluster.local\n}\n"
)

// world is a cluster with CoreDNS in a real API server. The test plays scheduler and kubelet, and pods answer DNS.
type world struct {
	t      *testing.T
	client kubernetes.Interface
	exec   *coredns.Executor
	dns    *pods

	mu sync.Mutex
	// canaries are the canary pods as they were when first seen, configs their ConfigMaps.
	canaries []*corev1.Pod
	configs  []*corev1.ConfigMap
}

// newWorld has two Ready pods, coredns-a and coredns-b, which answer everything.
func newWorld(t *testing.T, change ...func(*coredns.Options)) *world {
	t.Helper()
	server.Reset(t)
	w := &world{t: t, client: server.Client(t), dns: newPods(t)}
	w.create(baseDeployment())
	w.createPod("coredns-a")
	w.createPod("coredns-b")
	w.exec = w.executor(w.client, change...)
	return w
}

func (w *world) executor(client kubernetes.Interface, change ...func(*coredns.Options)) *coredns.Executor {
	o := coredns.Options{
		Client: client, Dial: w.dns.dial, Now: func() time.Time { return time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC) },
		ReadyTimeout: 20 * time.Second, PullPatience: 100 * time.Millisecond,
		AskTimeout: 5 * time.Second, AskTries: 3, AskPause: 5 * time.Millisecond, Poll: 5 * time.Millisecond,
	}
	for _, f := range change {
		f(&o)
	}
	return coredns.New(o)
}

func baseConfig() *corev1.ConfigMap {
	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: "coredns", Namespace: system, Labels: map[string]string{"team": "dns"}, Annotations: map[string]string{"note": "keep"}},
		Data:       map[string]string{"Corefile": corefile, "extra.override": "log\n"},
		BinaryData: map[string][]byte{"zone.bin": {0, 1, 255}},
	}
}

func baseDeployment() *appsv1.Deployment {
	labels := map[string]string{"k8s-app": "kube-dns"}
	two, mode := int32(2), int32(0o444)
	pod := corev1.PodSpec{
		PriorityClassName: "system-cluster-critical", ServiceAccountName: "coredns", DNSPolicy: corev1.DNSDefault,
		NodeSelector: map[string]string{"kubernetes.io/os": "linux"},
		Tolerations:  []corev1.Toleration{{Key: "node-role.kubernetes.io/control-plane", Effect: corev1.TaintEffectNoSchedule}},
		Affinity: &corev1.Affinity{
			NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
				MatchExpressions: []corev1.NodeSelectorRequirement{{Key: "zone", Operator: corev1.NodeSelectorOpExists}},
			}}}},
			PodAntiAffinity: &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{
				LabelSelector: &metav1.LabelSelector{MatchLabels: labels}, TopologyKey: "kubernetes.io/hostname",
			}}},
		},
		TopologySpreadConstraints: []corev1.TopologySpreadConstraint{{
			MaxSkew: 1, TopologyKey: "zone", WhenUnsatisfiable: corev1.DoNotSchedule, LabelSelector: &metav1.LabelSelector{MatchLabels: labels},
		}},
		Containers: []corev1.Container{
			{Name: "watcher", Image: "example.com/watcher:1"},
			{
				Name: "coredns", Image: present, Args: []string{"-conf", "/etc/coredns/Corefile"},
				Env:          []corev1.EnvVar{{Name: "GOMAXPROCS", Value: "1"}},
				Ports:        []corev1.ContainerPort{{ContainerPort: 53, HostPort: 53, Name: "dns-tcp", Protocol: corev1.ProtocolTCP}},
				VolumeMounts: []corev1.VolumeMount{{Name: "config-volume", MountPath: "/etc/coredns", ReadOnly: true}},
				ReadinessProbe: &corev1.Probe{ProbeHandler: corev1.ProbeHandler{
					HTTPGet: &corev1.HTTPGetAction{Path: "/ready", Port: intstr.FromInt32(8181), Scheme: corev1.URISchemeHTTP},
				}},
			},
		},
		Volumes: []corev1.Volume{
			{Name: "tmp", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}},
			{Name: "config-volume", VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{
				LocalObjectReference: corev1.LocalObjectReference{Name: "coredns"}, DefaultMode: &mode,
				Items: []corev1.KeyToPath{{Key: "Corefile", Path: "Corefile"}, {Key: "extra.override", Path: "extra.override"}},
			}}},
		},
	}
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: "coredns", Namespace: system, Labels: labels, Annotations: map[string]string{"note": "keep"}},
		Spec: appsv1.DeploymentSpec{
			Replicas: &two, Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels, Annotations: map[string]string{"template": "note"}}, Spec: pod},
		},
	}
}

func (w *world) create(deploy *appsv1.Deployment) {
	w.t.Helper()
	if _, err := w.client.CoreV1().ConfigMaps(system).Create(w.t.Context(), baseConfig(), metav1.CreateOptions{}); err != nil {
		w.t.Fatal(err)
	}
	if _, err := w.client.AppsV1().Deployments(system).Create(w.t.Context(), deploy, metav1.CreateOptions{}); err != nil {
		w.t.Fatal(err)
	}
}

// createPod is a Ready pod of the Deployment that answers every question.
func (w *world) createPod(name string) {
	w.t.Helper()
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"k8s-app": "kube-dns"}}, Spec: corev1.PodSpec{
		NodeName: "node-1", Containers: []corev1.Container{{Name: "coredns", Image: present}},
	}}
	pod, err := w.client.CoreV1().Pods(system).Create(w.t.Context(), pod, metav1.CreateOptions{})
	if err != nil {
		w.t.Fatal(err)
	}
	isReady(pod)
	if _, err := w.client.CoreV1().Pods(system).UpdateStatus(w.t.Context(), pod, metav1.UpdateOptions{}); err != nil {
		w.t.Fatal(err)
	}
	w.dns.serve(name, positive)
}

// setStatus changes a pod's status as its kubelet would.
func (w *world) setStatus(name string, status func(*corev1.Pod)) {
	w.t.Helper()
	pod, err := w.client.CoreV1().Pods(system).Get(w.t.Context(), name, metav1.GetOptions{})
	if err != nil {
		w.t.Fatal(err)
	}
	status(pod)
	if _, err := w.client.CoreV1().Pods(system).UpdateStatus(w.t.Context(), pod, metav1.UpdateOptions{}); err != nil {
		w.t.Fatal(err)
	}
}

// play takes every canary that has no node yet through the states, one after the other, as scheduler and kubelet would. A nil
// first state leaves it without a node.
func (w *world) play(states ...func(*corev1.Pod)) {
	ctx, cancel := context.WithCancel(w.t.Context())
	done := make(chan struct{})
	w.t.Cleanup(func() { cancel(); <-done })
	go func() {
		defer close(done)
		seen := map[string]bool{}
		for ctx.Err() == nil {
			pod, err := w.client.CoreV1().Pods(system).Get(ctx, canary, metav1.GetOptions{})
			if err == nil && !seen[string(pod.UID)] && pod.Spec.NodeName == "" {
				seen[string(pod.UID)] = true
				w.meet(ctx, pod)
				w.kubelet(ctx, pod, states)
			}
			time.Sleep(5 * time.Millisecond)
		}
	}()
}

func (w *world) meet(ctx context.Context, pod *corev1.Pod) {
	config, err := w.client.CoreV1().ConfigMaps(system).Get(ctx, canary, metav1.GetOptions{})
	w.mu.Lock()
	defer w.mu.Unlock()
	w.canaries = append(w.canaries, pod)
	if err == nil {
		w.configs = append(w.configs, config)
	}
}

func (w *world) kubelet(ctx context.Context, pod *corev1.Pod, states []func(*corev1.Pod)) {
	pods := w.client.CoreV1().Pods(system)
	if len(states) > 0 && states[0] != nil {
		err := pods.Bind(ctx, &corev1.Binding{ObjectMeta: metav1.ObjectMeta{Name: canary}, Target: corev1.ObjectReference{Kind: "Node", Name: "node-7"}}, metav1.CreateOptions{})
		if err != nil && !apierrors.IsNotFound(err) && ctx.Err() == nil { // it may have been removed meanwhile
			w.t.Error("bind the canary:", err)
		}
	}
	for _, state := range states {
		if state == nil || !w.report(ctx, pod, state) {
			return
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// report writes one state of the pod, again when the pod changed meanwhile, as kubelets do; it is false once the pod is gone.
func (w *world) report(ctx context.Context, pod *corev1.Pod, state func(*corev1.Pod)) bool {
	pods := w.client.CoreV1().Pods(system)
	for {
		now, err := pods.Get(ctx, canary, metav1.GetOptions{})
		if err != nil || now.UID != pod.UID {
			return false
		}
		state(now)
		_, err = pods.UpdateStatus(ctx, now, metav1.UpdateOptions{})
		switch {
		case apierrors.IsConflict(err):
		case err != nil && !apierrors.IsNotFound(err) && ctx.Err() == nil:
			w.t.Error("canary status:", err)
			return false
		default:
			return err == nil
		}
	}
}

func (w *world) config() *corev1.ConfigMap {
	w.t.Helper()
	config, err := w.client.CoreV1().ConfigMaps(system).Get(w.t.Context(), "coredns", metav1.GetOptions{})
	if err != nil {
		w.t.Fatal(err)
	}
	return config
}

func (w *world) deployment() *appsv1.Deployment {
	w.t.Helper()
	deploy, err := w.client.AppsV1().Deployments(system).Get(w.t.Context(), "coredns", metav1.GetOptions{})
	if err != nil {
		w.t.Fatal(err)
	}
	return deploy
}

// touchConfig is somebody else's write to ConfigMap coredns.
func (w *world) touchConfig() {
	w.t.Helper()
	config := w.config()
	config.Data["theirs"] = "x"
	if _, err := w.client.CoreV1().ConfigMaps(system).Update(w.t.Context(), config, metav1.UpdateOptions{}); err != nil {
		w.t.Fatal(err)
	}
}

// nothingLeft fails the test when a canary's pod or ConfigMap still exists.
func (w *world) nothingLeft() {
	w.t.Helper()
	ctx := context.WithoutCancel(w.t.Context())
	if _, err := w.client.CoreV1().Pods(system).Get(ctx, canary, metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		w.t.Errorf("the canary's pod is left: %v", err)
	}
	if _, err := w.client.CoreV1().ConfigMaps(system).Get(ctx, canary, metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		w.t.Errorf("the canary's ConfigMap is left: %v", err)
	}
}
