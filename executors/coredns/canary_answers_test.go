// SPDX-License-Identifier: Apache-2.0

package coredns_test

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/dns/dnsmessage"

	"github.com/theseus-gitops/theseus/executors/coredns"
	"github.com/theseus-gitops/theseus/reconcile/rollout"
)

func TestCanaryAnswers(t *testing.T) {
	servfail, nxdomain, refused, nodata := withCode(dnsmessage.RCodeServerFailure), withCode(dnsmessage.RCodeNameError), withCode(dnsmessage.RCodeRefused), withCode(dnsmessage.RCodeSuccess)
	foreign := func(q dnsmessage.Message) *dnsmessage.Message { m := positive(q); m.ID++; return m }
	query := func(q dnsmessage.Message) *dnsmessage.Message { m := positive(q); m.Response = false; return m }
	tests := []struct {
		name            string
		present, canary reply
		accepted        string // "" wants a failure
		says            string
	}{
		{"both answer", positive, positive, "NOERROR", ""},
		{"answers at the third try", positive, first(2, servfail, positive), "NOERROR", ""},
		{"SERVFAIL", positive, servfail, "", "coredns-a says NOERROR, the canary says SERVFAIL"},
		{"REFUSED", positive, refused, "", "the canary says REFUSED"},
		{"another rcode", positive, withCode(11), "", "the canary says RCODE11"},
		{"empty answer", positive, nodata, "", "the canary says NODATA"},
		{"no such name", positive, nxdomain, "", "the canary says NXDOMAIN"},
		{"silence", positive, silent, "", "the canary says nothing (the connection was closed without a reply)"},
		{"reply to another query", positive, foreign, "", "the reply belongs to another query"},
		{"a query as reply", positive, query, "", "the reply belongs to another query"},
		{"no such name on both", nxdomain, nxdomain, "NXDOMAIN", ""},
		{"no such name, then no record", nxdomain, nodata, "NODATA", ""},
		{"better than before", servfail, positive, "NOERROR", ""},
		{"worse than no such name", nxdomain, servfail, "", "coredns-a says NXDOMAIN, the canary says SERVFAIL"},
		{"present is silent", silent, nxdomain, "NXDOMAIN", ""},
		{"present is silent, canary fails", silent, servfail, "", "coredns-b says nothing"},
		{"nobody answers anything", servfail, servfail, "", "the canary says SERVFAIL"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			w := newWorld(t)
			w.dns.serve("coredns-a", tt.present)
			w.dns.serve("coredns-b", tt.present)
			w.dns.serve(canary, tt.canary)
			w.play(isReady)
			if tt.accepted == "" {
				wantFailure(t, w.refused(w.canaryAct()), "DNSCanaryFailed", kubeName.String(), tt.says)
				return
			}
			if err := w.exec.Canary(t.Context(), w.canaryAct()); err != nil {
				t.Fatal(err)
			}
			if got := recorded(t, w.config()).Answers[kubeName.String()]; got != tt.accepted {
				t.Errorf("recorded %q, want %q", got, tt.accepted)
			}
		})
	}
}

func TestCanaryMayFailWhereThePresentPodsDo(t *testing.T) {
	w := newWorld(t)
	stubDown := byName("consul", withCode(dnsmessage.RCodeServerFailure), positive)
	for _, pod := range []string{"coredns-a", "coredns-b", canary} {
		w.dns.serve(pod, stubDown)
	}
	w.play(isReady)
	if err := w.exec.Canary(t.Context(), w.canaryAct(kubeName, stubZone)); err != nil {
		t.Fatal(err)
	}
	want := map[string]string{kubeName.String(): "NOERROR", stubZone.String(): "SERVFAIL"}
	if got := recorded(t, w.config()).Answers; !reflect.DeepEqual(got, want) {
		t.Errorf("answers are %v, want %v", got, want)
	}
}

func TestCanaryMustMatchTheBestOfThePresentPods(t *testing.T) {
	w := newWorld(t)
	w.dns.serve("coredns-a", withCode(dnsmessage.RCodeServerFailure))
	w.dns.serve(canary, withCode(dnsmessage.RCodeServerFailure))
	w.play(isReady)
	wantFailure(t, w.refused(w.canaryAct()), "DNSCanaryFailed", "coredns-a says SERVFAIL, coredns-b says NOERROR, the canary says SERVFAIL")
}

func TestCanaryWithoutPresentPods(t *testing.T) {
	w := newWorld(t)
	w.setStatus("coredns-a", isRunning)
	w.setStatus("coredns-b", isRunning)
	w.dns.serve(canary, withCode(dnsmessage.RCodeServerFailure))
	w.play(isReady)
	wantFailure(t, w.refused(w.canaryAct()), "DNSCanaryFailed", "no present pod is Ready to compare with")
	w.dns.serve(canary, positive)
	if err := w.exec.Canary(t.Context(), w.canaryAct()); err != nil {
		t.Error(err)
	}
}

func TestCanaryOverAConnectionThatHangs(t *testing.T) {
	w := newWorld(t, func(o *coredns.Options) { o.AskTimeout = 200 * time.Millisecond })
	hang := make(chan struct{})
	t.Cleanup(func() { close(hang) })
	w.dns.serve(canary, func(dnsmessage.Message) *dnsmessage.Message { <-hang; return nil })
	w.play(isReady)
	wantFailure(t, w.refused(w.canaryAct()), "DNSCanaryFailed", "the canary says nothing (no reply within 200ms)")
}

func TestCanaryBlamesNobodyWithoutConnections(t *testing.T) {
	w := newWorld(t)
	w.dns.broken = errors.New("pods/portforward is forbidden")
	w.play(isReady)
	wantTransient(t, w.refused(w.canaryAct()), "no connection to any pod")
}

func TestCanaryTellsOfManyQuestionsInBrief(t *testing.T) {
	w := newWorld(t)
	w.dns.serve(canary, withCode(dnsmessage.RCodeRefused))
	w.play(isReady)
	var many []rollout.Question
	for i := range 9 {
		many = append(many, rollout.Question{Name: fmt.Sprintf("zone%d.", i), Type: "SOA", Port: 53})
	}
	err := w.refused(w.canaryAct(many...))
	wantFailure(t, err, "DNSCanaryFailed", "zone2. SOA :53")
	if strings.Contains(err.Error(), "zone3.") {
		t.Errorf("asked on after three poor answers: %v", err)
	}
}
