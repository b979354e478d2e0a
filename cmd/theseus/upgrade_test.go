// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/binary"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/dns/dnsmessage"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/theseus-gitops/theseus/executors/coredns"
	"github.com/theseus-gitops/theseus/executors/kube"
	"github.com/theseus-gitops/theseus/reconcile/live"
	"github.com/theseus-gitops/theseus/reconcile/logbook"
	"github.com/theseus-gitops/theseus/reconcile/rollout"
)

const (
	system    = "kube-system"
	fromImage = "registry.k8s.io/coredns/coredns:v1.14.2"
	toImage   = "registry.k8s.io/coredns/coredns:v1.14.6"
	dnsText   = ".:53 {\n    kubernetes cluster.local\n}\n"
)

// upgrade is a cluster in a real API server, and an account in it that upgrades CoreDNS. The test plays the kubelet.
type upgrade struct {
	target
	t     *testing.T
	admin kubernetes.Interface
}

// newUpgrade has the account "upgrader", without any right. CoreDNS's role is an old one.
func newUpgrade(t *testing.T) *upgrade {
	t.Helper()
	server.Reset(t)
	u := &upgrade{t: t, admin: server.Client(t)}
	client, err := kube.Connect(kube.Access{Kubeconfig: server.UserKubeconfig(t, "upgrader")})
	if err != nil {
		t.Fatal(err)
	}
	u.target = target{client: client, coredns: coredns.New(coredns.Options{
		Client: client.Interface(), Poll: 5 * time.Millisecond, AskTries: 1, AskPause: time.Millisecond, ReadyTimeout: 10 * time.Second,
		Dial: func(ctx context.Context, pod string, port int) (net.Conn, error) {
			// The pods have no node. That the API server gets as far as to say so means that it would forward.
			if _, err := client.PortForward(ctx, system, pod, port); !strings.Contains(err.Error(), "does not have a host assigned") {
				return nil, err
			}
			near, far := net.Pipe()
			go answerDNS(far)
			return near, nil
		},
	})}
	u.seed()
	return u
}

// answerDNS answers one query over TCP with an address.
func answerDNS(conn net.Conn) {
	defer func() { _ = conn.Close() }()
	var size [2]byte
	if _, err := io.ReadFull(conn, size[:]); err != nil {
		return
	}
	packet := make([]byte, binary.BigEndian.Uint16(size[:]))
	var m dnsmessage.Message
	if _, err := io.ReadFull(conn, packet); err != nil || m.Unpack(packet) != nil {
		return
	}
	m.Response = true
	m.Answers = []dnsmessage.Resource{{
		Header: dnsmessage.ResourceHeader{Name: m.Questions[0].Name, Class: dnsmessage.ClassINET}, Body: &dnsmessage.AResource{A: [4]byte{10, 96, 0, 1}},
	}}
	reply, err := m.Pack()
	if err != nil {
		return
	}
	_, _ = conn.Write(append(binary.BigEndian.AppendUint16(nil, uint16(len(reply))), reply...))
}

func created[T any](u *upgrade, object *T, do func(context.Context, *T, metav1.CreateOptions) (*T, error)) *T {
	u.t.Helper()
	out, err := do(u.t.Context(), object, metav1.CreateOptions{})
	if err != nil {
		u.t.Fatal(err)
	}
	return out
}

// seed makes what kubeadm would, and one Ready pod of CoreDNS.
func (u *upgrade) seed() {
	u.t.Helper()
	core, apps := u.admin.CoreV1(), u.admin.AppsV1()
	for name, data := range map[string]map[string]string{
		"coredns": {"Corefile": dnsText}, "kubelet-config": {"kubelet": "x"}, "kube-proxy": {"config.conf": "x"},
		"kubeadm-config": {"ClusterConfiguration": "apiVersion: kubeadm.k8s.io/v1beta4\nkind: ClusterConfiguration\nkubernetesVersion: v1.36.3\n"},
	} {
		created(u, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}, Data: data}, core.ConfigMaps(system).Create)
	}
	labels := map[string]string{"k8s-app": "kube-dns"}
	template := corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: corev1.PodSpec{
		Containers: []corev1.Container{{Name: "coredns", Image: fromImage, VolumeMounts: []corev1.VolumeMount{{Name: "config-volume", MountPath: "/etc/coredns"}}}},
		Volumes:    []corev1.Volume{{Name: "config-volume", VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: "coredns"}}}}},
	}}
	created(u, &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: "coredns"}, Spec: appsv1.DeploymentSpec{
		Selector: &metav1.LabelSelector{MatchLabels: labels}, Template: template,
	}}, apps.Deployments(system).Create)
	created(u, &appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Name: "kube-proxy"}, Spec: appsv1.DaemonSetSpec{
		Selector: &metav1.LabelSelector{MatchLabels: labels}, Template: template,
	}}, apps.DaemonSets(system).Create)
	created(u, &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "system:coredns"}, Rules: []rbacv1.PolicyRule{
		{APIGroups: []string{""}, Resources: []string{"endpoints", "services", "pods", "namespaces"}, Verbs: []string{"list", "watch"}},
	}}, u.admin.RbacV1().ClusterRoles().Create)
	u.ready(u.t.Context(), created(u, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "coredns-a", Labels: labels}, Spec: template.Spec}, core.Pods(system).Create))
}

