// SPDX-License-Identifier: Apache-2.0

package kube_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"net"
	"net/url"
	"strings"
	"testing"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/theseus-gitops/theseus/executors/kube"
	"github.com/theseus-gitops/theseus/reconcile/rollout"
)

// asked is a certificate request before it is made.
type asked struct {
	user, signer string
	groups       []string
	usages       []certificatesv1.KeyUsage
	template     x509.CertificateRequest
}

// proper is what the kubelet of cp-1 asks for.
func proper() asked {
	return asked{
		user: "system:node:cp-1", signer: certificatesv1.KubeletServingSignerName, groups: []string{"system:nodes"},
		usages: []certificatesv1.KeyUsage{certificatesv1.UsageDigitalSignature, certificatesv1.UsageServerAuth},
		template: x509.CertificateRequest{
			Subject:  pkix.Name{CommonName: "system:node:cp-1", Organization: []string{"system:nodes"}},
			DNSNames: []string{"cp-1"}, IPAddresses: []net.IP{net.ParseIP("10.0.0.11")},
		},
	}
}

// request makes it, as the user that it says.
func (a asked) request(t *testing.T) string {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.CreateCertificateRequest(rand.Reader, &a.template, key)
	if err != nil {
		t.Fatal(err)
	}
	config := server.Config(t)
	// The second group may make requests here; a kubelet's right to is not what is tested.
	config.Impersonate = rest.ImpersonationConfig{UserName: a.user, Groups: append(a.groups, "system:masters")}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	made, err := client.CertificatesV1().CertificateSigningRequests().Create(t.Context(), &certificatesv1.CertificateSigningRequest{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "csr-"},
		Spec: certificatesv1.CertificateSigningRequestSpec{
			Request: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der}), SignerName: a.signer, Usages: a.usages,
		},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return made.Name
}

