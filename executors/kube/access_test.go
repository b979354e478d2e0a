// SPDX-License-Identifier: Apache-2.0

package kube_test

import (
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/theseus-gitops/theseus/executors/kube"
)

const (
	secret   = "s3cr3t-value" // a mark that must not show up in errors
	execUser = "exec: {apiVersion: client.authentication.k8s.io/v1, command: theseus-no-such-plugin, interactiveMode: Never}"
	anywhere = "https://127.0.0.1:6443"
)

func TestConnectRefuses(t *testing.T) {
	for name, c := range map[string]struct {
		access kube.Access
		want   string
	}{
		"nothing": {kube.Access{}, "neither a kubeconfig nor inCluster"},
		"both":    {kube.Access{InCluster: true, Kubeconfig: kubeconfig(anywhere, "", "token: "+secret)}, "keep one"},
		"no pod":  {kube.Access{InCluster: true}, "inCluster"},
		"exec": {kube.Access{Kubeconfig: kubeconfig(anywhere, "", execUser)},
			`user "u" runs a program for its credentials (exec): use a token or a client certificate, or set access.allowExec`},
		"insecure": {kube.Access{Kubeconfig: kubeconfig(anywhere, "insecure-skip-tls-verify: true", "token: "+secret)},
			`cluster "c" sets insecure-skip-tls-verify: give certificate-authority-data, or set access.allowInsecureTLS`},
		"plain http":         {kube.Access{Kubeconfig: kubeconfig("http://10.0.0.1", "", "token: "+secret)}, "not protected by TLS"},
		"auth provider":      {kube.Access{Kubeconfig: kubeconfig(anywhere, "", "auth-provider: {name: gcp, config: {access-token: "+secret+"}}"), AllowExec: true}, "auth-provider"},
		"token file":         {kube.Access{Kubeconfig: kubeconfig(anywhere, "", "tokenFile: /var/run/secrets/token"), AllowExec: true}, "names a file (tokenFile)"},
		"client certificate": {kube.Access{Kubeconfig: kubeconfig(anywhere, "", "client-certificate: tls.crt")}, "names a file (client-certificate)"},
		"client key":         {kube.Access{Kubeconfig: kubeconfig(anywhere, "", "client-key: tls.key")}, "names a file (client-key)"},
		"authority file":     {kube.Access{Kubeconfig: kubeconfig(anywhere, "certificate-authority: /etc/ca.crt", "token: "+secret)}, "names a file (certificate-authority)"},
		"bad proxy":          {kube.Access{Kubeconfig: kubeconfig(anywhere, "proxy-url: 'ftp://bob:"+secret+"@proxy'", "")}, "proxy-url"},
		"no server":          {kube.Access{Kubeconfig: kubeconfig("", "", "token: "+secret)}, "no server"},
		"bad server":         {kube.Access{Kubeconfig: kubeconfig("https://bob:"+secret+"@:x:y", "", "")}, "the server is no URL"},
		"no context":         {kube.Access{Kubeconfig: []byte("apiVersion: v1\nkind: Config\nusers: [{name: u, user: {token: " + secret + "}}]")}, "no current-context"},
		"other kind":         {kube.Access{Kubeconfig: []byte("apiVersion: v1\nkind: Secret\ndata: {token: " + secret + "}")}, "can't be parsed"},
		"no YAML":            {kube.Access{Kubeconfig: []byte("token: *" + secret)}, "can't be parsed"},
		"bad base64":         {kube.Access{Kubeconfig: kubeconfig(anywhere, "certificate-authority-data: '"+secret+"!'", "")}, "can't be parsed"},
		"no certificate":     {kube.Access{Kubeconfig: kubeconfig(anywhere, "certificate-authority-data: czNjcjN0LXZhbHVl", "")}, "root certificates"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := kube.Connect(c.access)
			if err == nil {
				t.Fatal("Connect accepted it")
			}
			if !strings.Contains(err.Error(), c.want) {
				t.Errorf("got  %v\nwant %s", err, c.want)
			}
			if strings.Contains(err.Error(), secret) {
				t.Errorf("the error shows a secret: %v", err)
			}
		})
	}
}

func TestConnectAllows(t *testing.T) {
	for name, a := range map[string]kube.Access{
		"exec":                       {Kubeconfig: kubeconfig(anywhere, "", execUser), AllowExec: true},
		"insecure":                   {Kubeconfig: kubeconfig(anywhere, "insecure-skip-tls-verify: true", "token: abc"), AllowInsecureTLS: true},
		"plain http":                 {Kubeconfig: kubeconfig("http://10.0.0.1", "", ""), AllowInsecureTLS: true},
		"exec of another context":    {Kubeconfig: kubeconfig(anywhere, "", "token: abc")},
		"server without scheme":      {Kubeconfig: kubeconfig("10.0.0.1:6443", "", "token: abc")},
		"server behind a path":       {Kubeconfig: kubeconfig("https://rancher/k8s/clusters/c-1", "", "token: abc")},
		"proxy with its own account": {Kubeconfig: kubeconfig(anywhere, "proxy-url: 'http://bob:pw@proxy:3128'", "token: abc")},
	} {
		t.Run(name, func(t *testing.T) {
			client := connect(t, a)
			if got := client.RESTConfig().Timeout; got != 30*time.Second {
				t.Errorf("time-out %s, want 30s", got)
			}
		})
	}
}

