// SPDX-License-Identifier: Apache-2.0

package corefile

import "github.com/theseus-gitops/theseus/reconcile/skew"

// Lexes says whether a text has the grammar of a Corefile.
func Lexes(text string) error {
	_, err := parse(text)
	return err
}

// Stable says whether the migration library prints a text as it reads it.
func Stable(text string) (bool, error) { return stable(text) }

// Verify checks a migration that a test made up, at one version step and with these notices.
func Verify(from, to skew.Version, notices []Notice, before, after string) ([]Notice, error) {
	in, err := parse(before)
	if err != nil {
		return nil, err
	}
	out, err := parse(after)
	if err != nil {
		return nil, err
	}
	v := verifier{hop: hop{from: from, to: to}, notices: notices, before: newSource(in, nil), after: newSource(out, nil)}
	return v.verify(in, out)
}
