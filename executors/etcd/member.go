// SPDX-License-Identifier: Apache-2.0

package etcd

import (
	"context"
	"fmt"
	"slices"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// member puts together what the list and the member itself say.
func member(m *pb.Member, cluster ID, answers []answer) Member {
	out := Member{
		ID: ID(m.ID), Name: m.Name, Learner: m.IsLearner,
		PeerURLs: slices.Clone(m.PeerURLs), ClientURLs: slices.Clone(m.ClientURLs),
		Unreachable: "it has never started",
	}
	for _, a := range answers {
		switch {
		case a.status != nil && a.cluster() == cluster && a.member() == out.ID:
			out.Status, out.Unreachable = status(a.status), ""
			return out
		case a.node != m.Name:
		case a.status != nil:
			out.Unreachable = fmt.Sprintf("the etcd on %s is member %s of cluster %s", a.node, a.member(), a.cluster())
		default:
			out.Unreachable = a.err.Error()
		}
	}
	return out
}

func status(s *pb.StatusResponse) *Status {
	out := &Status{
		Version: s.GetVersion(),
		DBSize:  s.GetDbSize(), DBInUse: s.GetDbSizeInUse(), Quota: s.GetDbSizeQuota(),
		RaftTerm: s.GetRaftTerm(), RaftIndex: s.GetRaftIndex(), AppliedIndex: s.GetRaftAppliedIndex(),
		Leader: ID(s.GetLeader()),
		Errors: slices.Clone(s.GetErrors()),
	}
	if s.GetDowngradeInfo().GetEnabled() {
		out.DowngradeTo = s.GetDowngradeInfo().GetTargetVersion()
	}
	return out
}

// differences are sentences about what a member's own list has otherwise. A list that it did not give has none.
func differences(a answer, members []Member) []string {
	if a.own == nil {
		return nil
	}
	var out []string
	own := map[ID]Member{}
	for _, m := range a.own {
		own[ID(m.ID)] = Member{ID: ID(m.ID), Name: m.Name, Learner: m.IsLearner}
	}
	for _, m := range members {
		mine, ok := own[m.ID]
		delete(own, m.ID)
		switch {
		case !ok:
			out = append(out, fmt.Sprintf("the etcd on %s does not know %s", a.node, m))
		case mine.Learner != m.Learner:
			out = append(out, fmt.Sprintf("the etcd on %s takes %s for a %s", a.node, m, map[bool]string{true: "learner", false: "voter"}[mine.Learner]))
		}
	}
	for _, m := range own {
		out = append(out, fmt.Sprintf("the etcd on %s has %s, which is no member", a.node, m))
	}
	slices.Sort(out)
	return out
}

// alarms asks one member after another for the alarms of all, until one knows. They come through a quorum, so that
// without one nobody does: AlarmsSeen then stays false. An alarm of a member that is gone is no member's.
func (c *Client) alarms(ctx context.Context, s *sight) error {
	if !s.Confirmed {
		return nil
	}
	for _, e := range s.voters(0) {
		var list *clientv3.AlarmResponse
		err := c.call(ctx, e, func(ctx context.Context) (err error) {
			list, err = e.etcd.AlarmList(ctx)
			return err
		})
		if ctx.Err() != nil {
			return err
		}
		if err != nil {
			continue
		}
		s.AlarmsSeen = true
		for _, alarm := range list.Alarms {
			if m := s.Find(ID(alarm.MemberID)); m != nil {
				m.Alarms = append(m.Alarms, Alarm(alarm.Alarm.String()))
			}
		}
		return nil
	}
	return nil
}

// voters are the connections to voters that answered, but for one of them: the leader's first, which knows most
// about the others, then as sorted.
func (s sight) voters(but ID) []*endpoint {
	var out []*endpoint
	leader := s.Leader()
	for _, m := range s.Members {
		e := s.by[m.ID]
		switch {
		case e == nil || m.Learner || m.ID == but:
		case m.ID == leader:
			out = slices.Insert(out, 0, e)
		default:
			out = append(out, e)
		}
	}
	return out
}
