// SPDX-License-Identifier: Apache-2.0

package module

import "github.com/hashicorp/hcl/v2"

// checkEndpoint judges a machine's own resource that serving comes to: it belongs to the endpoint, and must be listed.
// What takes user data is a machine, and judged as such.
func (in *instance) checkEndpoint(r *resource, p place, uses []use) {
	address := in.path + r.address
	if !in.checker.sharedRead || in.checker.shared[address] {
		return
	}
	if how, at := in.follows(r, p, uses); how != "" {
		in.checker.report(EndpointNotListed, at, "%s %s, and is not in shared_addresses", address, how)
	}
}

// follows says how a machine's own resource follows serving, and where; nothing when it does not.
func (in *instance) follows(r *resource, p place, uses []use) (how string, at hcl.Range) {
	if in.filtered(p) {
		return "comes and goes with serving", r.block.DefRange()
	}
	for _, u := range uses {
		ofOthers := u.value.has(siblings) // reported as that
		if u.value.has(serving) && !ofOthers && !u.provisioner && !r.ignores(u.argument) {
			return "changes with serving (" + u.argument + ")", u.at
		}
	}
	return "", hcl.Range{}
}

// filtered tells whether what stands there exists only while its machine serves. What is repeated by something else than
// machine names comes and goes with other machines, and is reported as that.
func (in *instance) filtered(p place) bool {
	if p.repeat.has(serving) && (p.repeat.kind == keyed || !p.repeat.has(siblings)) {
		return true
	}
	return in.parent != nil && in.parent.filtered(in.parent.place(in.call))
}

// byName is one of elem for each machine of a place.
func (in *instance) byName(p place, elem value) value {
	v := value{kind: keyed, elem: &elem}.with(siblings, cause{})
	if in.filtered(p) {
		v = v.with(serving, cause{})
	}
	return v
}
