// SPDX-License-Identifier: Apache-2.0

package rollout_test

import (
	"strings"
	"testing"

	"github.com/theseus-gitops/theseus/reconcile/logbook"
	"github.com/theseus-gitops/theseus/reconcile/rollout"
	"github.com/theseus-gitops/theseus/reconcile/rollout/rollouttest"
)

// Two specs that reach one cluster would change it to and fro, and both call it a success: the second is stopped.
func TestOneSpecPerCluster(t *testing.T) {
	t.Parallel()
	own := logbook.Owner{Repository: "git.example.com/fleet", Cluster: "a"}
	for name, c := range map[string]struct {
		owner    logbook.Owner
		siblings []string
		stalled  string // part of the message; "" for not stalled
	}{
		"nobody yet":                         {},
		"ourselves":                          {owner: own, siblings: []string{"a", "b"}},
		"another spec of this fleet":         {logbook.Owner{Repository: own.Repository, Cluster: "b"}, []string{"a", "b"}, "spec b of this fleet"},
		"renamed: no spec has the old name":  {owner: logbook.Owner{Repository: own.Repository, Cluster: "old"}, siblings: []string{"a", "b"}},
		"perhaps renamed, a spec unreadable": {logbook.Owner{Repository: own.Repository, Cluster: "old"}, nil, "spec old of this fleet"},
		"another repository, another name":   {logbook.Owner{Repository: "git.example.com/other", Cluster: "b"}, []string{"a"}, "spec b of the fleet repository git.example.com/other"},
		"another repository, the same name":  {logbook.Owner{Repository: "git.example.com/other", Cluster: "a"}, []string{"a"}, "spec a of the fleet repository git.example.com/other"},
	} {
		have := rollouttest.New(repo+"v1.14.2", rollouttest.DefaultCorefile).Observe()
		have.Kube.Book.Owner = c.owner
		want := wantDNS("v1.14.6")
		want.Owner, want.Siblings = own, c.siblings
		stalled, ok := rollout.Next(want, have, now()).(rollout.Stalled)
		if ok != (c.stalled != "") || !strings.Contains(stalled.Failure.Message, c.stalled) || ok && !strings.Contains(stalled.Failure.Remedy, "owner") {
			t.Errorf("%s: %+v, want stalled saying %q", name, stalled, c.stalled)
		}
	}
}
