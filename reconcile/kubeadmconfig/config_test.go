// SPDX-License-Identifier: Apache-2.0

package kubeadmconfig_test

import (
	"reflect"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/theseus-gitops/theseus/reconcile/kubeadmconfig"
	"github.com/theseus-gitops/theseus/reconcile/skew"
)

func target(t *testing.T, kubernetes string) kubeadmconfig.Target {
	t.Helper()
	v, err := skew.Parse(kubernetes)
	if err != nil {
		t.Fatal(err)
	}
	return kubeadmconfig.Target{Kubernetes: v}
}

// old is what kubeadm 1.30 stored, with additions by hand.
const old = `apiServer:
  extraArgs:
    # who did what
    audit-log-path: /var/log/audit.log # mounted below
    v: "4"
    authorization-mode: Node,RBAC
  extraVolumes:
  - hostPath: /var/log
    mountPath: /var/log
    name: log
  timeoutForControlPlane: 4m0s
apiVersion: kubeadm.k8s.io/v1beta3
certificatesDir: /etc/kubernetes/pki
clusterName: lab
# our endpoint, do not change
controlPlaneEndpoint: 10.0.0.2:6443 # haproxy
controllerManager:
  extraArgs: {bind-address: 0.0.0.0, "n": "on"}
dns: {}
etcd:
  local:
    dataDir: /var/lib/etcd
    extraArgs:
      quota-backend-bytes: "8589934592"
imageRepository: registry.k8s.io
kind: ClusterConfiguration
kubernetesVersion: v1.30.14
networking:
  dnsDomain: cluster.local
scheduler: {}
`

