// SPDX-License-Identifier: Apache-2.0

package etcd_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"

	"github.com/theseus-gitops/theseus/executors/etcd"
	"github.com/theseus-gitops/theseus/reconcile/live"
	"github.com/theseus-gitops/theseus/reconcile/rollout"
)

const (
	joining     = "https://127.0.0.1:1"
	placeholder = "https://127.0.0.1:9"
)

func promote(ctx context.Context, c *cluster, via string, r etcd.Ref) error {
	_, err := c.raw(via).MemberPromote(ctx, uint64(r.ID))
	return err
}

// The fence of a 1-machine plane (cluster-api#11772): a machine whose join is given up may still be promoted, by its
// kubeadm, between our check and its end; two voters with one of them destroyed would never write again.
func TestFenceHolds(t *testing.T) {
	t.Parallel()
	c := start(t, newPKI(t), []string{"cp-1"})
	client := c.connect(0)
	ctx := t.Context()

	learner, err := client.AddLearner(ctx, joining)
	if err != nil {
		t.Fatal("the joining machine's kubeadm adds its learner:", err)
	}
	if again, err := client.AddLearner(ctx, joining); err != nil || again != learner {
		t.Fatalf("added again: %+v, %v, want the same %+v", again, err, learner)
	}
	if _, err := client.AddLearner(ctx, placeholder); !errors.Is(err, rollout.ErrConflict) {
		t.Fatalf("a second learner: %v, want ErrConflict", err)
	}
	if _, err := c.raw("cp-1").MemberAddAsLearner(ctx, []string{placeholder}); !errors.Is(err, rpctypes.ErrTooManyLearners) {
		t.Fatalf("etcd itself on a second learner: %v", err)
	}
	if err := client.Remove(ctx, learner); err != nil {
		t.Fatal("the learner is removed:", err)
	}
	held, err := client.AddLearner(ctx, placeholder)
	if err != nil {
		t.Fatal("the placeholder is added:", err)
	}
	if _, err := client.AddLearner(ctx, joining); !errors.Is(err, rollout.ErrConflict) {
		t.Fatalf("the joining machine's learner again: %v, want ErrConflict", err)
	}
	// Within the second of its removal etcd gives it the id that is removed and says so in the words of that.
	eventually(t, "kubeadm adding it again finds too many learners", func() error {
		_, err := c.raw("cp-1").MemberAddAsLearner(ctx, []string{joining})
		switch {
		case err == nil:
			t.Fatal("kubeadm could add it again beside the placeholder")
		case errors.Is(err, rpctypes.ErrTooManyLearners):
			return nil
		}
		return err
	})
	if err := promote(ctx, c, "cp-1", held); !errors.Is(err, rpctypes.ErrMemberLearnerNotReady) {
		t.Fatalf("promoting the placeholder: %v", err)
	}
	if err := promote(ctx, c, "cp-1", learner); !errors.Is(err, rpctypes.ErrMemberNotFound) {
		t.Fatalf("promoting the removed learner: %v", err)
	}
	c.write("cp-1")

	v, err := client.Observe(ctx)
	if err != nil {
		t.Fatal(err)
	}
	m := v.Find(held.ID)
	switch {
	case len(v.Members) != 2 || m == nil:
		t.Fatalf("members: %+v", v.Members)
	case !m.Learner || m.Started() || m.Status != nil || m.Unreachable != "it has never started":
		t.Errorf("the placeholder: %+v", m)
	case v.Count() != live.EtcdCount{Voters: 1, Healthy: 1, Learners: 1, Unstarted: 1}:
		t.Errorf("count: %+v", v.Count())
	}
	if err := client.Remove(ctx, held); err != nil {
		t.Fatal("the placeholder is removed:", err)
	}
	eventually(t, "one is added at the same peer URL, as soon as that gets another id", func() error {
		again, err := client.AddLearner(ctx, placeholder)
		if err == nil && again.ID == held.ID {
			t.Fatal("a removed id came again")
		}
		if err == nil {
			err = client.Remove(ctx, again)
		}
		return err
	})
	if err := client.Remove(ctx, held); err != nil {
		t.Fatal("what is gone is removed again:", err)
	}
	if v = c.await("one voter is left", func(v etcd.View) bool { return len(v.Members) == 1 }); !v.Count().Settled() {
		t.Errorf("count: %+v", v.Count())
	}
}

