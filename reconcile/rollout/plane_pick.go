// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"cmp"
	"slices"

	"github.com/theseus-gitops/theseus/reconcile/live"
)

// pick is the machine that goes next: an outdated one if there is any; of those one in a domain that is no longer wanted,
// then one in the fullest domain, then the oldest. The one that leads etcd goes last, so that leadership moves once and to
// a machine that stays (elections cost seconds of writes: dis-bzh/OpenAether-infra#42).
func (p *plane) pick() live.MergedMachine {
	outdated := p.outdated()
	candidates := p.byAge()
	if len(outdated) > 0 {
		candidates = slices.DeleteFunc(candidates, func(m live.MergedMachine) bool { return outdated[m.Name] == "" })
	}
	count := p.perDomain(func(live.MergedMachine) bool { return true })
	yes := func(b bool) int {
		if b {
			return 0
		}
		return 1
	}
	slices.SortStableFunc(candidates, func(a, b live.MergedMachine) int {
		return cmp.Or(
			cmp.Compare(yes(!p.leads(a)), yes(!p.leads(b))),
			cmp.Compare(yes(!p.want.serves(a.FailureDomain)), yes(!p.want.serves(b.FailureDomain))),
			-cmp.Compare(count[a.FailureDomain], count[b.FailureDomain]),
		)
	})
	return candidates[0]
}

// leads reports whether the machine's member is etcd's leader.
func (p *plane) leads(m live.MergedMachine) bool {
	return p.have.Etcd != nil && m.Member != nil && p.have.Etcd.Leader() == m.Member.ID
}

// domain is where the next machine goes: where the one is that goes for it, or else where the fewest machines are.
func (p *plane) domain() string {
	if len(p.all.Machines) >= p.want.Replicas {
		if d := p.pick().FailureDomain; p.want.serves(d) {
			return d
		}
	}
	if len(p.want.FailureDomains) == 0 {
		return ""
	}
	outdated := p.outdated()
	fresh := p.perDomain(func(m live.MergedMachine) bool { return outdated[m.Name] == "" })
	count := p.perDomain(func(live.MergedMachine) bool { return true })
	return slices.MinFunc(p.want.FailureDomains, func(a, b string) int {
		return cmp.Or(cmp.Compare(fresh[a], fresh[b]), cmp.Compare(count[a], count[b]))
	})
}

func (p *plane) perDomain(counts func(live.MergedMachine) bool) map[string]int {
	out := map[string]int{}
	for _, m := range p.all.Machines {
		if counts(m) {
			out[m.FailureDomain]++
		}
	}
	return out
}
