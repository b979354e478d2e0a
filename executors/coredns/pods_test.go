// SPDX-License-Identifier: Apache-2.0

package coredns_test

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"golang.org/x/net/dns/dnsmessage"
)

// reply makes a server's reply to a query; nil closes the connection instead.
type reply func(query dnsmessage.Message) *dnsmessage.Message

func positive(q dnsmessage.Message) *dnsmessage.Message {
	m := withCode(dnsmessage.RCodeSuccess)(q)
	m.Answers = []dnsmessage.Resource{{
		Header: dnsmessage.ResourceHeader{Name: q.Questions[0].Name, Class: dnsmessage.ClassINET, TTL: 5},
		Body:   &dnsmessage.AResource{A: [4]byte{10, 96, 0, 1}},
	}}
	return m
}

func withCode(code dnsmessage.RCode) reply {
	return func(q dnsmessage.Message) *dnsmessage.Message {
		return &dnsmessage.Message{Header: dnsmessage.Header{ID: q.ID, Response: true, RCode: code}, Questions: q.Questions}
	}
}

func silent(dnsmessage.Message) *dnsmessage.Message { return nil }

// first answers the first n queries by one reply and the rest by another.
func first(n int, then, rest reply) reply {
	var mu sync.Mutex
	return func(q dnsmessage.Message) *dnsmessage.Message {
		mu.Lock()
		defer mu.Unlock()
		if n--; n >= 0 {
			return then(q)
		}
		return rest(q)
	}
}

// byName answers names that begin with prefix by one reply and others by another.
func byName(prefix string, these, others reply) reply {
	return func(q dnsmessage.Message) *dnsmessage.Message {
		if strings.HasPrefix(q.Questions[0].Name.String(), prefix) {
			return these(q)
		}
		return others(q)
	}
}

// pods are DNS servers over TCP on loopback, one per pod name.
type pods struct {
	t *testing.T

	mu      sync.Mutex
	replies map[string]reply
	asked   map[string][]string
	servers map[string]net.Listener
	// broken is an error for every connection.
	broken error
}

func newPods(t *testing.T) *pods {
	t.Helper()
	p := &pods{t: t, replies: map[string]reply{}, asked: map[string][]string{}, servers: map[string]net.Listener{}}
	t.Cleanup(func() {
		for _, l := range p.servers {
			_ = l.Close()
		}
	})
	return p
}

// serve starts a pod's server, or changes what it answers.
func (p *pods) serve(pod string, r reply) {
	p.t.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.replies[pod] = r
	if p.servers[pod] != nil {
		return
	}
	var lc net.ListenConfig
	l, err := lc.Listen(p.t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		p.t.Fatal(err)
	}
	p.servers[pod] = l
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go p.answer(pod, conn)
		}
	}()
}

func (p *pods) answer(pod string, conn net.Conn) {
	defer func() { _ = conn.Close() }()
	var size [2]byte
	if _, err := io.ReadFull(conn, size[:]); err != nil {
		return
	}
	packet := make([]byte, binary.BigEndian.Uint16(size[:]))
	var query dnsmessage.Message
	if _, err := io.ReadFull(conn, packet); err != nil || query.Unpack(packet) != nil {
		return
	}
	p.mu.Lock()
	r := p.replies[pod]
	p.asked[pod] = append(p.asked[pod], query.Questions[0].Name.String()+" "+query.Questions[0].Type.String())
	p.mu.Unlock()
	answer := r(query)
	if answer == nil {
		return
	}
	out, err := answer.Pack()
	if err != nil {
		return
	}
	_, _ = conn.Write(binary.BigEndian.AppendUint16(nil, uint16(len(out))))
	_, _ = conn.Write(out)
}

func (p *pods) dial(ctx context.Context, pod string, port int) (net.Conn, error) {
	p.mu.Lock()
	l, broken := p.servers[pod], p.broken
	p.mu.Unlock()
	if broken != nil {
		return nil, broken
	}
	if l == nil || port != 53 {
		return nil, errors.New("connection refused")
	}
	var d net.Dialer
	return d.DialContext(ctx, "tcp", l.Addr().String())
}

// The states of a canary that a kubelet reports.

func isReady(pod *corev1.Pod) {
	pod.Status.Phase = corev1.PodRunning
	pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "coredns", Ready: true, State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}}
}

func isRunning(pod *corev1.Pod) {
	pod.Status.Phase = corev1.PodRunning
	pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionFalse}}
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "coredns", State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}}
}

func isWaiting(reason, message string) func(*corev1.Pod) {
	return func(pod *corev1.Pod) {
		pod.Status.Phase = corev1.PodPending
		pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "coredns", State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: message}}}}
	}
}

func hasExited(code int32, reason, message string) func(*corev1.Pod) {
	return func(pod *corev1.Pod) {
		pod.Status.Phase = corev1.PodFailed
		pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "coredns", State: corev1.ContainerState{
			Terminated: &corev1.ContainerStateTerminated{ExitCode: code, Reason: reason, Message: message},
		}}}
	}
}
