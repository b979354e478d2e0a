// SPDX-License-Identifier: Apache-2.0

package kubeadmconfig_test

import (
	"reflect"
	"strings"
	"testing"

	"github.com/theseus-gitops/theseus/reconcile/kubeadmconfig"
)

func TestRead(t *testing.T) {
	t.Parallel()
	const head = "apiVersion: kubeadm.k8s.io/v1beta4\nkind: ClusterConfiguration\nkubernetesVersion: v1.36.3\n"
	pki := "/etc/kubernetes/pki"
	for name, c := range map[string]struct {
		text string
		want kubeadmconfig.Facts
	}{
		"little": {head, kubeadmconfig.Facts{KubernetesVersion: "v1.36.3", CertificatesDir: pki}},
		"much": {head + `controlPlaneEndpoint: api.example.com
certificatesDir: /srv/pki
etcd: {local: {imageTag: 3.6.16-0}}
apiServer:
  extraVolumes:
  - {name: b, hostPath: /etc/b, mountPath: /b}
  - {name: a, hostPath: /etc/a, mountPath: /a}
scheduler:
  extraVolumes: [{name: a, hostPath: /etc/a, mountPath: /a}]
`, kubeadmconfig.Facts{
			KubernetesVersion: "v1.36.3", Endpoint: "api.example.com:6443", EtcdImageTag: "3.6.16-0", CertificatesDir: "/srv/pki", HostFiles: []string{"/etc/a", "/etc/b"},
		}},
		"external etcd":  {head + "etcd: {external: {endpoints: []}}\n", kubeadmconfig.Facts{KubernetesVersion: "v1.36.3", ExternalEtcd: true, CertificatesDir: pki}},
		"port":           {head + "controlPlaneEndpoint: 10.0.0.1:443\n", kubeadmconfig.Facts{KubernetesVersion: "v1.36.3", Endpoint: "10.0.0.1:443", CertificatesDir: pki}},
		"IPv6":           {head + "controlPlaneEndpoint: '[fd00::1]'\n", kubeadmconfig.Facts{KubernetesVersion: "v1.36.3", Endpoint: "[fd00::1]:6443", CertificatesDir: pki}},
		"IPv6 with port": {head + "controlPlaneEndpoint: '[fd00::1]:443'\n", kubeadmconfig.Facts{KubernetesVersion: "v1.36.3", Endpoint: "[fd00::1]:443", CertificatesDir: pki}},
	} {
		if got, err := kubeadmconfig.Read(c.text); err != nil || !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: %+v, %v\nwant %+v", name, got, err, c.want)
		}
	}
	for text, want := range map[string]string{"": "kind", "kind: [": "YAML", strings.Replace(head, "ClusterConfiguration", "InitConfiguration", 1): "InitConfiguration"} {
		if _, err := kubeadmconfig.Read(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}
