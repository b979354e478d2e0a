// SPDX-License-Identifier: Apache-2.0

package kubeadm_test

import (
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/theseus-gitops/theseus/executors/kubeadm"
	"github.com/theseus-gitops/theseus/reconcile/live"
	"github.com/theseus-gitops/theseus/reconcile/rollout"
	"github.com/theseus-gitops/theseus/reconcile/spec"
)

const planted = "PLANTED PRIVATE KEY"

// sealed is a value as kubeadm encrypts it.
func sealed(t *testing.T, key, plain string) []byte {
	t.Helper()
	raw, err := hex.DecodeString(key)
	if err != nil {
		t.Fatal(err)
	}
	block, err := aes.NewCipher(raw)
	if err != nil {
		t.Fatal(err)
	}
	gcm, err := cipher.NewGCM(block)
	if err != nil {
		t.Fatal(err)
	}
	nonce := make([]byte, gcm.NonceSize())
	if _, err := rand.Read(nonce); err != nil {
		t.Fatal(err)
	}
	return gcm.Seal(nonce, nonce, []byte(plain), nil)
}

// playNode plays the node's kubelet and its kubeadm: it waits for the pod, does what upload-certs does, and ends the pod.
func playNode(t *testing.T, client kubernetes.Interface, end func(ctx context.Context, pod *corev1.Pod, key string)) {
	t.Helper()
	ctx := t.Context()
	go func() {
		for ctx.Err() == nil {
			pod, err := client.CoreV1().Pods("kube-system").Get(ctx, "theseus-credentials", metav1.GetOptions{})
			if err != nil {
				time.Sleep(20 * time.Millisecond)
				continue
			}
			secret, err := client.CoreV1().Secrets("kube-system").Get(ctx, pod.Spec.Volumes[len(pod.Spec.Volumes)-1].Secret.SecretName, metav1.GetOptions{})
			if err != nil {
				t.Error("the pod's Secret:", err)
				return
			}
			_, rest, _ := strings.Cut(string(secret.Data["kubeadm.yaml"]), "certificateKey: ")
			key, _, _ := strings.Cut(rest, "\n")
			end(ctx, pod, key)
			return
		}
	}()
}

// upload makes Secret kubeadm-certs as kubeadm does, without the keys that are left out.
func upload(ctx context.Context, t *testing.T, client kubernetes.Interface, key string, leftOut ...string) {
	t.Helper()
	ca, err := os.ReadFile("testdata/ca.crt")
	if err != nil {
		t.Fatal(err)
	}
	data := map[string][]byte{
		"ca.crt": sealed(t, key, string(ca)), "ca.key": sealed(t, key, planted), "etcd-ca.crt": sealed(t, key, "etcd certificate"), "etcd-ca.key": sealed(t, key, "etcd "+planted),
	}
	for _, name := range leftOut {
		delete(data, name)
	}
	owner, err := client.CoreV1().Secrets("kube-system").Create(ctx, &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: "bootstrap-token-abcdef", Namespace: "kube-system"}, Type: corev1.SecretTypeBootstrapToken,
		StringData: map[string]string{"token-id": "abcdef", "token-secret": "0123456789abcdef", "description": "Proxy for managing TTL for the kubeadm-certs secret"},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Error(err)
		return
	}
	_, err = client.CoreV1().Secrets("kube-system").Create(ctx, &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: "kubeadm-certs", Namespace: "kube-system", OwnerReferences: []metav1.OwnerReference{{APIVersion: "v1", Kind: "Secret", Name: owner.Name, UID: owner.UID}}},
		Data:       data,
	}, metav1.CreateOptions{})
	if err != nil {
		t.Error(err)
	}
}

func phase(ctx context.Context, t *testing.T, client kubernetes.Interface, pod *corev1.Pod, phase corev1.PodPhase, message string) {
	t.Helper()
	pod.Status.Phase = phase
	if message != "" {
		pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "theseus", State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 1, Message: message}}}}
	}
	if _, err := client.CoreV1().Pods("kube-system").UpdateStatus(ctx, pod, metav1.UpdateOptions{}); err != nil {
		t.Error("pod status:", err)
	}
}

