// SPDX-License-Identifier: Apache-2.0

package kubeadm_test

import (
	"errors"
	"maps"
	"os"
	"reflect"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/theseus-gitops/theseus/executors/kubeadm"
	"github.com/theseus-gitops/theseus/internal/apiserver"
	"github.com/theseus-gitops/theseus/reconcile/live"
	"github.com/theseus-gitops/theseus/reconcile/rollout"
)

var server apiserver.Server

// stored is what kubeadm init stores, as far as these tests need it.
const stored = `apiVersion: kubeadm.k8s.io/v1beta4
clusterName: lab
controlPlaneEndpoint: 10.0.0.2:6443 # haproxy
dns: {}
kind: ClusterConfiguration
kubernetesVersion: v1.36.3
`

func TestMain(m *testing.M) { os.Exit(server.Run(m)) }

func create(t *testing.T, data map[string]string) (kubernetes.Interface, *corev1.ConfigMap) {
	t.Helper()
	server.Reset(t)
	client := server.Client(t)
	config, err := client.CoreV1().ConfigMaps("kube-system").Create(t.Context(), &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: "kubeadm-config", Labels: map[string]string{"keep": "me"}},
		Data:       data, BinaryData: map[string][]byte{"bin": {0, 255}},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return client, config
}

func read(t *testing.T, client kubernetes.Interface) *corev1.ConfigMap {
	t.Helper()
	config, err := client.CoreV1().ConfigMaps("kube-system").Get(t.Context(), "kubeadm-config", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return config
}

func TestSyncDNSWritesOneKey(t *testing.T) {
	client, before := create(t, map[string]string{"ClusterConfiguration": stored, "ClusterStatus": "old"})
	act := rollout.SyncDNSConfig{DNS: live.KubeadmDNS{ImageTag: "v1.14.6"}, ResourceVersion: before.ResourceVersion}
	if err := kubeadm.SyncDNS(t.Context(), client, act); err != nil {
		t.Fatal(err)
	}
	after := read(t, client)
	want := maps.Clone(before.Data)
	want["ClusterConfiguration"] = strings.Replace(stored, "dns: {}\n", "dns:\n  imageTag: v1.14.6\n", 1)
	if !reflect.DeepEqual(after.Data, want) {
		t.Errorf("data is %q, want %q", after.Data, want)
	}
	if !reflect.DeepEqual(after.BinaryData, before.BinaryData) || !reflect.DeepEqual(after.Labels, before.Labels) {
		t.Error("binaryData or labels changed")
	}

	act.ResourceVersion = after.ResourceVersion
	if err := kubeadm.SyncDNS(t.Context(), client, act); err != nil {
		t.Fatal(err)
	}
	if again := read(t, client); again.ResourceVersion != after.ResourceVersion {
		t.Error("a section that is as wanted was written again")
	}
}

func TestSyncDNSRefusesAnOlderView(t *testing.T) {
	client, before := create(t, map[string]string{"ClusterConfiguration": stored})
	theirs := before.DeepCopy()
	theirs.Data["other"] = "theirs"
	if _, err := client.CoreV1().ConfigMaps("kube-system").Update(t.Context(), theirs, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	err := kubeadm.SyncDNS(t.Context(), client, rollout.SyncDNSConfig{DNS: live.KubeadmDNS{ImageTag: "v1.14.6"}, ResourceVersion: before.ResourceVersion})
	if !errors.Is(err, rollout.ErrConflict) {
		t.Errorf("error is %v, want a conflict", err)
	}
	if got := read(t, client).Data["ClusterConfiguration"]; got != stored {
		t.Errorf("it was written all the same:\n%s", got)
	}
}

func TestSyncDNSExplains(t *testing.T) {
	act := rollout.SyncDNSConfig{DNS: live.KubeadmDNS{ImageTag: "v1.14.6"}}
	fails := func(t *testing.T, client kubernetes.Interface, act rollout.SyncDNSConfig, want string) {
		t.Helper()
		if err := kubeadm.SyncDNS(t.Context(), client, act); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error is %v, want one with %q", err, want)
		}
	}
	t.Run("no ConfigMap", func(t *testing.T) {
		server.Reset(t)
		act := act
		act.ResourceVersion = "1"
		fails(t, server.Client(t), act, "does not exist; restore it with")
	})
	t.Run("no key", func(t *testing.T) {
		client, config := create(t, nil)
		act := act
		act.ResourceVersion = config.ResourceVersion
		fails(t, client, act, "has no key ClusterConfiguration")
	})
	t.Run("garbage", func(t *testing.T) {
		client, config := create(t, map[string]string{"ClusterConfiguration": "a: ["})
		act := act
		act.ResourceVersion = config.ResourceVersion
		fails(t, client, act, "key ClusterConfiguration: not YAML")
	})
	t.Run("no precondition", func(t *testing.T) {
		client, _ := create(t, map[string]string{"ClusterConfiguration": stored})
		fails(t, client, act, "carries no resourceVersion")
	})
	t.Run("no right", func(t *testing.T) {
		create(t, map[string]string{"ClusterConfiguration": stored})
		config, err := clientcmd.RESTConfigFromKubeConfig(server.UserKubeconfig(t, "nobody"))
		if err != nil {
			t.Fatal(err)
		}
		client, err := kubernetes.NewForConfig(config)
		if err != nil {
			t.Fatal(err)
		}
		act := act
		act.ResourceVersion = "1"
		fails(t, client, act, "grant verb get on configmaps")
	})
}
