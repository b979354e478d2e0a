// SPDX-License-Identifier: Apache-2.0

package etcd_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"

	"github.com/theseus-gitops/theseus/executors/etcd"
	"github.com/theseus-gitops/theseus/reconcile/live"
	"github.com/theseus-gitops/theseus/reconcile/rollout"
)

func observe(t *testing.T, client *etcd.Client) etcd.View {
	t.Helper()
	v, err := client.Observe(t.Context())
	if err != nil {
		t.Fatal("Observe:", err)
	}
	return v
}

// cluster-api#13846: remarks of a status are no failures, for they repeat what others have; alarms are.
func TestAlarmsAreReadFromTheirList(t *testing.T) {
	t.Parallel()
	f := trio()
	for _, m := range f {
		m.status.Errors = []string{"memberID:3 alarm:NOSPACE "}
	}
	f["cp-1"].alarms = []*pb.AlarmMember{{MemberID: 3, Alarm: pb.AlarmType_NOSPACE}, {MemberID: 3, Alarm: pb.AlarmType_CORRUPT}, {MemberID: 77, Alarm: pb.AlarmType_NOSPACE}}
	v := observe(t, fakes(t, f))
	if got := named(v, "cp-3").Alarms; !slices.Equal(got, []etcd.Alarm{live.NoSpace, live.Corrupt}) {
		t.Errorf("alarms of cp-3: %v", got)
	}
	if got := v.Count(); got != (live.EtcdCount{Voters: 3, Healthy: 2}) {
		t.Errorf("count: %+v", got)
	}
	if got := v.CountWithout(3); got != (live.EtcdCount{Voters: 2, Healthy: 2}) || !got.Quorum() {
		t.Errorf("without the one that has the alarms: %+v", got)
	}
	if got := v.CountWithout(2); got.Quorum() {
		t.Errorf("without another: %+v, want no quorum", got)
	}
}

// etcd-io/etcd#19557, #20793, #20967, etcd-io/website#1165: what the gate before 3.6 and 3.7 must know of each member.
func TestVersionsOfEachMemberAreSeen(t *testing.T) {
	t.Parallel()
	f := trio()
	f["cp-2"].status.Version = "3.5.24"
	f["cp-3"].status.DowngradeInfo = &pb.DowngradeInfo{Enabled: true, TargetVersion: "3.5.0"}
	v := observe(t, fakes(t, f))
	var versions []string
	for _, m := range v.Members {
		versions = append(versions, m.Status.Version)
	}
	if !slices.Equal(versions, []string{"3.6.16", "3.5.24", "3.6.16"}) {
		t.Errorf("versions: %v", versions)
	}
	if got := named(v, "cp-3").Status.DowngradeTo; got != "3.5.0" {
		t.Errorf("downgrade to %q", got)
	}
}

// etcd-io/etcd#13196, k3s-io/k3s#13493: members that were removed live on in one member's own list.
func TestListsThatDifferAreTold(t *testing.T) {
	t.Parallel()
	f := trio()
	f["cp-2"].own = append(voters(1, 2), &pb.Member{ID: 0xdead, Name: "cp-0"})
	f["cp-2"].own[0].IsLearner = true
	f["cp-2"].agreed = voters(1, 2, 3)
	v := observe(t, fakes(t, f))
	want := []string{
		"the etcd on cp-2 does not know member cp-3 (3)",
		"the etcd on cp-2 has member cp-0 (dead), which is no member",
		"the etcd on cp-2 takes member cp-1 (1) for a learner",
	}
	if !slices.Equal(v.Differences, want) {
		t.Errorf("got  %q\nwant %q", v.Differences, want)
	}
	if v.Count().Voters != 3 || !v.Confirmed {
		t.Errorf("the list with a quorum behind it holds: %+v", v)
	}
}

// vmware-archive/cluster-api-upgrade-tool#123: a machine began a cluster of its own where it should have joined.
func TestAnotherClusterIsNotMixedIn(t *testing.T) {
	t.Parallel()
	f := trio()
	f["cp-9"] = &fake{node: "cp-9", cluster: 0xc9, id: 9, own: voters(9), status: pb.StatusResponse{Leader: 9}}
	v := observe(t, fakes(t, f))
	if want := []etcd.Stranger{{Node: "cp-9", ClusterID: 0xc9, MemberID: 9}}; !slices.Equal(v.Strangers, want) || len(v.Members) != 3 {
		t.Errorf("strangers %+v of members %+v", v.Strangers, v.Members)
	}

	alone := map[string]*fake{"cp-1": {cluster: 0xc1, id: 1, own: voters(1)}, "cp-9": f["cp-9"]}
	_, err := fakes(t, alone).Observe(t.Context())
	if err == nil || !strings.Contains(err.Error(), "different clusters: c1 on cp-1; c9 on cp-9") {
		t.Errorf("one against one: %v", err)
	}
}

// A removed member whose pod still runs, and a new member of an old one's name, are told apart by id.
func TestNamesDoNotMakeMembers(t *testing.T) {
	t.Parallel()
	f := trio()
	f["cp-3"].id = 33
	for _, m := range f {
		m.own = append(voters(1, 2, 3), &pb.Member{ID: 33, Name: "cp-3"})
	}
	v := observe(t, fakes(t, f))
	if m := v.Find(3); m.Status != nil || m.Unreachable != "the etcd on cp-3 is member 21 of cluster c1" {
		t.Errorf("the old member: %+v", m)
	}
	if m := v.Find(33); m.Status == nil {
		t.Errorf("the new member: %+v", m)
	}
	for _, m := range f {
		m.own, m.agreed = voters(1, 2), nil
	}
	if v = observe(t, fakes(t, f)); !slices.Equal(v.Strangers, []etcd.Stranger{{Node: "cp-3", ClusterID: 0xc1, MemberID: 33}}) {
		t.Errorf("strangers: %+v", v.Strangers)
	}
}

