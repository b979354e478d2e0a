// SPDX-License-Identifier: Apache-2.0

package kubeadmconfig_test

import (
	"strings"
	"testing"

	"github.com/theseus-gitops/theseus/reconcile/kubeadmconfig"
)

const kubeletConfig = `apiVersion: kubelet.config.k8s.io/v1beta1
cgroupDriver: systemd # as containerd
failCgroupV1: false
featureGates:
  # the lab
  KubeletInUserNamespace: true
  APIServerTracing: true # gone in 1.37
  KubeletTracing: false
kind: KubeletConfiguration
memoryThrottlingFactor: 0.8
notOfThisVersion: {a: 1}
`

func TestPruneKubelet(t *testing.T) {
	head := "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n"
	tests := []struct {
		name, text, to string
		want           string
		notes          []string
	}{
		{"all are known", kubeletConfig, "v1.33.13", kubeletConfig, nil},
		{"a gate of a version to come, and one against its lock", kubeletConfig, "v1.34.4", strings.Replace(kubeletConfig, "  KubeletTracing: false\n", "", 1),
			[]string{"KubeletTracing is dropped: the kubelet of Kubernetes v1.34.4 does not let it be set so"}},
		{"a gate that is gone", kubeletConfig, "v1.37.2",
			strings.NewReplacer("  APIServerTracing: true # gone in 1.37\n", "", "  KubeletTracing: false\n", "").Replace(kubeletConfig),
			[]string{"APIServerTracing is dropped: the kubelet of Kubernetes v1.37.2 does not know it", "KubeletTracing is dropped"}},
		{"no gate stays", head + "featureGates: {Gone: true}\nx: 1\n", "v1.37.2", head + "featureGates: {}\nx: 1\n", []string{"Gone is dropped"}},
		{"groups of gates stay", head + "featureGates:\n  AllBeta: false\n", "v1.37.2", head + "featureGates:\n  AllBeta: false\n", nil},
		{"no gates", head, "v1.37.2", head, nil},
		{"a factor with MemoryQoS off", head + "featureGates:\n  MemoryQoS: false\nmemoryThrottlingFactor: 0.8 # x\n", "v1.37.2", head + "featureGates:\n  MemoryQoS: false\n",
			[]string{"memoryThrottlingFactor is dropped"}},
		{"the old default factor", head + "featureGates:\n  MemoryQoS: false\nmemoryThrottlingFactor: 0.9\n", "v1.37.2",
			head + "featureGates:\n  MemoryQoS: false\nmemoryThrottlingFactor: 0.9\n", nil},
		{"a factor before 1.37", head + "featureGates:\n  MemoryQoS: false\nmemoryThrottlingFactor: 0.8\n", "v1.36.3",
			head + "featureGates:\n  MemoryQoS: false\nmemoryThrottlingFactor: 0.8\n", nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, notes, err := kubeadmconfig.PruneKubelet(tt.text, target(t, tt.to).Kubernetes)
			if err != nil || got != tt.want {
				t.Errorf("%v\ngot:\n%s\nwant:\n%s", err, got, tt.want)
			}
			if len(notes) != len(tt.notes) {
				t.Fatalf("notes %q, want %q", notes, tt.notes)
			}
			for i, want := range tt.notes {
				if !strings.Contains(notes[i], want) {
					t.Errorf("note %q, want %q in it", notes[i], want)
				}
			}
			if again, notes, err := kubeadmconfig.PruneKubelet(got, target(t, tt.to).Kubernetes); err != nil || again != got || notes != nil {
				t.Errorf("not idempotent: %v %q\n%s", err, notes, again)
			}
		})
	}
	for name, text := range map[string]string{
		"empty": "", "garbage": "a: [", "another kind": "apiVersion: v1\nkind: ConfigMap\n", "gates are text": head + "featureGates: x\n", "two documents": head + "---\n" + head,
	} {
		if got, _, err := kubeadmconfig.PruneKubelet(text, target(t, "v1.37.2").Kubernetes); err == nil || got != "" {
			t.Errorf("%s: got %q, error %v", name, got, err)
		}
	}
}
