// SPDX-License-Identifier: Apache-2.0

package corefile

// Lexes says whether a text has the grammar of a Corefile.
func Lexes(text string) error {
	_, err := parse(text)
	return err
}
