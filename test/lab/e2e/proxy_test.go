// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/pem"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"testing"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// proxy stands between theseus and the API server. It counts writes and runs a function after the nth of them has
// taken effect and before its answer goes back: a crash at the worst moment.
type proxy struct {
	mu         sync.Mutex
	writes     []string
	at         int
	then       func()
	down       bool
	match      func(r *http.Request, body []byte) bool
	matched    func()
	kubeconfig []byte
}

func newProxy(t *testing.T) *proxy {
	t.Helper()
	need(t)
	return newProxyFor(t, lab.Kubeconfig)
}

func newProxyFor(t *testing.T, kubeconfig string) *proxy {
	t.Helper()
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	tlsConfig, err := rest.TLSConfigFor(config)
	if err != nil {
		t.Fatal(err)
	}
	target, err := url.Parse(config.Host)
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{}
	backend := &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) { p.watched(r.Out); r.SetURL(target) },
		// HTTP/1.1 only: port-forwards are upgrades.
		Transport:      p.cuttable(&http.Transport{TLSClientConfig: tlsConfig, TLSNextProto: map[string]func(string, *tls.Conn) http.RoundTripper{}}),
		FlushInterval:  -1,
		ModifyResponse: func(r *http.Response) error { p.answered(r.Request); return nil },
	}
	server := httptest.NewTLSServer(backend)
	t.Cleanup(server.Close)
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	out := clientcmdapi.NewConfig()
	out.Clusters["proxy"] = &clientcmdapi.Cluster{Server: server.URL, CertificateAuthorityData: ca}
	out.AuthInfos["proxy"] = &clientcmdapi.AuthInfo{Token: "unused"}
	out.Contexts["proxy"] = &clientcmdapi.Context{Cluster: "proxy", AuthInfo: "proxy"}
	out.CurrentContext = "proxy"
	if p.kubeconfig, err = clientcmd.Write(*out); err != nil {
		t.Fatal(err)
	}
	return p
}

// after arms the proxy: then runs once the nth write from now has taken effect.
func (p *proxy) after(n int, then func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.writes, p.at, p.then = nil, n, then
}

// when arms the proxy: then runs, once, after a write that matches has taken effect and before its answer goes back.
func (p *proxy) when(match func(r *http.Request, body []byte) bool, then func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.match, p.matched = match, then
}

// watched marks a write that is waited for.
func (p *proxy) watched(r *http.Request) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.match == nil || r.Method == http.MethodGet || r.Body == nil {
		return
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return // the API server will say so
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	if p.match(r, body) {
		p.match = nil
		*r = *r.WithContext(context.WithValue(r.Context(), watchedKey{}, true))
	}
}

type watchedKey struct{}

// last names the newest write.
func (p *proxy) last() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.writes) == 0 {
		return "nothing"
	}
	return p.writes[len(p.writes)-1]
}

// answered hears of every answer. Leases don't count: they are renewed by the clock. Nor do questions about rights: they
// are sent as writes, but change nothing.
func (p *proxy) answered(r *http.Request) {
	if r.Context().Value(watchedKey{}) != nil {
		p.matched()
	}
	path := r.URL.Path
	if r.Method == http.MethodGet || strings.Contains(path, "/leases") || strings.HasSuffix(path, "/selfsubjectaccessreviews") || strings.HasSuffix(path, "/portforward") {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.writes = append(p.writes, r.Method+" "+path)
	if len(p.writes) == p.at && p.then != nil {
		p.then()
	}
}

// cut makes the API server be gone; restore brings it back.
func (p *proxy) cut()     { p.down = true } // called with mu held, from answered
func (p *proxy) restore() { p.mu.Lock(); defer p.mu.Unlock(); p.down = false }

// cuttable is a transport that fails while the API server is gone. The proxy then answers 502, as a load balancer
// without a healthy backend does.
func (p *proxy) cuttable(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(r *http.Request) (*http.Response, error) {
		p.mu.Lock()
		down := p.down
		p.mu.Unlock()
		if down {
			return nil, errors.New("the API server is gone")
		}
		return next.RoundTrip(r)
	})
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }
