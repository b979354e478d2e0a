// SPDX-License-Identifier: Apache-2.0

package rollout_test

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/theseus-gitops/theseus/reconcile/rollout"
	"github.com/theseus-gitops/theseus/reconcile/rollout/rollouttest"
)

// Whole rolls as they are told, without faults and with every one that the decision sees.
func TestStoriesOfAPlane(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name     string
		machines int
		passes   int
		change   func(w *rollout.WantPlane)
		// meet sets the world up; between is called before each decision.
		meet    func(d *driver)
		between func(d *driver)
	}{
		{name: "one-version", machines: 1, passes: 1, change: newVersion},
		{name: "three-version", machines: 3, passes: 1, change: newVersion},
		{name: "five-image", machines: 5, passes: 1, change: newImage},
		{name: "one-to-three", machines: 1, passes: 1, change: func(w *rollout.WantPlane) { w.Replicas = 3 }},
		{name: "five-to-one", machines: 5, passes: 1, change: func(w *rollout.WantPlane) { w.Replicas, w.Snapshot = 1, true }},
		{name: "health-checked", machines: 3, passes: 1, change: newImage, meet: func(d *driver) { d.w.ActsOnServing = false }},
		{name: "never-boots", machines: 1, passes: 2, change: newImage, meet: func(d *driver) { d.w.Habit.Boot = rollouttest.Never }},
		{name: "first-machine-never-boots", machines: 3, passes: 1, change: newImage, meet: func(d *driver) {
			d.w.Habits["seed-cp-4"] = rollouttest.Habit{Boot: rollouttest.Never}
		}},
		{name: "joins-late", machines: 3, passes: 1, change: newImage, meet: func(d *driver) {
			d.w.Habits["seed-cp-4"] = rollouttest.Habit{Boot: 12 * time.Minute}
		}},
		{name: "joins-too-late", machines: 1, passes: 1, change: newImage, meet: func(d *driver) {
			d.w.Habits["seed-cp-2"] = rollouttest.Habit{Boot: 15*time.Minute + 5*time.Second}
		}},
		{name: "learner-for-ever", machines: 1, passes: 1, change: newImage, meet: func(d *driver) {
			d.w.Habits["seed-cp-2"] = rollouttest.Habit{Boot: 30 * time.Second, Learner: noon.Add(rollouttest.Never)}
		}},
		{name: "promoted-while-taken-back", machines: 1, passes: 1, change: newImage, meet: func(d *driver) {
			d.w.Habits["seed-cp-2"] = rollouttest.Habit{Boot: 30 * time.Second, Learner: noon.Add(15*time.Minute + 6*time.Second)}
		}},
		{name: "never-healthy", machines: 3, passes: 2, change: newImage, meet: func(d *driver) { d.w.Habit.Sick = true }},
		{name: "budget-blocks", machines: 3, passes: 3, change: newImage, meet: func(d *driver) {
			d.w.Blocked["seed-cp-2"] = noon.Add(20 * time.Minute)
		}},
		{name: "reverted-while-joining", machines: 1, passes: 1, change: newVersion, between: func(d *driver) {
			if d.w.Book.Pending != nil && d.want.Revision == "rev-1" && d.w.Now.After(noon.Add(25*time.Second)) {
				d.revert(1)
			}
		}},
		{name: "reverted-after-the-first-of-three", machines: 3, passes: 1, change: newVersion, between: func(d *driver) {
			if d.w.Book.Leaving != nil && d.w.Book.Leaving.Name == "seed-cp-3" && d.want.Revision == "rev-1" {
				d.revert(3)
			}
		}},
		{name: "killed-and-killed-again", machines: 3, passes: 4, change: newImage, meet: func(d *driver) {
			kills := map[int]bool{9: true, 18: true, 33: true}
			d.at = func(point int, before bool) error {
				if !before && kills[point] {
					return errKilled
				}
				return nil
			}
		}},
		{name: "two-minors-at-once", machines: 3, passes: 1, change: func(w *rollout.WantPlane) { w.Kubernetes = version("v1.38.0") }},
		{name: "etcd-too-old", machines: 3, passes: 1, change: func(w *rollout.WantPlane) {
			w.Kubernetes, w.EtcdTag = version("v1.37.2"), "3.8.0-0"
		}},
		{name: "surge-0", machines: 3, passes: 1, change: func(w *rollout.WantPlane) { w.Image, w.Surge, w.Unavailable = "debian-13", 0, 1 }},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			d := rolls(t, c.machines, c.change)
			d.between = c.between
			if c.meet != nil {
				c.meet(d)
			}
			for n := range c.passes {
				if n > 0 {
					d.w.Pass(betweenSlots)
					d.w.Tell("# pass %d", n+1)
				}
				d.pass()
			}
			d.w.Tell("# in the end: %s", d.w.Describe())
			golden(t, filepath.Join("testdata", "rolls", c.name+".txt"), d.story()+"\n")
		})
	}
}