func TestUnreachable(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	closed := listener.Addr().String()
	if err := listener.Close(); err != nil {
		t.Fatal(err)
	}
	hanging := fake(t, func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	stranger := httptest.NewTLSServer(http.NotFoundHandler())
	t.Cleanup(stranger.Close)
	balancer := fake(t, func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, "no backend", http.StatusServiceUnavailable)
	})
	half := fake(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "100")
		_, _ = w.Write([]byte("{"))
	})

	for name, c := range map[string]struct{ server, want string }{
		"closed port":       {"https://bob:" + secret + "@" + closed, "connection refused"},
		"hanging server":    {hanging, "no answer to"},
		"unknown authority": {stranger.URL, "certificate"},
		"balancer says 503": {balancer, ""},
		"half an answer":    {half, ""},
	} {
		t.Run(name, func(t *testing.T) {
			a := kube.Access{Kubeconfig: kubeconfig(c.server, "", "token: "+secret), AllowInsecureTLS: true}
			if c.server == hanging {
				a.Timeout = 300 * time.Millisecond
			}
			client := connect(t, a)
			start := time.Now()
			_, err := client.Observe(t.Context())
			var unreachable *kube.UnreachableError
			if !errors.As(err, &unreachable) {
				t.Fatalf("got %v, want an UnreachableError", err)
			}
			if !strings.Contains(err.Error(), unreachable.Host) || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want host and %q", err, c.want)
			}
			if strings.Contains(err.Error(), secret) {
				t.Errorf("the error shows a secret: %v", err)
			}
			if took := time.Since(start); took > 20*time.Second {
				t.Errorf("took %s", took)
			}
		})
	}
}

func TestCredentialsNotAccepted(t *testing.T) {
	config := server.Config(t)
	client := connect(t, kube.Access{
		Kubeconfig: kubeconfig(config.Host, "insecure-skip-tls-verify: true", "token: "+secret), AllowInsecureTLS: true,
	})
	_, err := client.Observe(t.Context())
	if !errors.Is(err, kube.ErrUnauthenticated) {
		t.Fatalf("got %v, want ErrUnauthenticated", err)
	}
	if strings.Contains(err.Error(), secret) {
		t.Errorf("the error shows a secret: %v", err)
	}
}

func TestTokenThatIsNoHeader(t *testing.T) {
	client := connect(t, kube.Access{Kubeconfig: kubeconfig(anywhere, "", `token: "`+secret+`\n"`)})
	_, err := client.Observe(t.Context())
	if err == nil || strings.Contains(err.Error(), secret) {
		t.Errorf("got %v, want an error without the token", err)
	}
}

// A load balancer that knows no such path must not look like a cluster without CoreDNS and logbook.
func TestStrangers404IsNotAbsence(t *testing.T) {
	g := newGate(t)
	g.setFail(func(w http.ResponseWriter, r *http.Request) bool {
		if strings.HasSuffix(r.URL.Path, "/configmaps/theseus") {
			http.NotFound(w, r)
			return true
		}
		return false
	})
	if _, err := g.client(t).Observe(t.Context()); err == nil {
		t.Error("a 404 that is not the API server's was taken for an absent logbook")
	}
}

func TestExplain(t *testing.T) {
	server.Reset(t)
	client := connect(t, kube.Access{Kubeconfig: server.UserKubeconfig(t, "nobody")})
	_, err := client.Interface().Discovery().ServerResourcesForGroupVersion("no/v1")
	if got := client.Explain(err); !errors.Is(got, err) {
		t.Errorf("a missing API group became %v", got)
	}
	err = client.Interface().CoreV1().RESTClient().Get().AbsPath("/api/v1/nodes").Do(t.Context()).Error()
	var forbidden *kube.ForbiddenError
	if got := client.Explain(err); !errors.As(got, &forbidden) || !strings.Contains(got.Error(), `cannot list resource "nodes"`) {
		t.Errorf("got %v, want a ForbiddenError with the server's words", got)
	}
	_, err = os.Open(filepath.Join(t.TempDir(), "gone"))
	if got := client.Explain(err); !errors.Is(got, err) || errors.As(got, new(*kube.UnreachableError)) {
		t.Errorf("a file that is not there: %v", got)
	}
	if client.Explain(nil) != nil {
		t.Error("no error became one")
	}
}

func fake(t *testing.T, handler http.HandlerFunc) string {
	t.Helper()
	s := httptest.NewServer(handler)
	t.Cleanup(s.Close)
	return s.URL
}
