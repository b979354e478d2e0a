// SPDX-License-Identifier: Apache-2.0

package coredns

import (
	"testing"

	"golang.org/x/net/dns/dnsmessage"

	"github.com/theseus-gitops/theseus/reconcile/rollout"
)

// FuzzReply is in the package because what it feeds, the bytes of a reply, has no exported entrance: whatever a pod
// sends is an answer with a code or an error, and only a reply to our question is an answer.
func FuzzReply(f *testing.F) {
	q, err := newQuery(rollout.Question{Name: "kubernetes.default.svc.cluster.local.", Type: "A", Port: 53})
	if err != nil {
		f.Fatal(err)
	}
	q.id = 7
	for _, code := range []dnsmessage.RCode{dnsmessage.RCodeSuccess, dnsmessage.RCodeNameError, dnsmessage.RCodeServerFailure, 11} {
		m := dnsmessage.Message{Header: dnsmessage.Header{ID: 7, Response: true, RCode: code}, Questions: []dnsmessage.Question{q.question}}
		packet, err := m.Pack()
		if err != nil {
			f.Fatal(err)
		}
		f.Add(packet)
		f.Add(packet[:len(packet)-3])
	}
	f.Add(q.packet)
	f.Fuzz(func(t *testing.T, reply []byte) {
		code, err := q.read(reply)
		if (code == "") == (err == nil) {
			t.Fatalf("code %q with error %v", code, err)
		}
		if code != "" && (reply[0] != 0 || reply[1] != 7 || reply[2]&0x80 == 0) {
			t.Fatalf("%q was read from what is no reply to our query", code)
		}
	})
}
