// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	constants "k8s.io/apimachinery/pkg/util/portforward"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/portforward"
	"k8s.io/client-go/transport/spdy"
	"k8s.io/client-go/transport/websocket"
	"k8s.io/klog/v2"
	"k8s.io/streaming/pkg/httpstream"
	streamspdy "k8s.io/streaming/pkg/httpstream/spdy"
)

const (
	// maxRemoteError bounds what is kept of a kubelet's message about a port it can't reach.
	maxRemoteError = 4 << 10
	// remoteErrorWait is how long that message may come after the end of the data.
	remoteErrorWait = time.Second
)

// PortForward opens one connection to a port of a pod, through the API server and the node's kubelet: by websocket,
// or by SPDY with a server or proxy that can't do the former, as kubectl does. ctx bounds the opening only, and the
// client's time-out does too. Deadlines work on the connection. What the kubelet says about a port that nothing
// listens on is the error of the first Read.
func (c *Client) PortForward(ctx context.Context, namespace, pod string, port int) (net.Conn, error) {
	o := operation{"create", "", "pods/portforward", namespace, pod}
	var conn net.Conn
	err := c.call(ctx, o, func(ctx context.Context) error {
		stream, err := cancellable(ctx, func() (httpstream.Connection, error) { return c.dialPod(ctx, namespace, pod) })
		if err != nil {
			return err
		}
		conn, err = forward(stream, port)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("port %d of pod %s/%s: %w", port, namespace, pod, err)
	}
	return conn, nil
}

// dialPod opens the connection that the streams run on. It follows kubectl's dialers, which know no context: a
// server that hangs would keep them for ever.
func (c *Client) dialPod(ctx context.Context, namespace, pod string) (httpstream.Connection, error) {
	// The request goes round the REST client, so its base path has to be added as that one does.
	base, _, err := rest.DefaultServerUrlFor(c.config)
	if err != nil {
		return nil, err
	}
	target := base.JoinPath("api", "v1", "namespaces", url.PathEscape(namespace), "pods", url.PathEscape(pod), "portforward").String()
	conn, err := c.dialWebsocket(ctx, target)
	if httpstream.IsUpgradeFailure(err) || httpstream.IsHTTPSProxyError(err) {
		return c.dialSPDY(ctx, target)
	}
	return conn, err
}

func (c *Client) dialWebsocket(ctx context.Context, target string) (httpstream.Connection, error) {
	transport, holder, err := websocket.RoundTripperFor(c.config)
	if err != nil {
		return nil, err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, target, nil)
	if err != nil {
		return nil, err
	}
	conn, err := websocket.Negotiate(transport, holder, request, constants.WebsocketsSPDYTunnelingPrefix+portforward.PortForwardProtocolV1Name)
	if err != nil {
		return nil, err
	}
	tunnel := portforward.NewTunnelingConnectionWithLogger(klog.FromContext(ctx), conn)
	return streamspdy.NewClientConnectionWithPings(tunnel, portforward.PingPeriod)
}

func (c *Client) dialSPDY(ctx context.Context, target string) (httpstream.Connection, error) {
	transport, upgrader, err := spdy.RoundTripperFor(c.config)
	if err != nil {
		return nil, err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, target, nil)
	if err != nil {
		return nil, err
	}
	conn, _, err := spdy.NegotiateStreaming(upgrader, &http.Client{Transport: transport}, request, portforward.PortForwardProtocolV1Name)
	return conn, err
}

// cancellable makes dial end with ctx: once it waits for an answer, it sees a deadline at best.
func cancellable(ctx context.Context, dial func() (httpstream.Connection, error)) (httpstream.Connection, error) {
	type result struct {
		conn httpstream.Connection
		err  error
	}
	dialed := make(chan result, 1)
	go func() {
		conn, err := dial()
		dialed <- result{conn, err}
	}()
	select {
	case r := <-dialed:
		return r.conn, r.err
	case <-ctx.Done():
		go func() {
			if r := <-dialed; r.err == nil {
				_ = r.conn.Close()
			}
		}()
		return nil, ctx.Err()
	}
}

// forward asks for one port on an open connection: an error stream first, then the data.
func forward(conn httpstream.Connection, port int) (net.Conn, error) {
	headers := http.Header{}
	headers.Set(corev1.PortHeader, strconv.Itoa(port))
	headers.Set(corev1.PortForwardRequestIDHeader, "0")
	headers.Set(corev1.StreamType, corev1.StreamTypeError)
	complaints, err := conn.CreateStream(headers)
	if err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	_ = complaints.Close() // our writing side only
	headers.Set(corev1.StreamType, corev1.StreamTypeData)
	data, err := conn.CreateStream(headers)
	if err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	near, far := net.Pipe()
	p := &podConn{Conn: near, stream: conn}
	go func() {
		_, _ = io.Copy(data, far)
		_ = data.Close()
	}()
	go p.receive(far, data, complaints)
	return p, nil
}

// podConn is the near end of a pipe, which knows deadlines; streams don't.
type podConn struct {
	net.Conn
	stream httpstream.Connection

	mu     sync.Mutex
	remote error
}

// receive copies what the pod sends until it ends, then looks for the reason before the reader learns of it.
func (p *podConn) receive(far net.Conn, data, complaints httpstream.Stream) {
	message := make(chan []byte, 1)
	go func() {
		text, _ := io.ReadAll(io.LimitReader(complaints, maxRemoteError))
		message <- text
	}()
	_, _ = io.Copy(far, data)
	_ = data.Reset()
	select {
	case text := <-message:
		if len(text) > 0 {
			p.mu.Lock()
			p.remote = errors.New(string(text))
			p.mu.Unlock()
		}
	case <-time.After(remoteErrorWait):
	}
	_ = far.Close()
	_ = p.stream.Close()
}

// Read implements net.Conn.
func (p *podConn) Read(b []byte) (int, error) {
	n, err := p.Conn.Read(b)
	if errors.Is(err, io.EOF) {
		p.mu.Lock()
		defer p.mu.Unlock()
		if p.remote != nil {
			return n, fmt.Errorf("port-forward: %w", p.remote)
		}
	}
	return n, err
}

// SetDeadline implements net.Conn.
func (p *podConn) SetDeadline(t time.Time) error { return unlessOver(p.Conn.SetDeadline(t)) }

// SetReadDeadline implements net.Conn.
func (p *podConn) SetReadDeadline(t time.Time) error { return unlessOver(p.Conn.SetReadDeadline(t)) }

// SetWriteDeadline implements net.Conn.
func (p *podConn) SetWriteDeadline(t time.Time) error { return unlessOver(p.Conn.SetWriteDeadline(t)) }

// unlessOver lets a deadline on a connection that the pod has ended already be no error: the next Read says why it
// ended, which a failure here would hide.
func unlessOver(err error) error {
	if errors.Is(err, io.ErrClosedPipe) {
		return nil
	}
	return err
}

// Close implements net.Conn.
func (p *podConn) Close() error {
	return errors.Join(p.Conn.Close(), p.stream.Close())
}
