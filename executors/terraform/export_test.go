// SPDX-License-Identifier: Apache-2.0

package terraform

import "github.com/theseus-gitops/theseus/reconcile/logbook"

// ParseLock is parseLock.
func ParseLock(detail string) (*LockedError, bool) { return parseLock(detail) }

// GoneFrom is goneFrom.
func GoneFrom(h, own logbook.LockHolder) bool { return goneFrom(h, own) }

// Keys is keys.
func Keys(address string) []string { return keys(address) }

// Bare is bare.
func Bare(address string) string { return bare(address) }

// Mentions is mentions.
func Mentions(text, identity string) bool { return mentions(text, identity) }

// ParseState is what State does with the output of `state pull`.
func ParseState(data []byte, cluster string) (*State, error) {
	raw, err := parseRaw(data)
	if err != nil {
		return nil, err
	}
	return raw.state(cluster)
}

// ScrubMarked conceals in text what mask marks of value.
func ScrubMarked(value, mask any, text string) string {
	var s secrets
	s.addMarked(value, mask)
	return s.scrub(text)
}
