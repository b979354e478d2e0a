// SPDX-License-Identifier: Apache-2.0

package rollout_test

import (
	"strings"
	"testing"
	"time"

	"github.com/theseus-gitops/theseus/reconcile/live"
	"github.com/theseus-gitops/theseus/reconcile/rollout"
	"github.com/theseus-gitops/theseus/reconcile/rollout/rollouttest"
)

const edit = "\ncorp.example:53 {\n    hosts\n}\n"

// migratedAndEdited is a verified migration, and a person's edit of the migrated Corefile.
func migratedAndEdited(t *testing.T) *rollouttest.World {
	t.Helper()
	w := rollouttest.New(oldImage, rollouttest.OldCorefile())
	play(t, w, wantDNS("v1.14.2"), nil)
	w.Data[live.CorefileKey] += edit
	return w
}

func wantStalled(t *testing.T, out outcome, reason string) {
	t.Helper()
	if d, ok := out.decision.(rollout.Stalled); !ok || d.Failure.Reason != reason || d.Remembered {
		t.Fatalf("ended with %#v, want a stall by %s", out.decision, reason)
	}
}

func wantDone(t *testing.T, w *rollouttest.World, out outcome) {
	t.Helper()
	if _, ok := out.decision.(rollout.Done); !ok {
		t.Fatalf("ended with %#v\n%s", out.decision, strings.Join(w.Story, "\n"))
	}
}

// Going back over a migration would put the old text over a person's: the old image serves with the backup, and a person decides.
func TestEditedCorefileIsNotLostOnTheWayBack(t *testing.T) {
	t.Parallel()
	for name, decide := range map[string]func(w *rollouttest.World) (want string){
		"the old text": func(w *rollouttest.World) string {
			w.Data[live.CorefileKey] = w.Data[live.CorefileBackupKey]
			return rollouttest.OldCorefile()
		},
		"a text of their own": func(w *rollouttest.World) string {
			own := rollouttest.OldCorefile() + edit
			w.Data[live.CorefileKey], w.Data[live.CorefileBackupKey] = own, own
			return own
		},
	} {
		w := migratedAndEdited(t)
		first := rollout.Next(wantDNS("1.6.7"), w.Observe(), w.Now)
		if do, ok := first.(rollout.Do); !ok || !strings.Contains(strings.Join(do.Notices, ""), "was edited since") {
			t.Errorf("%s: the plan does not tell of the edit: %#v", name, first)
		}
		wantStalled(t, play(t, w, wantDNS("1.6.7"), nil), "CorefileEdited")
		if w.Image != oldImage || w.Mounted() != rollouttest.OldCorefile() || !strings.HasSuffix(w.Data[live.CorefileKey], edit) {
			t.Fatalf("%s: image %s reads %s, Corefile %q", name, w.Image, textName(w.Mounted()), w.Data[live.CorefileKey])
		}
		want := decide(w)
		wantDone(t, w, play(t, w, wantDNS("1.6.7"), nil))
		if w.Mounted() != want || w.Items[0].Key != live.CorefileKey {
			t.Errorf("%s: in the end the pods read %q from %v", name, w.Mounted(), w.Items)
		}
	}
}

// A comment in an unmigrated Corefile is no reason to refuse an urgent way back.
func TestEditedCorefileStaysOnAnUnmigratedWayBack(t *testing.T) {
	t.Parallel()
	w := rollouttest.New(repo+"v1.14.2", rollouttest.DefaultCorefile)
	play(t, w, wantDNS("v1.14.6"), nil)
	w.Data[live.CorefileKey] += "# a comment\n"
	wantDone(t, w, play(t, w, wantDNS("v1.14.2"), nil))
	if w.Image != repo+"v1.14.2" || !strings.HasSuffix(w.Data[live.CorefileKey], "# a comment\n") {
		t.Errorf("image %s, Corefile %q", w.Image, w.Data[live.CorefileKey])
	}
}

// Somebody sets the image back by hand in the middle of a migrated upgrade: the old pods must not stay on the new text.
func TestImageSetBackByHand(t *testing.T) {
	t.Parallel()
	for name, then := range map[string]rollout.Want{"reverted": wantDNS("1.6.7"), "no tag": {Revision: "no tag"}} {
		w := rollouttest.New(oldImage, rollouttest.OldCorefile())
		steps := 0
		play(t, w, wantDNS("v1.14.6"), func(step int) bool { steps = step; return strings.HasSuffix(w.Image, "v1.14.6") })
		if steps == 0 || w.Mounted() == rollouttest.OldCorefile() {
			t.Fatalf("%s: not in the middle: %d steps, image %s", name, steps, w.Image)
		}
		w.Image = oldImage
		w.Pass(time.Minute)
		wantDone(t, w, play(t, w, then, nil))
		if w.Image != oldImage || w.Mounted() != rollouttest.OldCorefile() || w.Run.Open() {
			t.Errorf("%s: image %s reads %s, run %+v\n%s", name, w.Image, textName(w.Mounted()), w.Run, strings.Join(w.Story, "\n"))
		}
	}
}

// A paused Deployment brings no pods, on the way back neither: nothing is changed in it.
func TestPausedOnTheWayBack(t *testing.T) {
	t.Parallel()
	w := rollouttest.New(oldImage, rollouttest.OldCorefile())
	play(t, w, wantDNS("v1.14.6"), func(int) bool { return strings.HasSuffix(w.Image, "v1.14.6") })
	w.Paused = true
	out := play(t, w, rollout.Want{Revision: "no tag"}, nil)
	wantStalled(t, out, "DNSDeploymentPaused")
	if len(out.steps) > 0 {
		t.Errorf("did %v to a paused Deployment", out.steps)
	}
	w.Paused = false
	wantDone(t, w, play(t, w, rollout.Want{Revision: "no tag"}, nil))
}