func TestEditConfig(t *testing.T) {
	replace := func(text string, pairs ...string) string {
		for i := 0; i < len(pairs); i += 2 {
			if !strings.Contains(text, pairs[i]) {
				t.Fatalf("nothing to replace: %q", pairs[i])
			}
			text = strings.Replace(text, pairs[i], pairs[i+1], 1)
		}
		return text
	}
	version := []string{"kubernetesVersion: v1.36.3", "kubernetesVersion: v1.37.2"}
	tag := []string{"    dataDir: /var/lib/etcd\n", "    imageTag: 3.7.3-0\n    dataDir: /var/lib/etcd\n"}
	gates := func(section string) string { return replace(stored, "futureField:\n", section+"futureField:\n") }
	tests := []struct {
		name, text, to, repository, etcd string
		want                             string
		notes                            []string
	}{
		{name: "only the version is old", text: stored, to: "v1.37.2", want: replace(stored, version...)},
		{name: "nothing to change", text: stored, to: "v1.36.3", want: stored},
		{name: "etcd's tag is added", text: stored, to: "v1.36.3", etcd: "3.7.3-0", want: replace(stored, tag...)},
		{name: "etcd's tag changes in its place", text: replace(stored, "    dataDir: /var/lib/etcd\n", "    # pinned\n    imageTag: 3.6.16-0 # see 12\n"), to: "v1.37.2", etcd: "3.7.3-0",
			want: replace(stored, append([]string{"    dataDir: /var/lib/etcd\n", "    # pinned\n    imageTag: 3.7.3-0 # see 12\n"}, version...)...)},
		{name: "no section etcd.local", text: replace(stored, "  local:\n    dataDir: /var/lib/etcd\n", "  local: {}\n"), to: "v1.36.3", etcd: "3.7.3-0",
			want: replace(stored, "    dataDir: /var/lib/etcd\n", "    imageTag: 3.7.3-0\n")},
		{name: "no section etcd", text: replace(stored, "etcd:\n  local:\n    dataDir: /var/lib/etcd\n", ""), to: "v1.36.3", etcd: "3.7.3-0",
			want: replace(stored, "    dataDir: /var/lib/etcd\n", "    imageTag: 3.7.3-0\n")},
		{name: "etcd in flow style", text: replace(stored, "etcd:\n  local:\n    dataDir: /var/lib/etcd\n", "etcd: {local: {dataDir: /var/lib/etcd}} # x\n"), to: "v1.36.3", etcd: "3.7.3-0",
			want: replace(stored, "etcd:\n  local:\n    dataDir: /var/lib/etcd\n", "etcd: # x\n  local:\n    dataDir: /var/lib/etcd\n    imageTag: 3.7.3-0\n")},
		// kubernetes-sigs/cluster-api#2805: a repository that reached one of the images only.
		{name: "everything in one write", text: stored, to: "v1.37.2", etcd: "3.7.3-0", repository: "r.example.com:5000/k8s",
			want: replace(stored, append([]string{"imageRepository: registry.k8s.io", "imageRepository: r.example.com:5000/k8s"}, append(tag, version...)...)...)},
		{name: "a repository where none was", text: replace(stored, "imageRepository: registry.k8s.io\n", ""), to: "v1.36.3", repository: "r.example.com",
			want: replace(stored, "imageRepository: registry.k8s.io", "imageRepository: r.example.com")},
		// vexxhost/magnum-cluster-api#1065, kubernetes/kubernetes#135773: a gate that kubeadm 1.36 no longer knows.
		{name: "local mode is dropped at 1.36", text: gates("featureGates:\n  ControlPlaneKubeletLocalMode: true # 1.31\n  # root\n  RootlessControlPlane: true\n"), to: "v1.36.3",
			want: gates("featureGates:\n  # root\n  RootlessControlPlane: true\n"), notes: []string{"ControlPlaneKubeletLocalMode is dropped: kubeadm of Kubernetes v1.36.3 does not know it"}},
		{name: "local mode stays at 1.35", text: replace(gates("featureGates:\n  ControlPlaneKubeletLocalMode: true\n"), "v1.36.3", "v1.35.9"), to: "v1.35.9",
			want: replace(gates("featureGates:\n  ControlPlaneKubeletLocalMode: true\n"), "v1.36.3", "v1.35.9")},
		{name: "local mode false is dropped at 1.35", text: replace(gates("featureGates:\n  ControlPlaneKubeletLocalMode: false\n"), "v1.36.3", "v1.35.9"), to: "v1.35.9",
			want: replace(gates("featureGates: {}\n"), "v1.36.3", "v1.35.9"), notes: []string{"does not let it be set so"}},
		// kubernetes/kubernetes#129589, aws/eks-anywhere#7669.
		{name: "EtcdLearnerMode is dropped at 1.33", text: replace(gates("featureGates:\n  EtcdLearnerMode: false\n"), "v1.36.3", "v1.32.0"), to: "v1.33.13",
			want: replace(gates("featureGates: {}\n"), "v1.36.3", "v1.33.13"), notes: []string{"EtcdLearnerMode is dropped"}},
		// kubernetes/kubernetes#127316, kubermatic/kubeone#3575, kube-vip/kube-vip#949.
		{name: "local mode is set at 1.31", text: old, to: "v1.31.0",
			want:  replace(old, "imageRepository:", "featureGates:\n  ControlPlaneKubeletLocalMode: true\nimageRepository:", "v1.30.14", "v1.31.0"),
			notes: []string{"ControlPlaneKubeletLocalMode is set"}},
		{name: "local mode is set at 1.32", text: replace(old, "dns: {}\n", "dns: {}\nfeatureGates:\n  PublicKeysECDSA: true\n"), to: "v1.32.0",
			want:  replace(old, "dns: {}\n", "dns: {}\nfeatureGates:\n  ControlPlaneKubeletLocalMode: true\n  PublicKeysECDSA: true\n", "v1.30.14", "v1.32.0"),
			notes: []string{"ControlPlaneKubeletLocalMode is set"}},
		{name: "local mode false stays, with a warning", text: replace(old, "dns: {}\n", "dns: {}\nfeatureGates: {ControlPlaneKubeletLocalMode: false}\n"), to: "v1.31.0",
			want:  replace(old, "dns: {}\n", "dns: {}\nfeatureGates: {ControlPlaneKubeletLocalMode: false}\n", "v1.30.14", "v1.31.0"),
			notes: []string{"CreateContainerConfigError"}},
		{name: "local mode is not set at 1.33", text: old, to: "v1.33.13", want: replace(old, "v1.30.14", "v1.33.13")},
		{name: "ECDSA keys stay ECDSA keys", text: gates("featureGates:\n  PublicKeysECDSA: true\n"), to: "v1.37.2",
			want:  replace(gates("featureGates: {}\n"), "encryptionAlgorithm: RSA-2048", "encryptionAlgorithm: ECDSA-P256", "v1.36.3", "v1.37.2"),
			notes: []string{"PublicKeysECDSA is dropped", "encryptionAlgorithm: ECDSA-P256 takes the place"}},
		// apache/cloudstack#14181, kubermatic/kubermatic#8039, kubernetes/kubernetes#136016: an API version that kubeadm no longer reads.
		{name: "v1beta3 becomes v1beta4 at 1.37", text: old, to: "v1.37.2",
			want: replace(old, `    # who did what
    audit-log-path: /var/log/audit.log # mounted below
    v: "4"
    authorization-mode: Node,RBAC
`, `    # who did what
    - name: audit-log-path # mounted below
      value: /var/log/audit.log
    - name: v
      value: "4"
    - name: authorization-mode
      value: Node,RBAC
`, "  timeoutForControlPlane: 4m0s\n", "", "v1beta3", "v1beta4", "  extraArgs: {bind-address: 0.0.0.0, \"n\": \"on\"}\n", `  extraArgs: [{name: bind-address, value: 0.0.0.0}, {name: "n", value: "on"}]
`, `      quota-backend-bytes: "8589934592"
`, `      - name: quota-backend-bytes
        value: "8589934592"
`, "v1.30.14", "v1.37.2"), notes: []string{"converted from v1beta3 to v1beta4"}},
		{name: "v1beta3 stays at 1.36, for old workers", text: old, to: "v1.36.3", want: replace(old, "v1.30.14", "v1.36.3")},
		{name: "CRLF", text: strings.ReplaceAll(stored, "\n", "\r\n"), to: "v1.37.2", etcd: "3.7.3-0", want: strings.ReplaceAll(replace(stored, append(tag, version...)...), "\n", "\r\n")},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			to := target(t, tt.to)
			to.ImageRepository, to.EtcdImageTag = tt.repository, tt.etcd
			got, notes, err := kubeadmconfig.EditConfig(tt.text, to)
			if err != nil {
				t.Fatal(err)
			}
			if tt.name == "v1beta3 becomes v1beta4 at 1.37" {
				same(t, got, tt.want) // one section of it is in flow style, which costs the layout
			} else if got != tt.want {
				t.Errorf("got:\n%s\nwant:\n%s", got, tt.want)
			}
			if len(notes) != len(tt.notes) {
				t.Errorf("notes %q, want %q", notes, tt.notes)
			}
			for i := range min(len(notes), len(tt.notes)) {
				if !strings.Contains(notes[i], tt.notes[i]) {
					t.Errorf("note %q, want %q in it", notes[i], tt.notes[i])
				}
			}
			if again, _, err := kubeadmconfig.EditConfig(got, to); err != nil || again != got {
				t.Errorf("not idempotent: %v\n%s", err, again)
			}
		})
	}
}

