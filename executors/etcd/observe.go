// SPDX-License-Identifier: Apache-2.0

package etcd

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// Observe asks every node that has an etcd, and every member that they name, at the same time.
//
// Each voter is asked twice who the members are. With a quorum behind its answer (a linearizable read): that is the
// list to act on. And by itself (a serializable read): that answer comes without a quorum too, and one that differs
// tells of a member that is behind or of another mind. Learners answer neither and are asked for their status alone.
//
// A member that does not answer is told in the View. Only when nobody answers is that an error.
func (c *Client) Observe(ctx context.Context) (View, error) {
	seen, err := c.observe(ctx)
	return seen.View, err
}

// sight is a View and the connections that it was made by.
type sight struct {
	View
	by map[ID]*endpoint
}

func (c *Client) observe(ctx context.Context) (sight, error) {
	answers := c.askAll(ctx, c.begin())
	answers = append(answers, c.askAll(ctx, unasked(answers))...)
	if ctx.Err() != nil {
		return sight{}, fmt.Errorf("etcd: %w", context.Cause(ctx))
	}
	answered := slices.DeleteFunc(slices.Clone(answers), func(a answer) bool { return a.status == nil })
	if len(answered) == 0 {
		return sight{}, fmt.Errorf("no etcd member answers: %w", joined(answers))
	}
	cluster, err := oneCluster(answered)
	if err != nil {
		return sight{}, err
	}
	list, confirmed := membersOf(cluster, answered)
	if list == nil {
		return sight{}, fmt.Errorf("%w: %w", ErrNoQuorum, joined(answers))
	}
	s := sight{View: View{ClusterID: cluster, Confirmed: confirmed}, by: map[ID]*endpoint{}}
	for _, m := range list {
		s.Members = append(s.Members, member(m, cluster, answers))
	}
	slices.SortFunc(s.Members, func(a, b Member) int {
		return strings.Compare(a.Name+"\x00"+a.ID.String(), b.Name+"\x00"+b.ID.String())
	})
	if confirmed {
		c.learn(s.Members)
	}
	for _, a := range answered {
		if a.cluster() == cluster && s.Find(a.member()) != nil {
			s.by[a.member()] = a.by
			s.Differences = append(s.Differences, differences(a, s.Members)...)
			continue
		}
		s.Strangers = append(s.Strangers, Stranger{Node: a.node, ClusterID: a.cluster(), MemberID: a.member()})
	}
	return s, c.alarms(ctx, &s)
}

// answer is what the etcd on one node says.
type answer struct {
	node   string
	by     *endpoint
	status *pb.StatusResponse
	// agreed and own are the two lists of members, nil when not given.
	agreed, own []*pb.Member
	err         error
}

func (a answer) cluster() ID { return ID(a.status.GetHeader().GetClusterId()) }
func (a answer) member() ID  { return ID(a.status.GetHeader().GetMemberId()) }

func (c *Client) askAll(ctx context.Context, nodes []string) []answer {
	answers := make([]answer, len(nodes))
	var all sync.WaitGroup
	for i, node := range nodes {
		all.Go(func() { answers[i] = c.ask(ctx, node) })
	}
	all.Wait()
	return answers
}

func (c *Client) ask(ctx context.Context, node string) answer {
	a := answer{node: node}
	if a.by, a.err = c.endpoint(node); a.err != nil {
		return a
	}
	a.err = c.call(ctx, a.by, func(ctx context.Context) (err error) {
		a.status, err = a.by.maintenance().Status(ctx, &pb.StatusRequest{})
		return err
	})
	if a.err != nil {
		a.status = nil
		return a
	}
	if a.status.GetIsLearner() {
		return a
	}
	list := func(into *[]*pb.Member, options ...clientv3.OpOption) error {
		return c.call(ctx, a.by, func(ctx context.Context) error {
			r, err := a.by.etcd.MemberList(ctx, options...)
			if err == nil {
				*into = r.Members
			}
			return err
		})
	}
	a.err = errors.Join(list(&a.own, clientv3.WithSerializable()), list(&a.agreed))
	return a
}

// unasked are the nodes of members that the answers name and that were not asked.
func unasked(answers []answer) []string {
	asked, names := map[string]bool{"": true}, []string(nil)
	for _, a := range answers {
		asked[a.node] = true
	}
	for _, a := range answers {
		for _, m := range slices.Concat(a.agreed, a.own) {
			if !asked[m.Name] {
				asked[m.Name] = true
				names = append(names, m.Name)
			}
		}
	}
	slices.Sort(names)
	return names
}

// joined says why answers are missing, of all nodes.
func joined(answers []answer) error {
	var errs []error
	for _, a := range answers {
		if a.err != nil {
			errs = append(errs, a.err)
		}
	}
	return errors.Join(errs...)
}

// oneCluster is the cluster that most nodes belong to. One that does not is a stranger. Without a majority nobody
// knows which is the right one.
func oneCluster(answered []answer) (ID, error) {
	nodes := map[ID][]string{}
	for _, a := range answered {
		nodes[a.cluster()] = append(nodes[a.cluster()], a.node)
	}
	for id, in := range nodes {
		if 2*len(in) > len(answered) {
			return id, nil
		}
	}
	var sides []string
	for id, in := range nodes {
		sides = append(sides, fmt.Sprintf("%s on %s", id, strings.Join(in, ", ")))
	}
	slices.Sort(sides)
	return 0, fmt.Errorf("the etcds belong to different clusters: %s: a machine was begun with `kubeadm init` where it should join; remove the one that has no data of yours",
		strings.Join(sides, "; "))
}

// membersOf is the list that a quorum stands behind or, without one, what the member that got furthest knows.
func membersOf(cluster ID, answered []answer) (list []*pb.Member, confirmed bool) {
	var furthest *pb.StatusResponse
	for _, a := range answered {
		switch {
		case a.cluster() != cluster:
		case a.agreed != nil:
			return a.agreed, true
		case a.own == nil:
		case furthest == nil || further(a.status, furthest):
			list, furthest = a.own, a.status
		}
	}
	return list, false
}

func further(a, b *pb.StatusResponse) bool {
	if a.GetRaftTerm() != b.GetRaftTerm() {
		return a.GetRaftTerm() > b.GetRaftTerm()
	}
	return a.GetRaftAppliedIndex() > b.GetRaftAppliedIndex()
}
