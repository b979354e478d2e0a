// SPDX-License-Identifier: Apache-2.0

package logbook_test

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/theseus-gitops/theseus/reconcile/logbook"
)

func full() logbook.Book {
	at := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	return logbook.Book{
		Roll:         &logbook.Roll{ID: "20261130T120000Z-4f1c", Started: at, Revision: "4f1c", From: logbook.Versions{CoreDNS: "v1.14.2"}},
		Originals:    &logbook.Originals{KubeadmConfig: "apiVersion: kubeadm.k8s.io/v1beta4\n"},
		FailedTarget: &logbook.FailedTarget{Target: "coredns x:1", Revision: "4f1c", Since: at, Reason: "R", Message: "<m> & \"n\"", Remedy: "r"},
		Fence:        7,
	}
}

func TestRoundTrip(t *testing.T) {
	t.Parallel()
	for name, book := range map[string]logbook.Book{"full": full(), "empty": {}, "converged": {ConvergedSince: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)}} {
		text, err := book.Format()
		if err != nil {
			t.Fatal(err)
		}
		again, err := logbook.Parse(text)
		if err != nil {
			t.Fatalf("%s: %v\n%s", name, err, text)
		}
		second, err := again.Format()
		if err != nil || second != text {
			t.Errorf("%s: written again it differs (%v):\n%s\n%s", name, err, text, second)
		}
		if again.Fence != book.Fence || !reflect.DeepEqual(again.Roll, book.Roll) || !reflect.DeepEqual(again.FailedTarget, book.FailedTarget) {
			t.Errorf("%s: read back as %+v", name, again)
		}
	}
}

// A later version writes fields that this one does not know. They must survive, also when known fields go.
func TestUnknownFieldsSurvive(t *testing.T) {
	t.Parallel()
	book, err := logbook.Parse(`{"version": 1, "serial": 12, "ofALaterVersion": [{"pid": 18446744073709551615}], "fence": 3, "roll": {"id": "x", "started": "2026-11-30T12:00:00Z", "revision": "4f1c"}}`)
	if err != nil {
		t.Fatal(err)
	}
	book.Roll, book.Fence = nil, 4
	text, err := book.Format()
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`"serial": 12`, `18446744073709551615`, `"fence": 4`, `"version": 1`} {
		if !strings.Contains(text, want) {
			t.Errorf("lacks %s:\n%s", want, text)
		}
	}
	if strings.Contains(text, "roll") {
		t.Errorf("a roll that has ended is still there:\n%s", text)
	}
}

// A process is written down once, with the newest times, and the list of them does not grow for ever.
func TestHeld(t *testing.T) {
	t.Parallel()
	var book logbook.Book
	at := time.Date(2026, 12, 1, 12, 0, 0, 0, time.UTC)
	holder := func(n int) logbook.LockHolder {
		return logbook.LockHolder{Host: "h", Folder: fmt.Sprint("/tmp/", n), Since: at}
	}
	for n := range 12 {
		before := holder(n)
		before.Since, before.Until = at.Add(-time.Hour), at.Add(-time.Minute)
		book.LockHolders = book.Held(before)
		book.LockHolders = book.Held(holder(n))
	}
	if len(book.LockHolders) != 10 || book.LockHolders[0] != holder(2) || book.LockHolders[9] != holder(11) {
		t.Errorf("holders: %+v", book.LockHolders)
	}
}

func TestRefused(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ text, want string }{
		"newer format": {`{"version": 2}`, "format version 2"},
		"no version":   {`{}`, "format version 0"},
		"no JSON":      {`serial: 1`, "invalid character"},
		"empty":        {``, "unexpected end"},
		"wrong type":   {`{"version": 1, "fence": "x"}`, "fence"},
		"fence":        {`{"version": 1, "fence": -5}`, "fence is -5"},
		"large fence":  {`{"version": 1, "fence": 2147483647}`, "fence is 2147483647"},
		"empty roll":   {`{"version": 1, "roll": {}}`, "roll lacks id, started, revision"},
		"no id":        {`{"version": 1, "roll": {"started": "2026-11-30T12:00:00Z", "revision": "4f1c"}}`, "roll lacks id"},
		"no start":     {`{"version": 1, "roll": {"id": "x", "revision": "4f1c"}}`, "roll lacks started"},
		"no revision":  {`{"version": 1, "roll": {"id": "x", "started": "2026-11-30T12:00:00Z"}}`, "roll lacks revision"},
	} {
		if _, err := logbook.Parse(c.text); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want an error with %q", name, err, c.want)
		}
	}
}
