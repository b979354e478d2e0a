// SPDX-License-Identifier: Apache-2.0

package skew_test

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/theseus-gitops/theseus/reconcile/skew"
)

type gateRow struct {
	minor uint64
	name  string
	value bool
	want  skew.GateFate
}

func TestKubeadmGate(t *testing.T) {
	t.Parallel()
	const localMode, learner = "ControlPlaneKubeletLocalMode", "EtcdLearnerMode"
	for _, row := range []gateRow{
		{31, localMode, true, skew.GateTaken},
		{32, localMode, false, skew.GateTaken},
		{34, localMode, false, skew.GateTaken},
		{35, localMode, true, skew.GateTaken},
		{35, localMode, false, skew.GateLocked},
		{36, localMode, true, skew.GateUnknown}, // kubernetes/kubernetes#135773
		{39, localMode, true, skew.GateUnknown},
		{31, learner, false, skew.GateTaken},
		{32, learner, false, skew.GateLocked},
		{33, learner, false, skew.GateUnknown}, // kubernetes/kubernetes#129589
		{36, "PublicKeysECDSA", true, skew.GateTaken},
		{37, "PublicKeysECDSA", true, skew.GateUnknown},
		{31, "NodeLocalCRISocket", true, skew.GateUnknown},
		{37, "NodeLocalCRISocket", true, skew.GateUnknown},
		{35, "WaitForAllControlPlaneComponents", true, skew.GateUnknown},
		{38, "RootlessControlPlane", true, skew.GateTaken},
		{39, "RootlessControlPlane", true, skew.GateTaken},
		{38, "Unheard", true, skew.GateUnknown},
		{39, "Unheard", true, skew.GateTaken},
	} {
		if got := skew.KubeadmGate(skew.Version{Major: 1, Minor: row.minor}, row.name, row.value); got != row.want {
			t.Errorf("kubeadm 1.%d, %s=%t: %d, want %d", row.minor, row.name, row.value, got, row.want)
		}
	}
}

func TestKubeletGate(t *testing.T) {
	t.Parallel()
	for _, row := range []gateRow{
		{37, "KubeletInUserNamespace", true, skew.GateTaken},
		{33, "APIServerTracing", false, skew.GateTaken},
		{34, "APIServerTracing", false, skew.GateLocked},
		{36, "APIServerTracing", true, skew.GateTaken},
		{37, "APIServerTracing", true, skew.GateUnknown},
		{36, "APIServerWebhookAuthenticationToken", true, skew.GateUnknown},
		{37, "APIServerWebhookAuthenticationToken", true, skew.GateTaken},
		{37, "RotateKubeletClientCertificate", true, skew.GateUnknown},
		{37, "AllAlpha", false, skew.GateTaken},
		{32, "Unheard", true, skew.GateTaken},
		{38, "Unheard", true, skew.GateUnknown},
		{39, "Unheard", true, skew.GateTaken},
		{39, "APIServerIdentity", true, skew.GateTaken},
		{39, "APIServerTracing", true, skew.GateUnknown},
		{37, "", true, skew.GateUnknown},
		{37, "MemoryQoS 33", true, skew.GateUnknown},
	} {
		if got := skew.KubeletGate(skew.Version{Major: 1, Minor: row.minor}, row.name, row.value); got != row.want {
			t.Errorf("kubelet 1.%d, %s=%t: %d, want %d", row.minor, row.name, row.value, got, row.want)
		}
	}
}

// Each line of the table is read as it is written.
func TestKubeletGatesTable(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("kubelet_gates.txt")
	if err != nil {
		t.Fatal(err)
	}
	form := regexp.MustCompile(`^([A-Za-z0-9]+) (3[3-8]) (3[3-8]) (-|3[3-8] (true|false))$`)
	var names []string
	for line := range strings.Lines(string(text)) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		if m := form.FindStringSubmatch(strings.TrimSuffix(line, "\n")); m == nil || m[2] > m[3] {
			t.Errorf("line %q", line)
		} else {
			names = append(names, m[1])
		}
	}
	if !slices.IsSorted(names) || len(slices.Compact(slices.Clone(names))) != len(names) || len(names) < 300 {
		t.Errorf("%d names, not sorted or with one twice", len(names))
	}
}
