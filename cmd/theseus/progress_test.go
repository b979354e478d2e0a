// SPDX-License-Identifier: Apache-2.0

package main

import (
	"testing"
	"time"
)

func TestTookIsNeverNothing(t *testing.T) {
	t.Parallel()
	for d, want := range map[time.Duration]string{
		40 * time.Millisecond: "40ms", 99400 * time.Microsecond: "99ms", 1234 * time.Millisecond: "1.2s", 3 * time.Minute: "3m0s",
	} {
		if got := took(d); got != want {
			t.Errorf("%v is shown as %s, want %s", d, got, want)
		}
	}
}