func TestWithoutQuorumNothingIsChanged(t *testing.T) {
	t.Parallel()
	f := trio()
	f["cp-2"], f["cp-3"] = nil, nil
	f["cp-1"].none, f["cp-1"].status.Leader = true, 0
	client := fakes(t, f)
	v := observe(t, client)
	if v.Confirmed || v.AlarmsSeen || len(v.Members) != 3 || v.Count().Healthy != 0 || v.Count().Quorum() {
		t.Errorf("view: %+v", v)
	}
	if got := named(v, "cp-2").Unreachable; got != "etcd on cp-2: node cp-2 is off" {
		t.Errorf("unreachable: %q", got)
	}
	_, added := client.AddLearner(t.Context(), placeholder)
	for act, err := range map[string]error{"remove": client.Remove(t.Context(), voter(2)), "move": client.MoveLeader(t.Context(), voter(2)), "add": added} {
		if !errors.Is(err, etcd.ErrNoQuorum) {
			t.Errorf("%s: %v, want ErrNoQuorum", act, err)
		}
	}
	if slices.ContainsFunc(f["cp-1"].calls, func(c string) bool { return c != "status" && c != "list" }) {
		t.Errorf("calls: %v", f["cp-1"].calls)
	}
}

// cluster-api#8465: the leader does not answer, and so can't be asked to hand over; nothing else hangs on it.
func TestLeaderThatDoesNotAnswer(t *testing.T) {
	t.Parallel()
	f := trio()
	f["cp-1"] = nil
	client := fakes(t, f)
	if err := client.MoveLeader(t.Context(), voter(2)); !errors.Is(err, etcd.ErrNoLeader) {
		t.Errorf("move: %v, want ErrNoLeader", err)
	}
	if err := client.Remove(t.Context(), voter(1)); err != nil {
		t.Errorf("removing it through another: %v", err)
	}
}

// The answer to a change may be lost although the change was made: what is so then counts.
func TestLostAnswers(t *testing.T) {
	t.Parallel()
	for name, act := range map[string]func(context.Context, *etcd.Client) error{
		"remove": func(ctx context.Context, c *etcd.Client) error { return c.Remove(ctx, voter(3)) },
		"move":   func(ctx context.Context, c *etcd.Client) error { return c.MoveLeader(ctx, voter(2)) },
		"add": func(ctx context.Context, c *etcd.Client) error {
			r, err := c.AddLearner(ctx, placeholder)
			if err == nil && r != (etcd.Ref{ID: 99, PeerURL: placeholder, Learner: true}) {
				t.Errorf("added: %+v", r)
			}
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := trio()
			f["cp-1"].lost = true
			if err := act(t.Context(), fakes(t, f)); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestActsOnMembersThatChanged(t *testing.T) {
	t.Parallel()
	f := trio()
	client := fakes(t, f)
	ctx := t.Context()
	renamed, gone := voter(2), voter(8)
	renamed.Name = "cp-7"
	for act, err := range map[string]error{
		"remove a renamed one": client.Remove(ctx, renamed), "move to a renamed one": client.MoveLeader(ctx, renamed), "move to one that is gone": client.MoveLeader(ctx, gone),
	} {
		if !errors.Is(err, rollout.ErrConflict) {
			t.Errorf("%s: %v, want ErrConflict", act, err)
		}
	}
	// Leadership that is there is not moved again: each move costs the API a moment.
	if err := client.MoveLeader(ctx, voter(1)); err != nil {
		t.Error(err)
	}
	f["cp-1"].alarms = []*pb.AlarmMember{{MemberID: 2, Alarm: pb.AlarmType_CORRUPT}}
	if err := client.MoveLeader(ctx, voter(2)); err == nil || !strings.Contains(err.Error(), "alarm CORRUPT") {
		t.Errorf("move to one with an alarm: %v", err)
	}
	for _, m := range f {
		if slices.ContainsFunc(m.calls, func(c string) bool { return strings.HasPrefix(c, "remove") || strings.HasPrefix(c, "move") }) {
			t.Errorf("calls of %s: %v", m.node, m.calls)
		}
	}
}

// The member to go is not asked to remove itself while another can be.
func TestRemovalGoesThroughAnother(t *testing.T) {
	t.Parallel()
	f := trio()
	if err := fakes(t, f).Remove(t.Context(), voter(1)); err != nil {
		t.Fatal(err)
	}
	if !slices.Contains(f["cp-2"].calls, "remove 1") || slices.Contains(f["cp-1"].calls, "remove 1") {
		t.Errorf("cp-1: %v, cp-2: %v", f["cp-1"].calls, f["cp-2"].calls)
	}
}

// The reason of a port-forward reaches the caller as it was, a missing right for example.
func TestNobodyAnswers(t *testing.T) {
	t.Parallel()
	_, err := fakes(t, map[string]*fake{"cp-1": nil, "cp-2": nil}).Observe(t.Context())
	var off *offError
	if !errors.As(err, &off) || !strings.Contains(err.Error(), "cp-1 is off") || !strings.Contains(err.Error(), "cp-2 is off") {
		t.Errorf("got %v", err)
	}
}
