// SPDX-License-Identifier: Apache-2.0

package etcd

import "github.com/theseus-gitops/theseus/reconcile/live"

// What is seen and acted on are values of package live, where the rules about quorum are too.
type (
	// ID is a member's id.
	ID = live.MemberID
	// View is what was seen of an etcd cluster.
	View = live.Etcd
	// Member is one member of the list.
	Member = live.Member
	// Alarm is a state in which etcd refuses service.
	Alarm = live.Alarm
	// Status is a member's own answer.
	Status = live.MemberStatus
	// Stranger is an etcd on a node of ours that is no member.
	Stranger = live.EtcdStranger
	// Ref is a member as it was when an act on it was decided.
	Ref = live.MemberRef
)
