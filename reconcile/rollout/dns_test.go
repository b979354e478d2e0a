// SPDX-License-Identifier: Apache-2.0

package rollout_test

import (
	"errors"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/theseus-gitops/theseus/reconcile/live"
	"github.com/theseus-gitops/theseus/reconcile/rollout"
	"github.com/theseus-gitops/theseus/reconcile/rollout/rollouttest"
)

var update = flag.Bool("update", false, "rewrite the golden files")

const (
	repo     = "registry.k8s.io/coredns/coredns:"
	oldImage = "registry.k8s.io/coredns:1.6.7"
)

func wantDNS(tag string) rollout.Want {
	return rollout.Want{Revision: "rev-" + tag, DNS: &rollout.WantDNS{Tag: tag}}
}

// outcome is how a played world ended.
type outcome struct {
	decision rollout.Decision
	steps    []string
}

// play runs decide-do-observe on the world until it ends, at most so many rounds, checking at every step that the
// pods in service never read a Corefile that is not for their version.
func play(t *testing.T, w *rollouttest.World, want rollout.Want, kill func(step int) bool) outcome {
	t.Helper()
	var out outcome
	for range 200 {
		switch d := rollout.Next(want, w.Observe(), w.Now).(type) {
		case rollout.Do:
			if kill != nil && kill(len(out.steps)) {
				return out
			}
			out.steps = append(out.steps, d.Step.Name())
			w.Tell("%-22s %-26s %s", d.Step.Name(), d.Step.Subject, d.Step.Why)
			err := w.Do(d.Step)
			var failure *rollout.Failure
			switch {
			case errors.As(err, &failure):
				w.Tell("  failed: %s", failure.Message)
				record := rollout.GiveUp(want, w.Observe(), d.Step, *failure, w.Now)
				if record == nil {
					t.Fatalf("no way to remember %v\n%s", failure, strings.Join(w.Story, "\n"))
				}
				_ = w.Do(*record)
			case err != nil:
				t.Fatalf("%s: %v\n%s", d.Step.Name(), err, strings.Join(w.Story, "\n"))
			}
			checkMounted(t, w)
			w.Pass(time.Second)
		case rollout.Wait:
			w.Tell("%-22s %s", "  wait", d.Why)
			w.Pass(30 * time.Second)
		case rollout.Stalled:
			w.Tell("%-22s %s: %s", "stalled", d.Failure.Reason, d.Failure.Message)
			out.decision = d
			return out
		case rollout.Done:
			w.Tell("%-22s %s", "done", d.Why)
			out.decision = d
			return out
		}
	}
	t.Fatalf("no end:\n%s", strings.Join(w.Story, "\n"))
	return out
}

// checkMounted is the invariant of the order: a template never shows its pods a Corefile made for another version.
func checkMounted(t *testing.T, w *rollouttest.World) {
	t.Helper()
	old := strings.HasSuffix(w.Image, ":1.6.7")
	if migrated := strings.Contains(w.Mounted(), "max_concurrent"); old && migrated && w.Run.Open() {
		t.Fatalf("pods of %s would read the migrated Corefile\n%s", w.Image, strings.Join(w.Story, "\n"))
	}
	if w.Mounted() == "" {
		t.Fatalf("pods of %s would read no Corefile\n%s", w.Image, strings.Join(w.Story, "\n"))
	}
}

