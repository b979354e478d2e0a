// SPDX-License-Identifier: Apache-2.0

package haproxy_test

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os/exec"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/theseus-gitops/theseus/test/lab/service/haproxy"
)

// apiServer is a TLS server on loopback that is ready or not. The balancer's backends listen on port 6443, so each has
// an address of its own in 127.0.0.0/8.
func apiServer(t *testing.T, address string) *atomic.Bool {
	t.Helper()
	var listen net.ListenConfig
	l, err := listen.Listen(t.Context(), "tcp", address+":6443")
	if err != nil {
		t.Skipf("port 6443 of %s is taken: %v", address, err)
	}
	ready := &atomic.Bool{}
	ready.Store(true)
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/readyz" && !ready.Load() {
			w.WriteHeader(http.StatusInternalServerError)
			return
		}
		_, _ = io.WriteString(w, address)
	}))
	_ = server.Listener.Close()
	server.Listener = l
	server.StartTLS()
	t.Cleanup(server.Close)
	return ready
}

// ask returns which server answers through the balancer.
func ask(ctx context.Context, endpoint netip.AddrPort) (string, error) {
	client := http.Client{Timeout: time.Second, Transport: &http.Transport{
		DisableKeepAlives: true,
		TLSClientConfig:   &tls.Config{InsecureSkipVerify: true}, //nolint:gosec // a test's own server
	}}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://"+endpoint.String(), nil)
	if err != nil {
		return "", err
	}
	answer, err := client.Do(request)
	if err != nil {
		return "", err
	}
	text, err := io.ReadAll(answer.Body)
	return string(text), errors.Join(err, answer.Body.Close())
}

// await waits until only the wanted servers answer, each of them at least once in ten requests.
func await(t *testing.T, endpoint netip.AddrPort, want ...string) {
	t.Helper()
	var last string
	for deadline := time.Now().Add(20 * time.Second); time.Now().Before(deadline); time.Sleep(100 * time.Millisecond) {
		seen := map[string]bool{}
		for range 10 {
			answer, err := ask(t.Context(), endpoint)
			if err != nil {
				answer = "error"
			}
			seen[answer] = true
		}
		all := len(seen) == len(want)
		for _, w := range want {
			all = all && seen[w]
		}
		if all {
			return
		}
		last = fmt.Sprint(seen)
	}
	t.Fatalf("want answers of %v, last seen %s", want, last)
}

func TestMembersComeAndGo(t *testing.T) {
	if _, err := exec.LookPath("haproxy"); err != nil {
		t.Skip("haproxy is not installed")
	}
	a, b := "127.42.0.1", "127.42.0.2"
	apiServer(t, a)
	readyB := apiServer(t, b)
	endpoint := netip.MustParseAddrPort("127.42.0.9:16443")
	var log strings.Builder
	ctx, stop := context.WithCancel(t.Context())
	proxy, ended, err := haproxy.Start(ctx, t.TempDir(), endpoint, &log)
	if err != nil {
		t.Fatalf("%v\n%s", err, log.String())
	}
	apply := func(members map[string]string) {
		t.Helper()
		addresses := map[string]netip.Addr{}
		for name, address := range members {
			addresses[name] = netip.MustParseAddr(address)
		}
		if err := proxy.Apply(t.Context(), addresses); err != nil {
			t.Fatal(err)
		}
	}
	await(t, endpoint, "error") // nobody is behind it yet
	apply(map[string]string{"a": a, "b": b})
	await(t, endpoint, a, b)
	apply(map[string]string{"a": a, "b": b, "boots": "127.42.0.3"}) // nothing listens there yet
	for range 200 {
		if _, err := ask(t.Context(), endpoint); err != nil {
			t.Fatalf("a machine that boots was sent a client: %v", err)
		}
	}
	readyB.Store(false)
	await(t, endpoint, a)
	readyB.Store(true)
	await(t, endpoint, a, b)
	apply(map[string]string{"b": b})
	await(t, endpoint, b)
	apply(map[string]string{"c": a, "b": b}) // another machine in the slot that was freed
	await(t, endpoint, a, b)
	apply(nil)
	await(t, endpoint, "error")
	stop()
	if err := <-ended; err == nil {
		t.Error("the balancer ended by itself, not by the signal")
	}
	if _, err := ask(t.Context(), endpoint); err == nil {
		t.Error("the balancer still answers")
	}
}
