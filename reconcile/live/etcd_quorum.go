// SPDX-License-Identifier: Apache-2.0

package live

// EtcdCount is what decides about quorum. Learners don't vote.
type EtcdCount struct {
	Voters, Healthy int
	// Learners and Unstarted are members that something is still to become of: no change is safe beside one.
	Learners, Unstarted int
}

// Needed is how many voters must agree.
func (c EtcdCount) Needed() int { return c.Voters/2 + 1 }

// Quorum says whether enough voters are healthy.
func (c EtcdCount) Quorum() bool { return c.Voters > 0 && c.Healthy >= c.Needed() }

// Settled says that every member is a voter that has started.
func (c EtcdCount) Settled() bool { return c.Learners == 0 && c.Unstarted == 0 }

// Count counts the members as they are.
func (v Etcd) Count() EtcdCount { return v.CountWithout() }

// CountWithout counts the members that remain after the removal of some. The removal is safe if what remains has a
// quorum: the health of those that go has no say.
func (v Etcd) CountWithout(gone ...MemberID) EtcdCount {
	var c EtcdCount
	for _, m := range v.Members {
		if among(m.ID, gone) {
			continue
		}
		if !m.Started() {
			c.Unstarted++
		}
		if m.Learner {
			c.Learners++
			continue
		}
		c.Voters++
		if m.Healthy() {
			c.Healthy++
		}
	}
	return c
}

// CountWith counts the members after one more voter: taken as unhealthy beside two or more, the worst case, and as
// healthy beside fewer, or else no cluster could grow.
func (v Etcd) CountWith() EtcdCount {
	c := v.Count()
	if c.Voters < 2 {
		c.Healthy++
	}
	c.Voters++
	return c
}

func among(id MemberID, ids []MemberID) bool {
	for _, i := range ids {
		if i == id {
			return true
		}
	}
	return false
}