// left is what of joins is in the cluster.
func left(t *testing.T, client kubernetes.Interface) []string {
	t.Helper()
	var out []string
	secrets, err := client.CoreV1().Secrets("kube-system").List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range secrets.Items {
		out = append(out, "secret "+s.Name)
	}
	pods, err := client.CoreV1().Pods("kube-system").List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range pods.Items {
		out = append(out, "pod "+p.Name)
	}
	return out
}

func obtain(t *testing.T, client kubernetes.Interface) (*kubeadm.Credentials, error) {
	t.Helper()
	act := rollout.ObtainCredentials{Node: "seed-cp-1", Image: "registry.k8s.io/kube-apiserver:v1.36.3"}
	return kubeadm.Obtain(t.Context(), client, act, kubeadm.ObtainOptions{KubeadmPath: "/usr/bin/kubeadm"})
}

func TestObtain(t *testing.T) {
	client, _ := create(t, map[string]string{"ClusterConfiguration": stored})
	playNode(t, client, func(ctx context.Context, pod *corev1.Pod, key string) {
		text := fmt.Sprintf("%+v", pod.Spec)
		if key == "" || strings.Contains(text, key) || pod.Spec.NodeName != "seed-cp-1" || *pod.Spec.AutomountServiceAccountToken {
			t.Errorf("key %d bytes long, pod %s", len(key), text)
		}
		upload(ctx, t, client, key)
		phase(ctx, t, client, pod, corev1.PodSucceeded, "")
	})
	c, err := obtain(t, client)
	if err != nil {
		t.Fatal(err)
	}
	if string(c.EtcdCACertificate()) != "etcd certificate" || string(c.EtcdCAKey()) != "etcd "+planted {
		t.Errorf("etcd's CA: %q, %q", c.EtcdCACertificate(), c.EtcdCAKey())
	}
	if got := fmt.Sprintf("%v %+v %#v %s", c, c, c, c); strings.Contains(got, "PLANTED") {
		t.Errorf("printed: %s", got)
	}
	if got := left(t, client); len(got) > 0 {
		t.Errorf("left in the cluster: %v", got)
	}
}

func TestObtainFails(t *testing.T) {
	for _, tc := range []struct {
		name   string
		end    func(ctx context.Context, client kubernetes.Interface, pod *corev1.Pod, key string)
		reason string
		text   string
	}{
		{"kubeadm fails", func(ctx context.Context, client kubernetes.Interface, pod *corev1.Pod, _ string) {
			phase(ctx, t, client, pod, corev1.PodFailed, "error execution phase upload-certs: the server refused")
		}, "CredentialsNotObtained", "the server refused"},
		{"killed after the upload", func(ctx context.Context, client kubernetes.Interface, pod *corev1.Pod, key string) {
			upload(ctx, t, client, key)
			phase(ctx, t, client, pod, corev1.PodFailed, "killed")
		}, "CredentialsNotObtained", "killed"},
		{"an external CA", func(ctx context.Context, client kubernetes.Interface, pod *corev1.Pod, key string) {
			upload(ctx, t, client, key, "ca.key")
			phase(ctx, t, client, pod, corev1.PodSucceeded, "")
		}, "CertificateKeyMissing", "ca.key"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			client, _ := create(t, map[string]string{"ClusterConfiguration": stored})
			playNode(t, client, func(ctx context.Context, pod *corev1.Pod, key string) { tc.end(ctx, client, pod, key) })
			_, err := obtain(t, client)
			var failure *rollout.Failure
			if !errors.As(err, &failure) || failure.Reason != tc.reason || !strings.Contains(failure.Message, tc.text) || !failure.Elsewhere {
				t.Errorf("got %v", err)
			}
			if got := left(t, client); len(got) > 0 {
				t.Errorf("left in the cluster: %v", got)
			}
		})
	}
}

// A join that a person has begun is not disturbed.
func TestObtainLeavesForeignCertificatesAlone(t *testing.T) {
	client, _ := create(t, map[string]string{"ClusterConfiguration": stored})
	upload(t.Context(), t, client, strings.Repeat("ab", 32))
	_, err := obtain(t, client)
	var failure *rollout.Failure
	if !errors.As(err, &failure) || failure.Reason != "JoinUnderWay" {
		t.Errorf("got %v", err)
	}
	if got := left(t, client); len(got) != 2 {
		t.Errorf("left in the cluster: %v, want the person's two Secrets", got)
	}
}

