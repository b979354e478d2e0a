// SPDX-License-Identifier: Apache-2.0

package service_test

import (
	"context"
	"errors"
	"net"
	"net/http"
	"testing"
)

func TestNames(t *testing.T) {
	l := newLab(t)
	l.do(t, http.StatusCreated, "PUT", "/machines/a", "")
	var listen net.ListenConfig
	conn, err := listen.ListenPacket(t.Context(), "udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- l.server.ServeNames(ctx, conn) }()
	defer func() {
		stop()
		if err := errors.Join(<-done, conn.Close()); err != nil {
			t.Error(err)
		}
	}()
	resolver := net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, "udp", conn.LocalAddr().String())
	}}
	got, err := resolver.LookupNetIP(t.Context(), "ip4", "A.machines.test.")
	if err != nil || len(got) != 1 || got[0].String() != "10.213.0.10" {
		t.Errorf("a: %v, %v", got, err)
	}
	for _, name := range []string{"b.machines.test.", "machines.test.", "example.org."} {
		_, err := resolver.LookupNetIP(t.Context(), "ip4", name)
		var missing *net.DNSError
		if !errors.As(err, &missing) || !missing.IsNotFound {
			t.Errorf("%s: %v, want not found", name, err)
		}
	}
	// What is no query gets no answer, and does not end the server.
	garbage, err := net.Dial("udp", conn.LocalAddr().String())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := garbage.Write([]byte("garbage")); err != nil {
		t.Fatal(err)
	}
	if _, err := resolver.LookupNetIP(t.Context(), "ip4", "a.machines.test."); err != nil {
		t.Error(err)
	}
}
