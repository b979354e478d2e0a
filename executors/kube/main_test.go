// SPDX-License-Identifier: Apache-2.0

package kube_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"strings"
	"sync"
	"testing"

	"k8s.io/client-go/rest"

	"github.com/theseus-gitops/theseus/executors/kube"
	"github.com/theseus-gitops/theseus/internal/apiserver"
)

var server apiserver.Server

func TestMain(m *testing.M) { os.Exit(server.Run(m)) }

func connect(t *testing.T, a kube.Access) *kube.Client {
	t.Helper()
	client, err := kube.Connect(a)
	if err != nil {
		t.Fatal("Connect:", err)
	}
	return client
}

// admin is a client with all rights, on a server without leftovers of other tests.
func admin(t *testing.T) *kube.Client {
	t.Helper()
	server.Reset(t)
	return connect(t, kube.Access{Kubeconfig: server.Kubeconfig(t), Version: "v0.0.0-test"})
}

// gate stands between a client and the API server: it counts the calls and can fail them.
type gate struct {
	mu         sync.Mutex
	calls      []string
	agents     map[string]bool
	now, most  int
	fail       func(http.ResponseWriter, *http.Request) bool
	kubeconfig []byte
}

// newGate makes one before the test API server.
func newGate(t *testing.T) *gate {
	t.Helper()
	config := server.Config(t)
	transport, err := rest.TransportFor(config)
	if err != nil {
		t.Fatal(err)
	}
	target, err := url.Parse(config.Host)
	if err != nil {
		t.Fatal(err)
	}
	g := &gate{agents: map[string]bool{}}
	proxy := &httputil.ReverseProxy{Transport: transport, Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(target) }}
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fail := g.enter(r)
		defer g.leave()
		if fail != nil && fail(w, r) {
			return
		}
		proxy.ServeHTTP(w, r)
	}))
	t.Cleanup(front.Close)
	g.kubeconfig = kubeconfig(front.URL, "", "")
	return g
}

func (g *gate) enter(r *http.Request) func(http.ResponseWriter, *http.Request) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	query := r.URL.Query()
	query.Del("timeout")
	g.calls = append(g.calls, strings.TrimSuffix(r.Method+" "+r.URL.Path+"?"+query.Encode(), "?"))
	g.agents[r.UserAgent()] = true
	g.now++
	g.most = max(g.most, g.now)
	return g.fail
}

func (g *gate) leave() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.now--
}

// setFail makes calls for which fail answers true end there.
func (g *gate) setFail(fail func(http.ResponseWriter, *http.Request) bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.fail = fail
}

func (g *gate) client(t *testing.T) *kube.Client {
	t.Helper()
	return connect(t, kube.Access{Kubeconfig: g.kubeconfig, AllowInsecureTLS: true, Version: "v0.0.0-test"})
}

// kubeconfig is a small one; cluster and user are further fields in YAML's flow form, "token: abc".
func kubeconfig(server, cluster, user string) []byte {
	return fmt.Appendf(nil, `apiVersion: v1
kind: Config
current-context: it
contexts:
- {name: it, context: {cluster: c, user: u}}
- {name: other, context: {cluster: c, user: plugin}}
clusters:
- {name: c, cluster: {server: %q, %s}}
users:
- {name: u, user: {%s}}
- {name: plugin, user: {exec: {apiVersion: client.authentication.k8s.io/v1, command: theseus-no-such-plugin, interactiveMode: Never}}}
`, server, cluster, user)
}
