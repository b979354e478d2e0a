// SPDX-License-Identifier: Apache-2.0

package rollout_test

import (
	"path/filepath"
	"testing"

	"github.com/theseus-gitops/theseus/reconcile/rollout"
)

// Whole rolls as they are told: those that package planetest does not tell.
func TestStoriesOfAPlane(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name     string
		machines int
		passes   int
		change   func(w *rollout.WantPlane)
		// meet sets the world up.
		meet func(d *driver)
	}{
		{name: "one-to-three", machines: 1, passes: 1, change: func(w *rollout.WantPlane) { w.Replicas = 3 }},
		{name: "five-to-one", machines: 5, passes: 1, change: func(w *rollout.WantPlane) { w.Replicas, w.Snapshot = 1, true }},
		{name: "health-checked", machines: 3, passes: 1, change: newImage, meet: func(d *driver) { d.w.ActsOnServing = false }},
		{name: "never-healthy", machines: 3, passes: 2, change: newImage, meet: func(d *driver) { d.w.Habit.Sick = true }},
		{name: "two-minors-at-once", machines: 3, passes: 1, change: func(w *rollout.WantPlane) { w.Kubernetes = version("v1.38.0") }},
		{name: "etcd-too-old", machines: 3, passes: 1, change: func(w *rollout.WantPlane) {
			w.Kubernetes, w.EtcdTag = version("v1.37.2"), "3.8.0-0"
		}},
		{name: "surge-0", machines: 3, passes: 1, change: func(w *rollout.WantPlane) { w.Image, w.Surge, w.Unavailable = "debian-13", 0, 1 }},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			d := rolls(t, c.machines, c.change)
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
