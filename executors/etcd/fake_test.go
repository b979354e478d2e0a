// SPDX-License-Identifier: Apache-2.0

package etcd_test

import (
	"context"
	"fmt"
	"net"
	"sync"
	"testing"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"

	"github.com/theseus-gitops/theseus/executors/etcd"
)

// fake is an etcd that says what no real one can be made to say in a test. What it is not asked for in a test, it
// answers as a healthy member does.
type fake struct {
	pb.UnimplementedClusterServer
	pb.UnimplementedMaintenanceServer
	pb.UnimplementedKVServer

	mu      sync.Mutex
	node    string
	cluster uint64
	id      uint64
	// own is its list of members; agreed the one with a quorum behind it, own if nil; none says that there is no quorum.
	own, agreed []*pb.Member
	none        bool
	status      pb.StatusResponse
	alarms      []*pb.AlarmMember
	snapshot    [][]byte
	// lost carries out a change, but loses the answer.
	lost  bool
	calls []string
}

func (f *fake) enter(call string) *pb.ResponseHeader {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.calls = append(f.calls, call)
	return &pb.ResponseHeader{ClusterId: f.cluster, MemberId: f.id, Revision: 7}
}

func (f *fake) Status(context.Context, *pb.StatusRequest) (*pb.StatusResponse, error) {
	s := &pb.StatusResponse{
		Header: f.enter("status"), Version: f.status.Version, Leader: f.status.Leader, RaftTerm: f.status.RaftTerm,
		Errors: f.status.Errors, IsLearner: f.status.IsLearner, DowngradeInfo: f.status.DowngradeInfo,
	}
	return s, nil
}

func (f *fake) MemberList(_ context.Context, r *pb.MemberListRequest) (*pb.MemberListResponse, error) {
	header := f.enter("list")
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.status.IsLearner {
		return nil, rpctypes.ErrGRPCNotSupportedForLearner
	}
	if r.Linearizable && f.none {
		return nil, rpctypes.ErrGRPCTimeout
	}
	members := f.own
	if r.Linearizable && f.agreed != nil {
		members = f.agreed
	}
	return &pb.MemberListResponse{Header: header, Members: members}, nil
}

func (f *fake) MemberRemove(_ context.Context, r *pb.MemberRemoveRequest) (*pb.MemberRemoveResponse, error) {
	header := f.enter(fmt.Sprintf("remove %x", r.ID))
	f.mu.Lock()
	defer f.mu.Unlock()
	var rest []*pb.Member
	for _, m := range f.own {
		if m.ID != r.ID {
			rest = append(rest, m)
		}
	}
	f.own = rest
	if f.lost {
		return nil, rpctypes.ErrGRPCTimeout
	}
	return &pb.MemberRemoveResponse{Header: header, Members: rest}, nil
}

func (f *fake) MemberAdd(_ context.Context, r *pb.MemberAddRequest) (*pb.MemberAddResponse, error) {
	header := f.enter("add")
	f.mu.Lock()
	defer f.mu.Unlock()
	m := &pb.Member{ID: 99, PeerURLs: r.PeerURLs, IsLearner: r.IsLearner}
	f.own = append(f.own, m)
	if f.lost {
		return nil, rpctypes.ErrGRPCTimeout
	}
	return &pb.MemberAddResponse{Header: header, Member: m}, nil
}

func (f *fake) MoveLeader(_ context.Context, r *pb.MoveLeaderRequest) (*pb.MoveLeaderResponse, error) {
	header := f.enter(fmt.Sprintf("move %x", r.TargetID))
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.status.Leader != f.id {
		return nil, rpctypes.ErrGRPCNotLeader
	}
	f.status.Leader = r.TargetID
	f.status.RaftTerm++
	if f.lost {
		return nil, rpctypes.ErrGRPCTimeout
	}
	return &pb.MoveLeaderResponse{Header: header}, nil
}

func (f *fake) Alarm(context.Context, *pb.AlarmRequest) (*pb.AlarmResponse, error) {
	return &pb.AlarmResponse{Header: f.enter("alarms"), Alarms: f.alarms}, nil
}

func (f *fake) Range(context.Context, *pb.RangeRequest) (*pb.RangeResponse, error) {
	return &pb.RangeResponse{Header: f.enter("range")}, nil
}

func (f *fake) Snapshot(_ *pb.SnapshotRequest, to grpc.ServerStreamingServer[pb.SnapshotResponse]) error {
	f.enter("snapshot")
	for _, blob := range f.snapshot {
		if blob == nil {
			<-to.Context().Done() // it hangs
			return nil
		}
		if err := to.Send(&pb.SnapshotResponse{Blob: blob}); err != nil {
			return err
		}
	}
	return nil
}

// fakes are the members of clusters that listen on loopback, or don't: one that is nil is a node that is off.
func fakes(t *testing.T, all map[string]*fake) *etcd.Client {
	t.Helper()
	return fakesBy(t, all, func(node string) string { return node })
}

// fakesBy leads connections to another node than asked for.
func fakesBy(t *testing.T, all map[string]*fake, way func(node string) string) *etcd.Client {
	t.Helper()
	ca := newPKI(t)
	addresses := map[string]string{}
	var nodes []string
	for name, f := range all {
		nodes = append(nodes, name)
		if f == nil {
			continue
		}
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		s := grpc.NewServer(grpc.Creds(credentials.NewTLS(ca.serverTLS(t, name))))
		pb.RegisterClusterServer(s, f)
		pb.RegisterMaintenanceServer(s, f)
		pb.RegisterKVServer(s, f)
		go func() { _ = s.Serve(l) }()
		t.Cleanup(s.Stop)
		addresses[name] = l.Addr().String()
	}
	return connect(t, etcd.Options{
		Nodes: nodes, CACertificate: ca.certificatePEM(), CAKey: ca.keyPEM(t), Timeout: 2 * time.Second,
		Dial: func(ctx context.Context, node string) (net.Conn, error) {
			address, ok := addresses[way(node)]
			if !ok {
				return nil, &offError{node}
			}
			return new(net.Dialer).DialContext(ctx, "tcp", address)
		},
	})
}

// offError is what a port-forward of these tests answers for a node that is off.
type offError struct{ node string }

func (e *offError) Error() string { return "node " + e.node + " is off" }

// trio is three voters, cp-1 to cp-3 with ids 1 to 3, the first of which leads.
func trio() map[string]*fake {
	out := map[string]*fake{}
	for i := range uint64(3) {
		name := fmt.Sprintf("cp-%d", i+1)
		out[name] = &fake{
			node: name, cluster: 0xc1, id: i + 1, own: voters(1, 2, 3),
			status: pb.StatusResponse{Version: "3.6.16", Leader: 1, RaftTerm: 5},
		}
	}
	return out
}

func voters(ids ...uint64) []*pb.Member {
	var out []*pb.Member
	for _, id := range ids {
		out = append(out, &pb.Member{ID: id, Name: fmt.Sprintf("cp-%d", id), PeerURLs: []string{fmt.Sprintf("https://10.0.0.%d:2380", id)}})
	}
	return out
}

func voter(id etcd.ID) etcd.Ref {
	return etcd.Ref{ID: id, Name: fmt.Sprintf("cp-%d", id), PeerURL: fmt.Sprintf("https://10.0.0.%d:2380", id)}
}