func (u *upgrade) ready(ctx context.Context, pod *corev1.Pod) {
	pod.Status.Phase = corev1.PodRunning
	pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
	_, _ = u.admin.CoreV1().Pods(system).UpdateStatus(ctx, pod, metav1.UpdateOptions{}) // a canary may be gone meanwhile
}

// kubelet makes every canary Ready until ctx is done.
func (u *upgrade) kubelet(ctx context.Context) {
	for ctx.Err() == nil {
		pod, err := u.admin.CoreV1().Pods(system).Get(ctx, "theseus-coredns-canary", metav1.GetOptions{})
		if err == nil && pod.Status.Phase != corev1.PodRunning {
			u.ready(ctx, pod)
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// acts are one of each kind, in the order of an upgrade that migrates the Corefile.
func acts() []func(live.Kube) rollout.Act {
	question := []rollout.Question{{Name: "kubernetes.default.svc.cluster.local.", Type: "A", Port: 53}}
	run := live.DNSRun{From: fromImage, To: toImage, Corefile: live.Hash(dnsText), Candidate: live.Hash(dnsText), Opened: time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)}
	return []func(live.Kube) rollout.Act{
		func(k live.Kube) rollout.Act {
			return rollout.EnsureDNSRole{ResourceVersion: k.DNS.Role.ResourceVersion}
		},
		func(k live.Kube) rollout.Act {
			return rollout.CanaryDNS{Image: toImage, Corefile: dnsText, Questions: question, Run: run, ResourceVersion: k.DNS.Config.ResourceVersion}
		},
		func(k live.Kube) rollout.Act {
			return rollout.SyncDNSConfig{DNS: live.KubeadmDNS{ImageTag: "v1.14.6"}, ResourceVersion: k.KubeadmConfig.ResourceVersion}
		},
		func(k live.Kube) rollout.Act {
			return rollout.WriteCorefile{Key: live.CorefileBackupKey, Text: dnsText, ResourceVersion: k.DNS.Config.ResourceVersion}
		},
		func(k live.Kube) rollout.Act {
			return rollout.PatchDNS{Image: toImage, Volume: "config-volume", Items: []live.VolumeItem{{Key: "Corefile", Path: "Corefile"}}, ResourceVersion: k.DNS.Deployment.ResourceVersion}
		},
		func(k live.Kube) rollout.Act {
			return rollout.VerifyDNS{Questions: question, Run: *k.DNS.Config.Run, ResourceVersion: k.DNS.Config.ResourceVersion}
		},
		func(k live.Kube) rollout.Act {
			return rollout.RecordDNSRun{Run: *k.DNS.Config.Run, ResourceVersion: k.DNS.Config.ResourceVersion}
		},
	}
}

// run does everything that an upgrade does, without asking for rights first.
func (u *upgrade) run() error {
	ctx, cancel := context.WithCancel(u.t.Context())
	defer cancel()
	go u.kubelet(ctx)
	lock, err := u.client.Acquire(ctx, "upgrader", 0)
	if err != nil {
		return err
	}
	defer func() { _ = lock.Release(context.WithoutCancel(ctx)) }()
	if err := lock.Check(ctx); err != nil {
		return err
	}
	version, err := u.WriteBook(ctx, "", logbook.Book{Fence: lock.Fence()})
	if err == nil {
		_, err = u.WriteBook(ctx, version, logbook.Book{Fence: lock.Fence() + 1})
	}
	if err != nil {
		return err
	}
	for _, act := range acts() {
		have, err := u.Observe(ctx)
		if err != nil {
			return err
		}
		if err := u.Execute(ctx, rollout.Step{Act: act(*have.Kube)}); err != nil {
			return err
		}
	}
	return nil
}
