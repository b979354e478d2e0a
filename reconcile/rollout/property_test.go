// SPDX-License-Identifier: Apache-2.0

package rollout_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/theseus-gitops/theseus/reconcile/live"
	"github.com/theseus-gitops/theseus/reconcile/rollout"
	"github.com/theseus-gitops/theseus/reconcile/rollout/rollouttest"
)

// The spec changes at any moment, between tags that work, that fail and that ran before, and no tag; processes die at
// any moment, also while a canary runs; somebody adds keys to the ConfigMap. At every step the pods in service read a Corefile for their version, the
// original is never lost, and once the spec stays, the cluster comes to rest as that spec says.
func TestAnyHistoryComesToRest(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		w := rollouttest.New(oldImage, rollouttest.OldCorefile())
		if rapid.Bool().Draw(rt, "volume without items") {
			w.Items = nil
		}
		w.Broken[repo+"v1.14.7"], w.BadCanary[repo+"v1.14.8"], w.BadAnswer[repo+"v1.14.1"] = true, true, true
		tags := []string{"1.6.7", "v1.14.2", "v1.14.6", "v1.14.7", "v1.14.8", "v1.14.1"}
		want := wantDNS(rapid.SampledFrom(tags).Draw(rt, "first"))
		for range rapid.IntRange(0, 60).Draw(rt, "rounds") {
			switch rapid.IntRange(0, 9).Draw(rt, "what happens") {
			case 0:
				want = wantDNS(rapid.SampledFrom(tags).Draw(rt, "tag"))
				w.Tell("# the spec now wants %s", want.DNS.Tag)
			case 1:
				w.Data["zone.db"] = "zone"
			case 2:
				w.Canary = true
				w.Tell("# killed while a canary ran")
			case 3:
				want = rollout.Want{Revision: "no tag"}
				w.Tell("# the spec now names no tag")
			default:
				oneRound(rt, w, want)
			}
		}
		want = wantDNS(rapid.SampledFrom([]string{"1.6.7", "v1.14.6"}).Draw(rt, "last"))
		want.Revision = "last"
		w.Tell("# at last the spec wants %s", want.DNS.Tag)
		for range 200 {
			if oneRound(rt, w, want) {
				checkRest(rt, w, want)
				return
			}
		}
		rt.Fatalf("no rest:\n%s", strings.Join(w.Story, "\n"))
	})
}

// oneRound decides once and does it; it reports whether there was nothing to do.
func oneRound(rt *rapid.T, w *rollouttest.World, want rollout.Want) bool {
	switch d := rollout.Next(want, w.Observe(), w.Now).(type) {
	case rollout.Do:
		w.Tell("%s %s: %s", d.Step.Name(), d.Step.Subject, d.Step.Why)
		err := w.Do(d.Step)
		var failure *rollout.Failure
		if errors.As(err, &failure) {
			if err = w.Do(*rollout.GiveUp(want, w.Observe(), d.Step, *failure, w.Now)); err != nil {
				rt.Fatal(err)
			}
		} else if err != nil {
			rt.Fatalf("%v\n%s", err, strings.Join(w.Story, "\n"))
		}
		invariants(rt, w)
		w.Pass(time.Second)
	case rollout.Wait:
		w.Pass(30 * time.Second)
	case rollout.Stalled:
		w.Tell("stalled: %s: %s", d.Failure.Reason, d.Failure.Message)
		return true
	case rollout.Done:
		return true
	}
	return false
}

func invariants(rt *rapid.T, w *rollouttest.World) {
	old := strings.HasSuffix(w.Image, ":1.6.7")
	switch {
	case w.Mounted() == "":
		rt.Fatalf("the pods would read no Corefile\n%s", strings.Join(w.Story, "\n"))
	case old && strings.Contains(w.Mounted(), "max_concurrent"):
		rt.Fatalf("pods of %s would read the migrated Corefile\n%s", w.Image, strings.Join(w.Story, "\n"))
	case w.Data[live.CorefileKey] != rollouttest.OldCorefile() && w.Data[live.CorefileBackupKey] != rollouttest.OldCorefile():
		rt.Fatalf("the original Corefile is lost\n%s", strings.Join(w.Story, "\n"))
	}
}

// checkRest: as wanted, or stalled because nothing that ran before and is remembered has that tag.
func checkRest(rt *rapid.T, w *rollouttest.World, want rollout.Want) {
	story := strings.Join(w.Story, "\n")
	if w.Canary {
		rt.Fatalf("at rest with a canary left\n%s", story)
	}
	if w.Run.Open() && w.Image == w.Run.To {
		rt.Fatalf("at rest with an unverified image\n%s", story)
	}
	if strings.HasSuffix(w.Image, ":"+want.DNS.Tag) {
		if w.KubeadmDNS.ImageTag != want.DNS.Tag {
			rt.Fatalf("kubeadm-config says %q\n%s", w.KubeadmDNS.ImageTag, story)
		}
		return
	}
	if last := w.Story[len(w.Story)-1]; want.DNS.Tag != "1.6.7" || !strings.Contains(last, "DNSDowngrade") {
		rt.Fatalf("at rest with %s\n%s", w.Image, story)
	}
	if before := wayBack(w.Verified); slices.Contains(before, oldImage) {
		rt.Fatalf("%s ran and answered before %s, and is not reached any more: %q\n%s", oldImage, w.Image, before, story)
	}
}

// wayBack is what a person remembers of the images that answered: each step up is remembered, each step back forgets
// what was above it; a few of them are enough.
func wayBack(verified []string) []string {
	var way []string
	for _, image := range verified {
		if i := slices.Index(way, image); i >= 0 {
			way = way[:i]
		}
		way = append(way, image)
	}
	way = way[:len(way)-1]
	return way[max(0, len(way)-3):]
}