func TestRollStories(t *testing.T) {
	t.Parallel()
	cases := []struct {
		name  string
		world func() *rollouttest.World
		wants []rollout.Want
	}{
		{"image-only", func() *rollouttest.World { return rollouttest.New(repo+"v1.14.2", rollouttest.DefaultCorefile) }, []rollout.Want{wantDNS("v1.14.6")}},
		{"migrated", func() *rollouttest.World { return rollouttest.New(oldImage, rollouttest.OldCorefile()) }, []rollout.Want{wantDNS("v1.14.6")}},
		{"role-and-kubeadm-config", func() *rollouttest.World {
			w := rollouttest.New(repo+"v1.8.0", rollouttest.DefaultCorefile)
			w.Role = nil
			return w
		}, []rollout.Want{wantDNS("v1.14.6")}},
		{"volume-without-items", func() *rollouttest.World {
			w := rollouttest.New(oldImage, rollouttest.OldCorefile())
			w.Items = nil
			w.Data["zone.db"] = "zone"
			return w
		}, []rollout.Want{wantDNS("v1.14.6")}},
		{"canary-fails", func() *rollouttest.World {
			w := rollouttest.New(repo+"v1.14.2", rollouttest.DefaultCorefile)
			w.BadCanary[repo+"v1.14.6"] = true
			return w
		}, []rollout.Want{wantDNS("v1.14.6"), wantDNS("v1.14.6")}},
		{"pods-never-ready", func() *rollouttest.World {
			w := rollouttest.New(repo+"v1.14.2", rollouttest.DefaultCorefile)
			w.Broken[repo+"v1.14.6"] = true
			return w
		}, []rollout.Want{wantDNS("v1.14.6"), wantDNS("v1.14.6")}},
		{"pods-never-ready-after-migration", func() *rollouttest.World {
			w := rollouttest.New(oldImage, rollouttest.OldCorefile())
			w.Broken[repo+"v1.14.6"] = true
			return w
		}, []rollout.Want{wantDNS("v1.14.6"), wantDNS("v1.14.6")}},
		{"pods-answer-wrongly", func() *rollouttest.World {
			w := rollouttest.New(repo+"v1.14.2", rollouttest.DefaultCorefile)
			w.BadAnswer[repo+"v1.14.6"] = true
			return w
		}, []rollout.Want{wantDNS("v1.14.6")}},
		{"there-and-back-again", func() *rollouttest.World { return rollouttest.New(oldImage, rollouttest.OldCorefile()) }, []rollout.Want{wantDNS("v1.14.6"), wantDNS("1.6.7"), wantDNS("v1.14.6")}},
		{"back-after-a-failed-step", func() *rollouttest.World {
			w := rollouttest.New(repo+"v1.14.2", rollouttest.DefaultCorefile)
			w.Broken[repo+"v1.14.7"] = true
			return w
		}, []rollout.Want{wantDNS("v1.14.6"), wantDNS("v1.14.7"), wantDNS("v1.14.2")}},
		{"two-steps-back", func() *rollouttest.World { return rollouttest.New(oldImage, rollouttest.OldCorefile()) }, []rollout.Want{wantDNS("v1.14.2"), wantDNS("v1.14.6"), wantDNS("1.6.7")}},
		{"back-without-a-record", func() *rollouttest.World { return rollouttest.New(repo+"v1.14.6", rollouttest.DefaultCorefile) }, []rollout.Want{wantDNS("v1.14.2")}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			w := c.world()
			for i, want := range c.wants {
				w.Tell("# wanted: %s (pass %d)", want.DNS.Tag, i+1)
				play(t, w, want, nil)
			}
			w.Tell("# in the end: image %s, mounted Corefile %s, volume items %d, kubeadm-config %+v", w.Image, textName(w.Mounted()), len(w.Items), w.KubeadmDNS)
			golden(t, filepath.Join("testdata", "stories", c.name+".txt"), strings.Join(w.Story, "\n")+"\n")
		})
	}
}

func textName(text string) string {
	switch text {
	case rollouttest.OldCorefile():
		return "old"
	case rollouttest.DefaultCorefile:
		return "default"
	}
	return "migrated"
}

func golden(t *testing.T, path, got string) {
	t.Helper()
	if *update {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatalf("%v: run go test -update ./reconcile/rollout and read the story before you commit it", err)
	}
	if string(want) != got {
		t.Errorf("the story of %s changed (go test -update rewrites it)\ngot:\n%s\nwant:\n%s", path, got, want)
	}
}

