// SPDX-License-Identifier: Apache-2.0

package kube_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/streaming/pkg/httpstream"
	"k8s.io/streaming/pkg/httpstream/spdy"

	"github.com/theseus-gitops/theseus/executors/kube"
)

// kubelet speaks the server's side of the port-forward protocol over SPDY, as a server that knows no websocket.
// Port 53 echoes, port 54 never answers, at every other nothing listens.
func kubelet(t *testing.T) *kube.Client {
	t.Helper()
	upgrader := spdy.NewResponseUpgrader()
	url := fake(t, func(w http.ResponseWriter, r *http.Request) {
		if want := "/api/v1/namespaces/kube-system/pods/coredns-1/portforward"; r.URL.Path != want {
			http.Error(w, "no such pod", http.StatusNotFound)
			return
		}
		if _, err := httpstream.Handshake(r, w, []string{"portforward.k8s.io"}); err != nil {
			return
		}
		streams := make(chan httpstream.Stream, 2)
		conn := upgrader.UpgradeResponse(w, r, func(s httpstream.Stream, _ <-chan struct{}) error {
			streams <- s
			return nil
		})
		if conn == nil {
			return
		}
		defer func() { _ = conn.Close() }()
		complaints, data := <-streams, <-streams
		switch data.Headers().Get(corev1.PortHeader) {
		case "53":
			_, _ = io.Copy(data, data)
		case "54":
			<-conn.CloseChan()
		default:
			_, _ = io.WriteString(complaints, "nothing listens on port "+data.Headers().Get(corev1.PortHeader))
		}
		_, _ = data.Close(), complaints.Close()
		<-conn.CloseChan()
	})
	return connect(t, kube.Access{Kubeconfig: kubeconfig(url, "", ""), AllowInsecureTLS: true, Timeout: 10 * time.Second})
}

func TestPortForwardCarriesBothWays(t *testing.T) {
	conn, err := kubelet(t).PortForward(t.Context(), "kube-system", "coredns-1", 53)
	if err != nil {
		t.Fatal(err)
	}
	if err := conn.SetDeadline(time.Now().Add(10 * time.Second)); err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{"hello", "again"} {
		if _, err := io.WriteString(conn, text); err != nil {
			t.Fatal(err)
		}
		got := make([]byte, len(text))
		if _, err := io.ReadFull(conn, got); err != nil || string(got) != text {
			t.Fatalf("got %q, %v; want %q", got, err, text)
		}
	}
	if err := conn.Close(); err != nil {
		t.Error(err)
	}
}

func TestPortForwardHasDeadlines(t *testing.T) {
	conn, err := kubelet(t).PortForward(t.Context(), "kube-system", "coredns-1", 54)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	if err := conn.SetReadDeadline(time.Now().Add(50 * time.Millisecond)); err != nil {
		t.Fatal(err)
	}
	if _, err := conn.Read(make([]byte, 1)); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("got %v, want a deadline that passed", err)
	}
}

func TestPortForwardTellsWhatTheKubeletSays(t *testing.T) {
	conn, err := kubelet(t).PortForward(t.Context(), "kube-system", "coredns-1", 99)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	if err := conn.SetDeadline(time.Now().Add(10 * time.Second)); err != nil {
		t.Fatal(err)
	}
	if _, err := conn.Read(make([]byte, 1)); err == nil || !strings.Contains(err.Error(), "nothing listens on port 99") {
		t.Errorf("got %v, want the kubelet's words", err)
	}
}

func TestPortForwardRefused(t *testing.T) {
	if conn, err := kubelet(t).PortForward(t.Context(), "kube-system", "gone", 53); err == nil || !strings.Contains(err.Error(), "kube-system/gone") {
		t.Errorf("got %v, %v; want an error that names the pod", conn, err)
	}
	client := admin(t) // a real API server, and no such pod in it
	if conn, err := client.PortForward(t.Context(), "kube-system", "gone", 53); err == nil || !strings.Contains(err.Error(), "not found") {
		t.Errorf("got %v, %v; want not found", conn, err)
	}
	hanging := fake(t, func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	slow := connect(t, kube.Access{Kubeconfig: kubeconfig(hanging, "", ""), AllowInsecureTLS: true, Timeout: 100 * time.Millisecond})
	var unreachable *kube.UnreachableError
	if _, err := slow.PortForward(context.Background(), "kube-system", "coredns-1", 53); !errors.As(err, &unreachable) {
		t.Errorf("got %v, want an UnreachableError", err)
	}
}
