// SPDX-License-Identifier: Apache-2.0

package gitsource_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/theseus-gitops/theseus/gitsource"
)

// A hook that hangs is a matter of the server: the message says so, and the next run may find it mended.
func TestPushWithoutAnswerNamesTheServersHooks(t *testing.T) {
	for name, overHTTP := range map[string]bool{"local": false, "https": true} {
		t.Run(name, func(t *testing.T) {
			o := seeded(t, map[string]string{"fleet.yaml": "x"})
			o.hook("pre-receive", "cat >/dev/null; exec sleep 2 2>&1 >/dev/null")
			options := o.options()
			if overHTTP {
				options = serveHTTP(t, o, true, anyone).options(t, o, nil)
			}
			options.Timeout = time.Second
			result, err := mustOpen(t, options).Commit(t.Context(), request(set("a", "1")))
			var e *gitsource.Error
			if !errors.As(err, &e) || e.Kind != nil {
				t.Fatalf("got %v, want a transient *Error", err)
			}
			wantSays(t, err, "the push to branch "+statusBranch+" got no answer within 1s", "hooks", "the next run tries again")
			wantEqual(t, "attempts", result.Attempts, 1)
		})
	}
}

func TestPushThatOutlastsTheRun(t *testing.T) {
	o := seeded(t, map[string]string{"fleet.yaml": "x"})
	o.hook("pre-receive", "cat >/dev/null; echo scanning for viruses >&2; exec sleep 2 2>&1 >/dev/null")
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	_, err := o.open().Commit(ctx, request(set("a", "1")))
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v, want the deadline", err)
	}
	wantSays(t, err, "got no answer within the time that was left", "hooks", `until then the server said "scanning for viruses"`)
}

// The commit is there although nobody said so: a hook after the fact is no reason to hold anything up.
func TestHookThatHangsAfterwardsIsNoFailure(t *testing.T) {
	o := seeded(t, map[string]string{"fleet.yaml": "x"})
	o.hook("post-receive", "cat >/dev/null; exec sleep 2 2>&1 >/dev/null")
	options := serveHTTP(t, o, true, anyone).options(t, o, nil)
	options.Timeout = time.Second
	result := mustCommit(t, mustOpen(t, options), request(set("a", "1")))
	wantEqual(t, "head", o.git("rev-parse", statusBranch), string(result.Revision))
}
