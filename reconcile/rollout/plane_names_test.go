// SPDX-License-Identifier: Apache-2.0

package rollout_test

import (
	"testing"

	"github.com/theseus-gitops/theseus/reconcile/live"
	"github.com/theseus-gitops/theseus/reconcile/rollout"
)

// What takes the newest machine away also takes the only thing that tells of its name, which must never be given again.
func TestTheHighestNameIsWrittenDown(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(w *rollout.Want, c *live.Cluster){
		"the newest is dead and goes first": func(w *rollout.Want, c *live.Cluster) {
			w.Plane.Image = "debian-13"
			c.Kube.Nodes[2].Ready = false
			member(c, "seed-cp-3", func(m *live.Member) { m.Status, m.Unreachable = nil, "connection refused" })
		},
		"the newest leaves a plane that shrinks": func(w *rollout.Want, c *live.Cluster) {
			w.Plane.Replicas = 1
			c.Machines.All[2].Created = noon.AddDate(-1, 0, 0)
		},
		"an entry that Terraform never made": func(_ *rollout.Want, c *live.Cluster) {
			c.Machines.All = append(c.Machines.All[:2:2], live.Machine{Name: "seed-cp-3", Pool: live.ControlPlanePool, KubernetesVersion: "v1.36.3", Missing: true})
			c.Kube.Nodes, c.Etcd.Members = c.Kube.Nodes[:2], c.Etcd.Members[:2]
		},
		"a recorded member without machine": func(_ *rollout.Want, c *live.Cluster) {
			c.Machines.All, c.Kube.Nodes = c.Machines.All[:2], c.Kube.Nodes[:2]
			record(c)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			want, have := wantPlane(3), planeOf(3)
			change(&want, &have)
			do, ok := rollout.Next(want, have, noon).(rollout.Do)
			if !ok {
				t.Fatalf("decided %s", next(want, have))
			}
			written := do.Step.Before
			if do.Step.After != nil {
				written = do.Step.After(noon)
			}
			if written == nil || written.Serial != 3 {
				t.Errorf("%s %s writes %+v, want serial 3", do.Step.Name(), do.Step.Subject, written)
			}
		})
	}
}
