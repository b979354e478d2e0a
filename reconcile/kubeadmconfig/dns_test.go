// SPDX-License-Identifier: Apache-2.0

package kubeadmconfig_test

import (
	"maps"
	"reflect"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/theseus-gitops/theseus/reconcile/kubeadmconfig"
	"github.com/theseus-gitops/theseus/reconcile/live"
)

// stored is what kubeadm init stores, with an addition by hand.
const stored = `apiServer:
  extraArgs:
  - name: audit-log-path
    value: /var/log/audit.log
apiVersion: kubeadm.k8s.io/v1beta4
caCertificateValidityPeriod: 87600h0m0s
certificatesDir: /etc/kubernetes/pki
clusterName: lab
# our endpoint, do not change
controlPlaneEndpoint: 10.0.0.2:6443 # haproxy
controllerManager: {}
dns: {}
encryptionAlgorithm: RSA-2048
etcd:
  local:
    dataDir: /var/lib/etcd
futureField:
  of: [another, "version"]
imageRepository: registry.k8s.io
kind: ClusterConfiguration
kubernetesVersion: v1.36.3
networking:
  dnsDomain: cluster.local
`

func TestEditDNS(t *testing.T) {
	v3 := strings.Replace(stored, "v1beta4", "v1beta3", 1)
	with := func(section string) string { return strings.Replace(stored, "dns: {}\n", section, 1) }
	tag := live.KubeadmDNS{ImageTag: "v1.14.6"}
	both := live.KubeadmDNS{ImageTag: "v1.14.6", ImageRepository: "registry.example.com/dns"}
	tests := []struct {
		name string
		text string
		dns  live.KubeadmDNS
		want string
	}{
		{"empty section", stored, tag, with("dns:\n  imageTag: v1.14.6\n")},
		{"v1beta3", v3, both, strings.Replace(v3, "dns: {}\n", "dns:\n  imageRepository: registry.example.com/dns\n  imageTag: v1.14.6\n", 1)},
		{"section missing", with(""), tag, with("dns:\n  imageTag: v1.14.6\n")},
		{"section null", with("dns:\n"), tag, with("dns:\n  imageTag: v1.14.6\n")},
		{"section null with comment", with("dns: # later\n"), tag, with("dns: # later\n  imageTag: v1.14.6\n")},
		{"tag changes, comments and unknown keys stay",
			with("dns: # mirrored\n  # see ticket 12\n  imageTag: v1.14.2 # pinned\n  # unknown\n  other:\n  - a\n\n# end\n"), tag,
			with("dns: # mirrored\n  # see ticket 12\n  imageTag: v1.14.6 # pinned\n  # unknown\n  other:\n  - a\n\n# end\n")},
		{"repository is added above", with("dns:\n  imageTag: v1.14.2\n"), both,
			with("dns:\n  imageRepository: registry.example.com/dns\n  imageTag: v1.14.6\n")},
		{"empty repository removes the key", with("dns:\n  imageRepository: old.example.com\n  imageTag: v1.14.2\n"), tag,
			with("dns:\n  imageTag: v1.14.6\n")},
		{"nothing left", with("dns:\n  imageRepository: old.example.com\n  imageTag: v1.14.2\n"), live.KubeadmDNS{}, stored},
		{"own indentation", with("dns:\n     imageTag: v1.14.2\n"), both,
			with("dns:\n     imageRepository: registry.example.com/dns\n     imageTag: v1.14.6\n")},
		{"as wanted already", with("dns: {imageTag:   v1.14.6} # as is\n"), tag, with("dns: {imageTag:   v1.14.6} # as is\n")},
		{"flow section", with("dns: {imageTag: v1.14.2, other: [1]} # x\n"), tag, with("dns: # x\n  imageTag: v1.14.6\n  other: [1]\n")},
		{"quoted keys", with("\"dns\":\n  'imageTag': 'v1.14.2'\n"), tag, with("\"dns\":\n  imageTag: v1.14.6\n")},
		{"a tag that reads as a number", stored, live.KubeadmDNS{ImageTag: "1.10"}, with("dns:\n  imageTag: \"1.10\"\n")},
		{"a tag that YAML 1.1 reads as a boolean", stored, live.KubeadmDNS{ImageTag: "on"}, with("dns:\n  imageTag: \"on\"\n")},
		{"disabled", stored, live.KubeadmDNS{Disabled: true}, with("dns:\n  disabled: true\n")},
		{"no longer disabled", with("dns:\n  disabled: true\n"), tag, with("dns:\n  imageTag: v1.14.6\n")},
		{"CRLF", strings.ReplaceAll(stored, "\n", "\r\n"), tag, strings.ReplaceAll(with("dns:\n  imageTag: v1.14.6\n"), "\n", "\r\n")},
		{"last without line end", "apiVersion: kubeadm.k8s.io/v1beta4\nkind: ClusterConfiguration\ndns:\n  imageTag: v1", tag,
			"apiVersion: kubeadm.k8s.io/v1beta4\nkind: ClusterConfiguration\ndns:\n  imageTag: v1.14.6"},
		{"missing, nothing sorts after it", "apiVersion: kubeadm.k8s.io/v1beta4\nKind: x\ndnS: x\nKIND: x\n\"\\u006bind\": ClusterConfiguration\n", tag,
			"apiVersion: kubeadm.k8s.io/v1beta4\nKind: x\ndnS: x\nKIND: x\ndns:\n  imageTag: v1.14.6\n\"\\u006bind\": ClusterConfiguration\n"},
		{"missing, the next key has a comment", "apiVersion: kubeadm.k8s.io/v1beta4\n# what it is\nkind: ClusterConfiguration\n", tag,
			"apiVersion: kubeadm.k8s.io/v1beta4\ndns:\n  imageTag: v1.14.6\n# what it is\nkind: ClusterConfiguration\n"},
		{"JSON", `{"apiVersion": "kubeadm.k8s.io/v1beta4", "kind": "ClusterConfiguration", "dns": {}, "x": 1}`, tag,
			"{\"apiVersion\": \"kubeadm.k8s.io/v1beta4\", \"kind\": \"ClusterConfiguration\", \"dns\": {imageTag: v1.14.6}, \"x\": 1}\n"},
		{"a value over two lines is printed anew", with("dns:\n  imageTag:\n    v1.14.2\n"), tag, with("dns:\n  imageTag: v1.14.6\n")},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := kubeadmconfig.EditDNS(tt.text, tt.dns)
			if err != nil {
				t.Fatal(err)
			}
			if got != tt.want {
				t.Errorf("got:\n%s\nwant:\n%s", got, tt.want)
			}
			again, err := kubeadmconfig.EditDNS(got, tt.dns)
			if err != nil || again != got {
				t.Errorf("not idempotent: %v\n%s", err, again)
			}
		})
	}
}