// same compares values and comments.
func same(t *testing.T, got, want string) {
	t.Helper()
	var a, b any
	if err := yaml.Unmarshal([]byte(got), &a); err != nil {
		t.Fatalf("%v\n%s", err, got)
	}
	if err := yaml.Unmarshal([]byte(want), &b); err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(a, b) {
		t.Errorf("got:\n%s\nwant:\n%s", got, want)
	}
	for line := range strings.Lines(want) {
		if _, comment, ok := strings.Cut(line, "# "); ok && !strings.Contains(got, "# "+comment) {
			t.Errorf("comment %q is lost in\n%s", comment, got)
		}
	}
}

func TestConversionKeepsTheLayout(t *testing.T) {
	text := strings.Replace(old, "  extraArgs: {bind-address: 0.0.0.0, \"n\": \"on\"}\n", "  extraArgs:\n    bind-address: 0.0.0.0\n    empty:\n", 1)
	got, _, err := kubeadmconfig.EditConfig(text, target(t, "v1.37.2"))
	if err != nil {
		t.Fatal(err)
	}
	want := strings.NewReplacer(
		"    audit-log-path: /var/log/audit.log # mounted below\n", "    - name: audit-log-path # mounted below\n      value: /var/log/audit.log\n",
		"    v: \"4\"\n", "    - name: v\n      value: \"4\"\n",
		"    authorization-mode: Node,RBAC\n", "    - name: authorization-mode\n      value: Node,RBAC\n",
		"    bind-address: 0.0.0.0\n    empty:\n", "    - name: bind-address\n      value: 0.0.0.0\n    - name: empty\n      value: \"\"\n",
		"      quota-backend-bytes: \"8589934592\"\n", "      - name: quota-backend-bytes\n        value: \"8589934592\"\n",
		"  timeoutForControlPlane: 4m0s\n", "", "v1beta3", "v1beta4", "v1.30.14", "v1.37.2",
	).Replace(text)
	if got != want {
		t.Errorf("got:\n%s\nwant:\n%s", got, want)
	}
}