func approved(t *testing.T, client *kube.Client, name string) bool {
	t.Helper()
	r, err := client.Interface().CertificatesV1().CertificateSigningRequests().Get(t.Context(), name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range r.Status.Conditions {
		if c.Type == certificatesv1.CertificateApproved {
			return true
		}
	}
	return false
}

func TestServingCSRIsSeenAndApproved(t *testing.T) {
	client := admin(t)
	place(t, client, planeNode("cp-1", "10.0.0.11"))
	place(t, client, planeNode("cp-2", "10.0.0.12"))
	other := proper()
	other.signer, other.usages = certificatesv1.KubeAPIServerClientKubeletSignerName, []certificatesv1.KeyUsage{certificatesv1.UsageDigitalSignature, certificatesv1.UsageClientAuth}
	other.template.DNSNames, other.template.IPAddresses = nil, nil
	other.request(t)
	name := proper().request(t)
	pending := func() string { return lookAt(t, client, kube.PlaneOptions{}).Plane.Parts["cp-1"].PendingCSR }
	if got := pending(); got != name {
		t.Errorf("pending is %q, want %q", got, name)
	}
	if got := lookAt(t, client, kube.PlaneOptions{}).Plane.Parts["cp-2"].PendingCSR; got != "" {
		t.Errorf("pending of cp-2 is %q", got)
	}
	for range 2 { // approved already is what was wanted
		if err := client.ApproveServingCSR(t.Context(), rollout.ApproveServingCSR{Name: name, Node: "cp-1"}); err != nil {
			t.Fatal(err)
		}
	}
	if !approved(t, client, name) {
		t.Error("it is not approved")
	}
	if got := pending(); got != "" {
		t.Errorf("pending is %q, though it is approved", got)
	}
	if err := client.ApproveServingCSR(t.Context(), rollout.ApproveServingCSR{Name: "csr-none", Node: "cp-1"}); !errors.Is(err, rollout.ErrConflict) {
		t.Errorf("a request that is gone: got %v, want a conflict", err)
	}
}

func TestServingCSRThatAsksForMoreIsRefused(t *testing.T) {
	uri, err := url.Parse("spiffe://x")
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		change func(*asked)
		want   string
	}{
		"another signer": {func(a *asked) {
			a.signer, a.usages = certificatesv1.KubeAPIServerClientKubeletSignerName, []certificatesv1.KeyUsage{certificatesv1.UsageDigitalSignature, certificatesv1.UsageClientAuth}
		}, "its signer is kubernetes.io/kube-apiserver-client-kubelet"},
		"another node's kubelet": {func(a *asked) { a.user = "system:node:cp-2" }, "it comes from user system:node:cp-2"},
		"a person":               {func(a *asked) { a.user = "eve" }, "it comes from user eve"},
		"another group":          {func(a *asked) { a.groups = nil }, "its user is not of group system:nodes"},
		"client too":             {func(a *asked) { a.usages = append(a.usages, certificatesv1.UsageClientAuth) }, `usage "client auth"`},
		"no serving":             {func(a *asked) { a.usages = a.usages[:1] }, `does not ask for usage "server auth"`},
		"another name":           {func(a *asked) { a.template.Subject.CommonName = "system:node:cp-2" }, "its common name is system:node:cp-2"},
		"masters":                {func(a *asked) { a.template.Subject.Organization = []string{"system:masters"} }, "its organization is"},
		"masters too":            {func(a *asked) { a.template.Subject.Organization = []string{"system:nodes", "system:masters"} }, "its organization is"},
		"foreign DNS name":       {func(a *asked) { a.template.DNSNames = []string{"cp-1", "api.example.com"} }, "api.example.com is not a name or an address of the node"},
		"wildcard":               {func(a *asked) { a.template.DNSNames = []string{"*.example.com"} }, "*.example.com is not"},
		"another node's name":    {func(a *asked) { a.template.DNSNames = []string{"cp-2"} }, "cp-2 is not"},
		"another node's address": {func(a *asked) { a.template.IPAddresses = []net.IP{net.ParseIP("10.0.0.12")} }, "10.0.0.12 is not"},
		"an address of two":      {func(a *asked) { a.template.IPAddresses = []net.IP{net.ParseIP("10.0.0.99")} }, "10.0.0.99 is a name or an address of several nodes: cp-1, cp-2"},
		"mail":                   {func(a *asked) { a.template.EmailAddresses = []string{"a@example.com"} }, "e-mail addresses or URIs"},
		"URI":                    {func(a *asked) { a.template.URIs = []*url.URL{uri} }, "e-mail addresses or URIs"},
		"nothing":                {func(a *asked) { a.template.DNSNames, a.template.IPAddresses = nil, nil }, "no name and no address"},
	} {
		t.Run(name, func(t *testing.T) {
			client := admin(t)
			for node, address := range map[string]string{"cp-1": "10.0.0.11", "cp-2": "10.0.0.12"} {
				n := planeNode(node, address)
				n.Status.Addresses = append(n.Status.Addresses, corev1.NodeAddress{Type: corev1.NodeExternalIP, Address: "10.0.0.99"})
				place(t, client, n)
			}
			a := proper()
			c.change(&a)
			request := a.request(t)
			err := client.ApproveServingCSR(t.Context(), rollout.ApproveServingCSR{Name: request, Node: "cp-1"})
			var failure *rollout.Failure
			if !errors.As(err, &failure) || failure.Reason != "ServingCSRRefused" || !failure.Elsewhere || !strings.Contains(failure.Message, c.want) {
				t.Errorf("got %v, want a failure with %q", err, c.want)
			}
			if approved(t, client, request) {
				t.Error("it is approved")
			}
		})
	}
}

func TestServingCSRThatIsDeniedStaysDenied(t *testing.T) {
	client := admin(t)
	place(t, client, planeNode("cp-1", "10.0.0.11"))
	name := proper().request(t)
	requests := client.Interface().CertificatesV1().CertificateSigningRequests()
	r, err := requests.Get(t.Context(), name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	r.Status.Conditions = []certificatesv1.CertificateSigningRequestCondition{{Type: certificatesv1.CertificateDenied, Status: corev1.ConditionTrue, Reason: "x"}}
	if _, err := requests.UpdateApproval(t.Context(), name, r, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	if got := lookAt(t, client, kube.PlaneOptions{}).Plane.Parts["cp-1"].PendingCSR; got != "" {
		t.Errorf("pending is %q, though it is denied", got)
	}
	err = client.ApproveServingCSR(t.Context(), rollout.ApproveServingCSR{Name: name, Node: "cp-1"})
	if err == nil || !strings.Contains(err.Error(), "somebody denied it") {
		t.Errorf("got %v, want a refusal", err)
	}
}