func TestEditDNSRefuses(t *testing.T) {
	tag := live.KubeadmDNS{ImageTag: "v1.14.6"}
	head := "apiVersion: kubeadm.k8s.io/v1beta4\nkind: ClusterConfiguration\n"
	tests := []struct {
		name, text string
		dns        live.KubeadmDNS
		want       string
	}{
		{"empty", "", tag, "empty"},
		{"comment only", "# nothing\n", tag, "empty"},
		{"garbage", "a: [", tag, "not YAML"},
		{"a list", "- a\n", tag, "not a mapping"},
		{"text", "hello", tag, "not a mapping"},
		{"another kind", "apiVersion: kubeadm.k8s.io/v1beta4\nkind: InitConfiguration\n", tag, `kind is "InitConfiguration"`},
		{"another group", "apiVersion: v1\nkind: ClusterConfiguration\n", tag, `apiVersion is "v1"`},
		{"two documents", head + "---\n" + head, tag, "more than one document"},
		{"duplicate key", head + "dns: {}\ndns: {}\n", tag, "already set in map"},
		{"dns is text", head + "dns: x\n", tag, "dns is not a mapping"},
		{"dns is an alias", head + "x: &x {}\ndns: *x\n", tag, "dns is not a mapping"},
		{"disabled before v1beta4", "apiVersion: kubeadm.k8s.io/v1beta3\nkind: ClusterConfiguration\n", live.KubeadmDNS{Disabled: true}, "v1beta4 does"},
		{"tag comes from a merged map", head + "x: &x {imageTag: v1}\ndns:\n  <<: *x\n", live.KubeadmDNS{}, "can't be set"},
		{"another key refers to the tag", head + "dns:\n  imageTag: &t v1\nx: *t\n", tag, "anchor"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := kubeadmconfig.EditDNS(tt.text, tt.dns)
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %q, error %v; want an error with %q", got, err, tt.want)
			}
		})
	}
}

// FuzzEditDNS: an accepted edit reads as wanted, changes nothing else, and is stable.
func FuzzEditDNS(f *testing.F) {
	f.Add(stored, "v1.14.6", "", false)
	f.Add(strings.Replace(stored, "dns: {}\n", "dns:\n  # a\n  imageTag: v1 # b\n  other: 1\n", 1), "", "r.example.com/x", true)
	f.Add("apiVersion: kubeadm.k8s.io/v1beta3\nkind: ClusterConfiguration\n...\n", "1.10", "", false)
	f.Add("{\"apiVersion\": \"kubeadm.k8s.io/v1beta4\", \"kind\": \"ClusterConfiguration\"}", "on", "x", false)
	f.Fuzz(func(t *testing.T, text, tag, repository string, disabled bool) {
		dns := live.KubeadmDNS{ImageTag: tag, ImageRepository: repository, Disabled: disabled}
		got, err := kubeadmconfig.EditDNS(text, dns)
		if err != nil || got == text {
			return
		}
		var before, after map[string]any
		if err := yaml.Unmarshal([]byte(text), &before); err != nil {
			return // kubeadm's library takes more than this one
		}
		if err := yaml.Unmarshal([]byte(got), &after); err != nil {
			t.Fatalf("the result is not YAML: %v\n%s", err, got)
		}
		section, _ := after["dns"].(map[string]any)
		if s, _ := section["imageTag"].(string); s != tag {
			t.Errorf("imageTag is %q, want %q in\n%s", s, tag, got)
		}
		if !reflect.DeepEqual(outside(before), outside(after)) {
			t.Errorf("changed outside of dns:\n%s\n→\n%s", text, got)
		}
		if again, err := kubeadmconfig.EditDNS(got, dns); err != nil || again != got {
			t.Errorf("not stable: %v\n%s", err, again)
		}
	})
}

func outside(config map[string]any) map[string]any {
	out := maps.Clone(config)
	delete(out, "dns")
	return out
}
