// SPDX-License-Identifier: Apache-2.0

package kube_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/theseus-gitops/theseus/executors/kube"
	"github.com/theseus-gitops/theseus/reconcile/live"
)

// authority is a certificate authority of a test.
type authority struct {
	key         *ecdsa.PrivateKey
	certificate *x509.Certificate
}

func newAuthority(t *testing.T, name string) authority {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	certificate, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return authority{key, certificate}
}

func (a authority) pem() []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: a.certificate.Raw})
}

// server is an API server as far as its certificate goes: it listens, and knows nobody. It returns its address.
func (a authority) server(t *testing.T, names ...string) string {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: "kube-apiserver"}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	for _, name := range names {
		if ip := net.ParseIP(name); ip != nil {
			template.IPAddresses = append(template.IPAddresses, ip)
		} else {
			template.DNSNames = append(template.DNSNames, name)
		}
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.certificate, key.Public(), a.key)
	if err != nil {
		t.Fatal(err)
	}
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "" || len(r.TLS.PeerCertificates) > 0 {
			t.Error("the endpoint was shown credentials")
		}
		w.WriteHeader(http.StatusUnauthorized)
	}))
	s.TLS = &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}, ClientAuth: tls.RequestClientCert}
	s.StartTLS()
	t.Cleanup(s.Close)
	return s.Listener.Addr().String()
}

// node is an API server of a kubeadm node: the cluster's names, and its own.
func (a authority) node(t *testing.T, names ...string) string {
	t.Helper()
	return a.server(t, append([]string{"kubernetes", "kubernetes.default.svc", "10.96.0.1", "api.example.com"}, names...)...)
}

// balancer goes round its backends, one per connection.
type balancer struct {
	address  string
	accepted atomic.Int32
}

func newBalancer(t *testing.T, backends ...string) *balancer {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	b := &balancer{address: listener.Addr().String()}
	var running sync.WaitGroup
	t.Cleanup(func() { _ = listener.Close(); running.Wait() })
	running.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			n := int(b.accepted.Add(1)) - 1
			running.Go(func() { relay(conn, backends[n%len(backends)]) })
		}
	})
	return b
}

func relay(conn net.Conn, backend string) {
	defer conn.Close() //nolint:errcheck // the end of a test's connection
	to, err := net.Dial("tcp", backend)
	if err != nil {
		return
	}
	defer to.Close() //nolint:errcheck // the end of a test's connection
	go func() { _, _ = io.Copy(to, conn); _ = to.Close() }()
	_, _ = io.Copy(conn, to)
}

// closedPort is an address at which nothing listens.
func closedPort(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close() //nolint:errcheck // only the number is wanted
	return listener.Addr().String()
}

// three are the nodes of a control plane.
func three() live.Kube {
	var have live.Kube
	for name, address := range map[string]string{"cp-1": "10.0.0.11", "cp-2": "10.0.0.12", "cp-3": "10.0.0.13"} {
		have.Nodes = append(have.Nodes, live.Node{Name: name, ControlPlane: true, Ready: true, Addresses: []string{address}})
	}
	have.Nodes = append(have.Nodes, live.Node{Name: "w-1", Addresses: []string{"10.0.0.21"}})
	return have
}

