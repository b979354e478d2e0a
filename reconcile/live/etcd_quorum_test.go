// SPDX-License-Identifier: Apache-2.0

package live_test

import (
	"fmt"
	"testing"

	"github.com/theseus-gitops/theseus/reconcile/live"
)

// of makes members from letters, with ids from 1: v a voter, d a dead one, a one with an alarm, n one that knows no
// leader, l a learner, u a learner that has never started, U such a voter.
func of(letters string) live.Etcd {
	var v live.Etcd
	for i, l := range letters {
		m := live.Member{ID: live.MemberID(i + 1), Name: fmt.Sprintf("cp-%d", i+1), Status: &live.MemberStatus{Leader: 1}}
		switch l {
		case 'd':
			m.Status = nil
		case 'a':
			m.Alarms = []live.Alarm{live.NoSpace}
		case 'n':
			m.Status = &live.MemberStatus{}
		case 'l':
			m.Learner = true
		case 'u':
			m.Name, m.Learner, m.Status = "", true, nil
		case 'U':
			m.Name, m.Status = "", nil
		}
		v.Members = append(v.Members, m)
	}
	return v
}

// Cluster API's tables, and those of facts about quorum: the first member is the one to go.
func TestQuorum(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		members                     string
		now, without, with, settled bool
	}{
		{"", false, false, true, true},
		{"v", true, false, true, true},
		{"d", false, false, false, true},
		{"vv", true, true, true, true},
		{"dv", false, true, false, true}, // two members, one dead: nothing can be agreed on any more, the removal neither
		{"vd", false, false, false, true},
		{"va", false, false, false, true}, // NOSPACE on another: stop
		{"av", false, true, false, true},  // NOSPACE on the one to go: it may
		{"vn", false, false, false, true},
		{"vvv", true, true, true, true},
		{"dvv", true, true, false, true}, // a dead member goes first, then one is added
		{"vdv", true, false, false, true},
		{"ddv", false, false, false, true},
		{"vvvv", true, true, true, true},
		{"vvvd", true, true, true, true},
		{"vvdd", false, false, false, true},
		{"vvvvv", true, true, true, true},
		{"vvvvd", true, true, true, true},
		{"dvvvd", true, true, false, true}, // cluster-api#10125: 5 with 2 bad, one of which goes
		{"vvvdd", true, false, false, true},
		{"vvvvvvv", true, true, true, true},
		{"vvvvvdd", true, true, true, true},
		{"vvvvddd", true, false, false, true},
		{"vl", true, false, true, false},
		{"lv", true, true, true, false},
		{"vu", true, false, true, false},
		{"uv", true, true, true, false},
		{"vvvl", true, true, true, false},
		{"vvvU", true, true, true, false},
		{"vvU", true, false, false, false},
	} {
		v := of(c.members)
		if got := v.Count(); got.Quorum() != c.now || got.Settled() != c.settled {
			t.Errorf("%q: %+v, want quorum %v, settled %v", c.members, got, c.now, c.settled)
		}
		if got := v.CountWithout(1); got.Quorum() != c.without {
			t.Errorf("%q without the first: %+v, want quorum %v", c.members, got, c.without)
		}
		if got := v.CountWith(); got.Quorum() != c.with {
			t.Errorf("%q with one more: %+v, want quorum %v", c.members, got, c.with)
		}
	}
	if got := of("vvv").CountWithout(1, 2); got != (live.EtcdCount{Voters: 1, Healthy: 1}) || got.Needed() != 1 {
		t.Errorf("without two: %+v", got)
	}
}