func TestEditConfigRefuses(t *testing.T) {
	with := func(from, to string) string {
		if !strings.Contains(stored, from) {
			t.Fatalf("nothing to replace: %q", from)
		}
		return strings.Replace(stored, from, to, 1)
	}
	inOld := func(from, to string) string { return strings.Replace(old, from, to, 1) }
	for _, tt := range []struct{ name, text, to, want string }{
		{"empty", "", "v1.37.2", "empty"},
		{"garbage", "a: [", "v1.37.2", "not YAML"},
		{"another kind", with("kind: Cluster", "kind: Init"), "v1.37.2", `kind is "InitConfiguration"`},
		{"a version of long ago", with("v1beta4", "v1beta2"), "v1.37.2", "does not read apiVersion kubeadm.k8s.io/v1beta2; convert it"},
		{"a version to come", with("kubeadm.k8s.io/v1beta4", "kubeadm.k8s.io/v2"), "v1.37.2", "kubeadm.k8s.io/v2"},
		{"v1 is not known before 1.37", with("kubeadm.k8s.io/v1beta4", "kubeadm.k8s.io/v1"), "v1.36.3", "kubeadm.k8s.io/v1;"},
		{"target too old", stored, "v1.30.14", "v1.31 and later"},
		{"no endpoint", with("controlPlaneEndpoint", "x"), "v1.37.2", "controlPlaneEndpoint is not set"},
		{"external etcd", with("  local:\n    dataDir: /var/lib/etcd\n", "  external:\n    endpoints: [https://e:2379]\n"), "v1.37.2", "etcd.external"},
		{"gates are a list", with("futureField:", "featureGates: [a]\nfutureField:"), "v1.37.2", "featureGates is not a mapping"},
		{"etcd is text", with("etcd:\n  local:\n    dataDir: /var/lib/etcd\n", "etcd: x\n"), "v1.37.2", "etcd is not a mapping"},
		// etcd-io/website#1168: the new member would not start.
		{"an argument that etcd 3.7 lacks", with("    dataDir: /var/lib/etcd\n", "    extraArgs:\n    - name: experimental-initial-corrupt-check\n      value: \"true\"\n"), "v1.37.2", "no experimental-initial-corrupt-check"},
		{"the same in v1beta3", inOld("quota-backend-bytes", "experimental-x"), "v1.37.2", "no experimental-x"},
		{"arguments by alias", inOld("    v: \"4\"\n", "    v: &v \"4\"\n    w: *v\n"), "v1.37.2", "no aliases"},
		{"arguments merged", "x: &x {a: b}\n" + inOld("    v: \"4\"\n", "    <<: *x\n"), "v1.37.2", "no aliases"},
		{"arguments that are text", inOld("  extraArgs: {bind-address: 0.0.0.0, \"n\": \"on\"}\n", "  extraArgs: x\n"), "v1.37.2", "controllerManager.extraArgs is not a mapping"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			to := target(t, tt.to)
			to.EtcdImageTag = "3.7.3-0"
			got, _, err := kubeadmconfig.EditConfig(tt.text, to)
			if err == nil || got != "" || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %q, error %v; want an error with %q", got, err, tt.want)
			}
		})
	}
}
