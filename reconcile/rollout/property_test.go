// SPDX-License-Identifier: Apache-2.0

package rollout_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/theseus-gitops/theseus/reconcile/live"
	"github.com/theseus-gitops/theseus/reconcile/rollout"
	"github.com/theseus-gitops/theseus/reconcile/rollout/rollouttest"
)

// The spec changes at any moment, between tags that work, that fail and that ran before; processes die at any moment;
// somebody adds keys to the ConfigMap. At every step the pods in service read a Corefile for their version, the
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
			if err = w.Do(*rollout.GiveUp(want, w.Observe(), *failure, w.Now)); err != nil {
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

// checkRest: as wanted, or stalled because going back to 1.6.7 has no record any more.
func checkRest(rt *rapid.T, w *rollouttest.World, want rollout.Want) {
	if w.Run.Open() && w.Image == w.Run.To {
		rt.Fatalf("at rest with an unverified image\n%s", strings.Join(w.Story, "\n"))
	}
	if strings.HasSuffix(w.Image, ":"+want.DNS.Tag) {
		if w.KubeadmDNS.ImageTag != want.DNS.Tag {
			rt.Fatalf("kubeadm-config says %q\n%s", w.KubeadmDNS.ImageTag, strings.Join(w.Story, "\n"))
		}
		return
	}
	last := w.Story[len(w.Story)-1]
	if want.DNS.Tag != "1.6.7" || !strings.Contains(last, "CorefileRefused") {
		rt.Fatalf("at rest with %s\n%s", w.Image, strings.Join(w.Story, "\n"))
	}
}