// What a killed run left is found and removed by the next one: the certificates are known by the key beside them.
func TestLeftCredentialsAreDeleted(t *testing.T) {
	client, _ := create(t, map[string]string{"ClusterConfiguration": stored})
	ctx, cancel := context.WithCancel(t.Context())
	uploaded := make(chan struct{})
	playNode(t, client, func(ctx context.Context, _ *corev1.Pod, key string) {
		upload(ctx, t, client, key)
		close(uploaded)
	})
	secret := func(name string, labels map[string]string) {
		_, err := client.CoreV1().Secrets("kube-system").Create(ctx, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "kube-system", Labels: labels}}, metav1.CreateOptions{})
		if err != nil && !apierrors.IsAlreadyExists(err) {
			t.Error(err)
		}
	}
	secret("a-persons", nil)
	go func() {
		_, _ = kubeadm.Obtain(ctx, client, rollout.ObtainCredentials{Node: "seed-cp-1", Image: "x"}, kubeadm.ObtainOptions{KubeadmPath: "/usr/bin/kubeadm"})
	}()
	<-uploaded
	if there, err := kubeadm.CredentialsLeft(t.Context(), client); err != nil || !there {
		t.Errorf("left: %v, %v", there, err)
	}
	if err := kubeadm.DeleteCredentials(t.Context(), client); err != nil {
		t.Fatal(err)
	}
	cancel()
	if got := left(t, client); len(got) != 1 || got[0] != "secret a-persons" {
		t.Errorf("left in the cluster: %v", got)
	}
	if there, err := kubeadm.CredentialsLeft(t.Context(), client); err != nil || there {
		t.Errorf("left: %v, %v", there, err)
	}
}

func TestPrepare(t *testing.T) {
	client, _ := create(t, map[string]string{"ClusterConfiguration": stored})
	sign := clusterInfo(t, client, map[string]string{"kubeconfig": "apiVersion: v1\n"})
	playNode(t, client, func(ctx context.Context, pod *corev1.Pod, key string) {
		upload(ctx, t, client, key)
		phase(ctx, t, client, pod, corev1.PodSucceeded, "")
	})
	c, err := obtain(t, client)
	if err != nil {
		t.Fatal(err)
	}
	go func() { // the controller-manager's signer
		for t.Context().Err() == nil {
			list, err := client.CoreV1().Secrets("kube-system").List(t.Context(), metav1.ListOptions{FieldSelector: "type=bootstrap.kubernetes.io/token"})
			if err == nil && len(list.Items) > 0 {
				sign(strings.TrimPrefix(list.Items[0].Name, "bootstrap-token-"))
				return
			}
			time.Sleep(20 * time.Millisecond)
		}
	}()
	until := time.Now().Add(35 * time.Minute)
	text, err := c.Prepare(t.Context(), client, kubeadm.JoinRequest{
		Act: rollout.AddMachine{
			Machine: live.Machine{Name: "seed-cp-2", KubernetesVersion: "v1.37.2"}, Until: until, Taints: []live.Taint{{Key: "only", Effect: "NoSchedule"}},
		},
		Spec: spec.Join{BindPort: 6443, KubeadmPath: "/usr/bin/kubeadm", NodeRegistration: spec.NodeRegistration{IgnorePreflightErrors: []string{"SystemVerification"}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(text), "PLANTED") || !strings.Contains(string(text), "10.0.0.2:6443") && !strings.Contains(string(text), "join.yaml") {
		t.Errorf("user data of %d bytes", len(text))
	}
	certs, err := client.CoreV1().Secrets("kube-system").Get(t.Context(), "kubeadm-certs", metav1.GetOptions{})
	if err != nil || len(certs.OwnerReferences) != 1 || !strings.HasPrefix(certs.OwnerReferences[0].Name, "bootstrap-token-") || len(certs.Data) != 4 {
		t.Errorf("kubeadm-certs: %v, owners %v", err, certs.OwnerReferences)
	}
	if there, err := kubeadm.CredentialsLeft(t.Context(), client); err != nil || !there {
		t.Errorf("there: %v, %v", there, err)
	}
	if err := kubeadm.DeleteCredentials(t.Context(), client); err != nil {
		t.Fatal(err)
	}
	if got := left(t, client); len(got) > 0 {
		t.Errorf("left in the cluster: %v", got)
	}
}
