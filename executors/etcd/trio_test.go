// SPDX-License-Identifier: Apache-2.0

package etcd_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/theseus-gitops/theseus/executors/etcd"
	"github.com/theseus-gitops/theseus/reconcile/live"
)

// One cluster of three goes through what machines do: all well, one that hangs, the leader that hangs, one that is
// dead, and a second one.
func TestThreeMembers(t *testing.T) {
	t.Parallel()
	c := start(t, newPKI(t), []string{"cp-1", "cp-2", "cp-3"})
	ctx := t.Context()
	// One node is enough to begin with: the others are found through it, and remembered for when it hangs.
	client := c.connect(3*time.Second, "cp-2")

	v := observe(t, client)
	for _, m := range v.Members {
		s := m.Status
		if s == nil || s.Version == "" || s.DBSize == 0 || s.DBInUse == 0 || s.Quota == 0 || s.RaftTerm == 0 || s.RaftIndex == 0 || s.AppliedIndex == 0 || s.Leader != v.Leader() {
			t.Errorf("%s: %+v", m, s)
		}
		if n := c.nodes[m.Name]; n == nil || m.Ref() != (etcd.Ref{ID: m.ID, Name: m.Name, PeerURL: n.peerURL()}) || !slices.Equal(m.ClientURLs, []string{"https://" + n.client}) {
			t.Errorf("%+v", m)
		}
	}
	if v.Leader() == 0 || v.ClusterID == 0 || !v.Count().Settled() || len(v.Strangers) > 0 {
		t.Errorf("view: %+v", v)
	}

	next := followers(v)[0]
	eventually(t, "leadership moves", func() error { return client.MoveLeader(ctx, next.Ref()) })
	v = c.await("the other leads", func(v etcd.View) bool { return v.Leader() == next.ID })

	c.hang(client, followers(v)[0])
	v = c.await("all are healthy again", healthy(3))
	// cluster-api#8465: the leader hangs.
	c.hang(client, *v.Find(v.Leader()))
	v = c.await("all are healthy again", healthy(3))

	// kubeadm#1432, wksctl#284, cluster-api#3860: a dead member is seen through others, refuses additions by being there,
	// and is removed first.
	dead := *v.Find(v.Leader())
	c.signal(dead.Name, syscall.SIGKILL)
	v = c.await("another leads", func(v etcd.View) bool { return v.Confirmed && v.Leader() != dead.ID && v.Leader() != 0 })
	if got := v.CountWithout(dead.ID); v.Find(dead.ID).Status != nil || got != (live.EtcdCount{Voters: 2, Healthy: 2}) {
		t.Errorf("beside a dead member: %+v, %+v", got, v.Find(dead.ID))
	}
	if _, err := client.AddLearner(ctx, joining); err == nil || !strings.Contains(err.Error(), "unhealthy cluster") {
		t.Errorf("adding beside a dead member: %v", err)
	}
	eventually(t, "the dead member is removed", func() error { return client.Remove(ctx, dead.Ref()) })
	v = c.await("two are left", healthy(2))
	c.write(v.Members[0].Name)
	eventually(t, "now one can be added", func() error { _, err := client.AddLearner(ctx, joining); return err })

	// Two members, one dead: nothing can be agreed on, and nothing is.
	c.signal(v.Members[1].Name, syscall.SIGKILL)
	v = c.await("no quorum is left", func(v etcd.View) bool { return !v.Confirmed })
	if v.AlarmsSeen || v.Count().Quorum() || v.Count().Voters != 2 {
		t.Errorf("view: %+v", v)
	}
	for _, m := range v.Members {
		if err := client.Remove(ctx, m.Ref()); !errors.Is(err, etcd.ErrNoQuorum) {
			t.Errorf("removing %s: %v, want ErrNoQuorum", m, err)
		}
	}
}

// hang stops a member: it is told as unreachable, everything else is known, and nobody is removed for it.
func (c *cluster) hang(client *etcd.Client, m etcd.Member) {
	c.t.Helper()
	c.signal(m.Name, syscall.SIGSTOP)
	defer c.signal(m.Name, syscall.SIGCONT)
	eventually(c.t, m.Name+" hangs", func() error {
		v, err := client.Observe(c.t.Context())
		if err != nil {
			return err
		}
		hung := v.Find(m.ID)
		if !v.Confirmed || len(v.Members) != 3 || v.Count() != (live.EtcdCount{Voters: 3, Healthy: 2}) || v.Leader() == m.ID ||
			hung == nil || hung.Status != nil || !strings.Contains(hung.Unreachable, "no answer within 3s") {
			return fmt.Errorf("seen: %+v", v)
		}
		return nil
	})
}

func healthy(n int) func(etcd.View) bool {
	return func(v etcd.View) bool { return v.Confirmed && v.Count() == live.EtcdCount{Voters: n, Healthy: n} }
}

func followers(v etcd.View) []etcd.Member {
	return slices.DeleteFunc(slices.Clone(v.Members), func(m etcd.Member) bool { return m.ID == v.Leader() })
}