func TestEndpointShowsWhomItLeadsTo(t *testing.T) {
	client := admin(t)
	ca, foreign := newAuthority(t, "kubernetes"), newAuthority(t, "balancer's own")
	one := ca.node(t, "cp-1", "10.0.0.11")
	two := ca.node(t, "CP-2", "10.0.0.12")
	addressOnly := ca.node(t, "10.0.0.13")
	all := []string{"10.0.0.11", "10.0.0.12", "10.0.0.13"}
	alike := func(name string) string { return ca.node(t, append([]string{name}, all...)...) }
	gone := ca.node(t, "cp-0", "10.0.0.10")
	closed := closedPort(t)
	const own = " by \"balancer's own\", which the cluster's CA does not stand for: x509: certificate signed by unknown authority"
	for name, c := range map[string]struct {
		backends []string
		expect   []string
		sans     string
		served   []string
		foreign  string
		down     string
		tries    int // at most
	}{
		"all three":                   {backends: []string{one, two, addressOnly}, served: []string{"cp-1", "cp-2", "cp-3"}, tries: 3},
		"one is not behind it":        {backends: []string{one, two}, served: []string{"cp-1", "cp-2"}, tries: 18},
		"only one is wanted":          {backends: []string{one, two, addressOnly}, expect: []string{"cp-2"}, served: []string{"cp-1", "cp-2", "cp-3"}, tries: 3},
		"one is down":                 {backends: []string{one, closed, addressOnly}, served: []string{"cp-1", "cp-3"}, tries: 18},
		"all name all addresses":      {backends: []string{alike("cp-1"), alike("cp-2"), alike("cp-3")}, served: []string{"cp-1", "cp-2", "cp-3"}, tries: 3},
		"certSANs name the first":     {backends: []string{ca.node(t, "cp-1", "10.0.0.11"), ca.node(t, "10.0.0.12", "10.0.0.11")}, sans: "10.0.0.11", served: []string{"cp-1", "cp-2"}, tries: 18},
		"two addresses, one in all":   {backends: []string{ca.node(t, "10.0.0.11"), ca.node(t, "10.0.0.12", "10.0.0.11")}, served: []string{"cp-1", "cp-2"}, tries: 18},
		"one whose Node is gone":      {backends: []string{one, gone}, served: []string{"cp-1"}, foreign: `a certificate for kubernetes, kubernetes.default.svc, api.example.com, cp-0, … by "kubernetes", which names no one control-plane node alone`, tries: 18},
		"nobody knows which":          {backends: []string{ca.node(t, "cp-1", "cp-2")}, foreign: "which names no one control-plane node alone", tries: 18},
		"it ends TLS":                 {backends: []string{foreign.server(t, "api.example.com")}, foreign: "a certificate for api.example.com" + own, tries: 18},
		"a node's name, a foreign CA": {backends: []string{foreign.server(t, "cp-1")}, foreign: "a certificate for cp-1" + own, tries: 18},
		"nothing listens":             {backends: []string{closed}, served: []string{}, down: "does not answer", tries: 7},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBalancer(t, c.backends...)
			have := three()
			have.KubeadmConfig = &live.KubeadmConfig{ClusterConfiguration: "controlPlaneEndpoint: api.example.com:6443\napiServer: {certSANs: [\"" + c.sans + "\"]}\n"}
			if err := client.ObservePlane(t.Context(), &have, kube.PlaneOptions{Endpoint: b.address, Expect: c.expect, CA: ca.pem()}); err != nil {
				t.Fatal(err)
			}
			if p := have.Plane; !reflect.DeepEqual(p.Served, c.served) {
				t.Errorf("served %q (nil: %t), want %q", p.Served, p.Served == nil, c.served)
			}
			says(t, "foreign", have.Plane.EndpointForeign, c.foreign)
			says(t, "down", have.Plane.EndpointDown, c.down)
			if got := int(b.accepted.Load()); got > c.tries {
				t.Errorf("%d connections, want at most %d", got, c.tries)
			}
		})
	}
}

// says compares a text with a part of what is wanted in it, "" with nothing.
func says(t *testing.T, what, got, want string) {
	t.Helper()
	if (got == "") != (want == "") || !strings.Contains(got, want) {
		t.Errorf("%s: got %q, want in it %q", what, got, want)
	}
}

// An endpoint that takes connections and says nothing must not hold a pass up for long.
func TestEndpointThatHangs(t *testing.T) {
	client := admin(t)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close() //nolint:errcheck // the end of a test's listener
	have := three()
	began := time.Now()
	if err := client.ObservePlane(t.Context(), &have, kube.PlaneOptions{Endpoint: listener.Addr().String()}); err != nil {
		t.Fatal(err)
	}
	if took := time.Since(began); took > 10*time.Second {
		t.Errorf("it took %s", took)
	}
	if p := have.Plane; !strings.HasSuffix(p.EndpointDown, "no answer within 3s") || p.Served == nil || len(p.Served) != 0 {
		t.Errorf("got %+v, want an endpoint that is down and leads to nobody", p)
	}
}

// Without the option, the cluster's own word for its CA counts, before the client's.
func TestEndpointIsVerifiedByTheClustersCA(t *testing.T) {
	client := admin(t)
	ca := newAuthority(t, "kubernetes")
	b := newBalancer(t, ca.node(t, "cp-1", "10.0.0.11"))
	look := func() live.Plane {
		have := live.Kube{Nodes: []live.Node{{Name: "cp-1", ControlPlane: true, Ready: true}}}
		if err := client.ObservePlane(t.Context(), &have, kube.PlaneOptions{Endpoint: b.address}); err != nil {
			t.Fatal(err)
		}
		return *have.Plane
	}
	if p := look(); p.Served != nil || p.EndpointForeign == "" {
		t.Errorf("got %+v, want a certificate that the client's CA does not stand for", p)
	}
	create(t, client, configMap("kube-root-ca.crt", map[string]string{"ca.crt": string(ca.pem())}))
	t.Cleanup(func() { deleteRootCA(t, client) })
	if p := look(); !p.ServedBy("cp-1") || p.EndpointForeign != "" {
		t.Errorf("got %+v, want cp-1", p)
	}
}

// deleteRootCA, because a reset leaves what a controller would make again.
func deleteRootCA(t *testing.T, client *kube.Client) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), 10*time.Second)
	defer cancel()
	if err := client.Interface().CoreV1().ConfigMaps("kube-system").Delete(ctx, "kube-root-ca.crt", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
}