// The plan is the decision function played forward; what a well-behaved world then does must be the plan.
func TestPlanIsWhatHappens(t *testing.T) {
	t.Parallel()
	for name, w := range map[string]*rollouttest.World{"image-only": rollouttest.New(repo+"v1.14.2", rollouttest.DefaultCorefile), "migrated": rollouttest.New(oldImage, rollouttest.OldCorefile())} {
		plan := rollout.Play(wantDNS("v1.14.6"), w.Observe(), w.Now)
		var planned []string
		for _, s := range plan.Steps {
			planned = append(planned, s.Name())
		}
		happened := play(t, w, wantDNS("v1.14.6"), nil)
		if got, want := strings.Join(happened.steps, " "), strings.Join(planned, " "); got != want {
			t.Errorf("%s: happened %s, planned %s", name, got, want)
		}
		if _, done := plan.End.(rollout.Done); !done {
			t.Errorf("%s: the plan ends with %#v, want Done", name, plan.End)
		}
	}
}

// Killed before any step, and run again by a process that remembers nothing: the end is the same.
func TestKilledAnywhere(t *testing.T) {
	t.Parallel()
	worlds := map[string]func() *rollouttest.World{
		"image-only": func() *rollouttest.World { return rollouttest.New(repo+"v1.14.2", rollouttest.DefaultCorefile) },
		"migrated":   func() *rollouttest.World { return rollouttest.New(oldImage, rollouttest.OldCorefile()) },
		"restored": func() *rollouttest.World {
			w := rollouttest.New(oldImage, rollouttest.OldCorefile())
			w.Broken[repo+"v1.14.6"] = true
			return w
		},
	}
	for name, make := range worlds {
		whole := make()
		end := play(t, whole, wantDNS("v1.14.6"), nil)
		for at := range end.steps {
			w := make()
			play(t, w, wantDNS("v1.14.6"), func(step int) bool { return step == at })
			w.Pass(time.Minute)
			play(t, w, wantDNS("v1.14.6"), nil)
			if w.Image != whole.Image || w.Mounted() != whole.Mounted() || w.Data[live.CorefileKey] != whole.Data[live.CorefileKey] || w.KubeadmDNS != whole.KubeadmDNS {
				t.Errorf("%s killed before step %d (%s): image %s Corefile %s, want %s %s\n%s", name, at, end.steps[at], w.Image, textName(w.Mounted()), whole.Image, textName(whole.Mounted()), strings.Join(w.Story, "\n"))
			}
			if w.Data[live.CorefileBackupKey] != whole.Data[live.CorefileBackupKey] {
				t.Errorf("%s killed before step %d: the backup is not the original", name, at)
			}
		}
	}
}

// Killed at any step, and then the spec goes back or names no tag any more: nothing of the run stays.
func TestWithdrawnAnywhere(t *testing.T) {
	t.Parallel()
	make := func() *rollouttest.World { return rollouttest.New(oldImage, rollouttest.OldCorefile()) }
	end := play(t, make(), wantDNS("v1.14.6"), nil)
	for name, then := range map[string]rollout.Want{"reverted": wantDNS("1.6.7"), "no tag": {Revision: "no tag"}} {
		for at := range end.steps {
			w := make()
			play(t, w, wantDNS("v1.14.6"), func(step int) bool { return step == at })
			w.Canary = at == 0 // killed while the canary ran
			w.Pass(time.Minute)
			out := play(t, w, then, nil)
			if _, done := out.decision.(rollout.Done); !done || w.Canary || w.Image != oldImage || w.Mounted() != rollouttest.OldCorefile() || len(w.Items) != 1 || w.Items[0].Key != live.CorefileKey {
				t.Errorf("%s after a kill before %s: %#v, canary left %v, image %s\n%s", name, end.steps[at], out.decision, w.Canary, w.Image, strings.Join(w.Story, "\n"))
			}
			if then.DNS == nil && w.KubeadmDNS != (live.KubeadmDNS{}) {
				t.Errorf("%s after a kill before %s: kubeadm-config says %+v", name, end.steps[at], w.KubeadmDNS)
			}
		}
	}
}