// The other end of the fence: the learner was promoted between check and removal. It must not go then, whatever the
// decision was; with the membership known, the roll goes forward: leader first (cluster-api#2651), then the old member.
func TestLearnerPromotedBetweenCheckAndRemoval(t *testing.T) {
	t.Parallel()
	c := start(t, newPKI(t), []string{"cp-1"})
	c.add("cp-2")
	client := c.connect(0)
	ctx := t.Context()

	unstarted, err := client.AddLearner(ctx, c.nodes["cp-2"].peerURL())
	if err != nil {
		t.Fatal(err)
	}
	c.join("cp-2", "cp-1")
	// kubeadm#2997, #3152, #3287: a learner is no voter however well it answers, and is asked nothing it can't answer.
	v := c.await("the learner answers", func(v etcd.View) bool { return named(v, "cp-2").Status != nil })
	learner := named(v, "cp-2")
	if !learner.Learner || learner.Healthy() || !v.Confirmed || len(v.Differences) > 0 {
		t.Errorf("beside a learner: %+v", v)
	}
	if err := client.Remove(ctx, unstarted); !errors.Is(err, rollout.ErrConflict) {
		t.Fatalf("removing it as one that never started: %v, want ErrConflict", err)
	}
	if err := client.MoveLeader(ctx, learner.Ref()); err == nil || !strings.Contains(err.Error(), "is a learner") {
		t.Fatalf("moving leadership to a learner: %v", err)
	}
	if _, err := client.AddLearner(ctx, c.nodes["cp-2"].peerURL()); !errors.Is(err, rollout.ErrConflict) {
		t.Fatalf("adding a learner where one runs: %v, want ErrConflict", err)
	}
	eventually(t, "kubeadm promotes", func() error { return promote(ctx, c, "cp-1", learner.Ref()) })
	if err := client.Remove(ctx, learner.Ref()); !errors.Is(err, rollout.ErrConflict) || !strings.Contains(err.Error(), "votes now") {
		t.Fatalf("removing it as a learner: %v, want ErrConflict", err)
	}

	v = c.await("two voters", func(v etcd.View) bool { return v.Count() == live.EtcdCount{Voters: 2, Healthy: 2} })
	old, fresh := named(v, "cp-1").Ref(), named(v, "cp-2").Ref()
	eventually(t, "leadership moves", func() error { return client.MoveLeader(ctx, fresh) })
	if v = c.await("it leads", func(v etcd.View) bool { return v.Leader() == fresh.ID }); !v.CountWithout(old.ID).Quorum() {
		t.Fatalf("the new one alone: %+v", v.CountWithout(old.ID))
	}
	eventually(t, "the old member is removed", func() error { return client.Remove(ctx, old) })
	// cluster-api#2651, #4365: a run that died right after comes again, and the old etcd is no more.
	if err := client.Remove(ctx, old); err != nil {
		t.Fatal("removed again:", err)
	}
	c.await("one voter is left", func(v etcd.View) bool {
		return len(v.Members) == 1 && v.Members[0].ID == fresh.ID && v.Count().Quorum()
	})
	c.write("cp-2")
	if err := client.Remove(ctx, fresh); err == nil || !strings.Contains(err.Error(), "only voter") {
		t.Fatalf("removing the last voter: %v", err)
	}
}

// kubeadm#3269, cluster-api#5509, #13221: a join that died left a member without a name. It goes by id, and only as it was seen.
func TestUnnamedMemberIsRemovedAsItWasSeen(t *testing.T) {
	t.Parallel()
	c := start(t, newPKI(t), []string{"cp-1"})
	client := c.connect(0)
	ctx := t.Context()
	left, err := client.AddLearner(ctx, joining)
	if err != nil {
		t.Fatal(err)
	}
	for _, wrong := range []etcd.Ref{
		{ID: left.ID, Name: "cp-2", PeerURL: joining, Learner: true},
		{ID: left.ID, PeerURL: "http://localhost:2380", Learner: true}, // kubeadm#1950, #2071: a restored member's URL
		{ID: left.ID, Learner: true},
	} {
		if err := client.Remove(ctx, wrong); !errors.Is(err, rollout.ErrConflict) {
			t.Errorf("removing %+v: %v, want ErrConflict", wrong, err)
		}
	}
	// A machine that got the address of one that is gone: the old id is gone, the new member at the URL stays.
	if err := client.Remove(ctx, etcd.Ref{ID: 1, PeerURL: joining}); err != nil {
		t.Errorf("removing an id that is no member: %v", err)
	}
	if v := c.await("it is there", func(v etcd.View) bool { return len(v.Members) == 2 }); v.Count().Settled() {
		t.Errorf("settled with an unnamed learner: %+v", v.Count())
	}
	if err := client.Remove(ctx, left); err != nil {
		t.Fatal(err)
	}
	c.await("it is gone", func(v etcd.View) bool { return len(v.Members) == 1 })
}
