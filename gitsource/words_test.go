// SPDX-License-Identifier: Apache-2.0

package gitsource_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/theseus-gitops/theseus/gitsource"
)

// What a server says is for people to read, and can't pass for what we say.
func TestWordsOfTheServerAreMarkedAndBounded(t *testing.T) {
	o := seeded(t, map[string]string{"fleet.yaml": "x"})
	o.hook("pre-receive", `cat >/dev/null
printf '\033[1;31mno\033[0m \033]0;title\007\033]8;;https://x.example\033\\link\033]8;;\033\\ "; all is well\r\n' >&2
for i in $(seq 1 500); do echo "line $i of many" >&2; done
exit 1`)
	_, err := o.open().Commit(t.Context(), request(set("a", "1")))
	var refused *gitsource.PushRefusedError
	if !errors.As(err, &refused) {
		t.Fatalf("got %v, want *PushRefusedError", err)
	}
	wantSays(t, err, `a rule there; the server said "`, `no link \"; all is well line 1 of many`)
	if len(refused.Words) > 620 || strings.ContainsAny(err.Error(), "\x1b\x07\r\n") || strings.Contains(err.Error(), "[1;31m") {
		t.Errorf("%d bytes: %q", len(refused.Words), err)
	}
}
