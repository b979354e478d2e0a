// SPDX-License-Identifier: Apache-2.0

package live

import (
	"fmt"
	"slices"
	"strconv"
)

// MemberID is a member's id, which stays the same while it is a member and never comes again.
type MemberID uint64

// String is the id as etcd's own tools print it.
func (i MemberID) String() string { return strconv.FormatUint(uint64(i), 16) }

// Etcd is what was seen of the cluster's stacked etcd.
type Etcd struct {
	ClusterID MemberID
	// Confirmed says that a quorum stands behind Members. Without it, Members is what one member last knew.
	Confirmed bool
	// AlarmsSeen says that the alarms were read. Without it, no Alarms means nothing.
	AlarmsSeen bool
	// Members are sorted by name, then id.
	Members []Member
	// Strangers are etcds on our nodes that are no members.
	Strangers []EtcdStranger
	// Differences are sentences: whose own list of members is another than Members, and in what. It may be behind
	// for a moment. When it stays so, members that were removed may come back with it.
	Differences []string
}

// Member is one member of the list, and what it says itself.
type Member struct {
	ID MemberID
	// Name is empty until the member has started once.
	Name                 string
	PeerURLs, ClientURLs []string
	Learner              bool
	Alarms               []Alarm
	// Status is the member's own answer, nil when none came, and Unreachable then says why.
	Status      *MemberStatus
	Unreachable string
}

// Alarm is a state in which etcd refuses service until a person has mended it.
type Alarm string

// The alarms of etcd.
const (
	NoSpace Alarm = "NOSPACE"
	Corrupt Alarm = "CORRUPT"
)

// MemberStatus is a member's own answer.
type MemberStatus struct {
	Version string
	// DBSize and DBInUse are bytes; Quota is the size at which NOSPACE is raised, 0 before etcd 3.6.
	DBSize, DBInUse, Quota            int64
	RaftTerm, RaftIndex, AppliedIndex uint64
	// Leader is 0 when the member knows none.
	Leader MemberID
	// DowngradeTo is the version that a downgrade under way goes to.
	DowngradeTo string
	// Errors are etcd's remarks, for people only: they repeat alarms, and tell of others' too.
	Errors []string
}

// EtcdStranger is an etcd that runs on a node of ours and is no member: removed, or of another cluster.
type EtcdStranger struct {
	Node                string
	ClusterID, MemberID MemberID
}

// Started says that the member has run once, which a learner of a failed join never has.
func (m Member) Started() bool { return m.Name != "" }

// Healthy says that a quorum can count on the member. Status.Errors have no say: they tell of others' alarms too.
func (m Member) Healthy() bool {
	return m.Status != nil && m.Status.Leader != 0 && !m.Learner && m.Started() && len(m.Alarms) == 0
}

func (m Member) String() string { return MemberRef{ID: m.ID, Name: m.Name}.String() }

// Ref names the member for an act.
func (m Member) Ref() MemberRef {
	r := MemberRef{ID: m.ID, Name: m.Name, Learner: m.Learner}
	if len(m.PeerURLs) > 0 {
		r.PeerURL = m.PeerURLs[0]
	}
	return r
}

// MemberRef is a member as it was when an act on it was decided.
type MemberRef struct {
	ID      MemberID
	Name    string
	PeerURL string
	Learner bool
}

func (r MemberRef) String() string {
	if r.Name == "" {
		return fmt.Sprintf("unnamed member %s", r.ID)
	}
	return fmt.Sprintf("member %s (%s)", r.Name, r.ID)
}

// Find is the member of that id, nil if there is none.
func (v Etcd) Find(id MemberID) *Member {
	i := slices.IndexFunc(v.Members, func(m Member) bool { return m.ID == id })
	if i < 0 {
		return nil
	}
	return &v.Members[i]
}

// Leader is what the member of the highest term says, 0 when that is none.
func (v Etcd) Leader() MemberID {
	var leader MemberID
	var term uint64
	for _, m := range v.Members {
		if m.Status != nil && (m.Status.RaftTerm > term || m.Status.RaftTerm == term && leader == 0) {
			leader, term = m.Status.Leader, m.Status.RaftTerm
		}
	}
	return leader
}
