// SPDX-License-Identifier: Apache-2.0

package planetest_test

import (
	"flag"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/theseus-gitops/theseus/reconcile/logbook"
	"github.com/theseus-gitops/theseus/reconcile/rollout"
	"github.com/theseus-gitops/theseus/reconcile/skew"
)

var (
	update = flag.Bool("update", false, "rewrite the golden files")
	all    = flag.Bool("all", false, "try every point of a roll of machines, and not only some")
)

// noon is when the worlds begin.
var noon = time.Date(2026, 12, 1, 12, 0, 0, 0, time.UTC)

const clusterConfiguration = `apiVersion: kubeadm.k8s.io/v1beta4
clusterName: seed
controlPlaneEndpoint: 10.0.0.1:6443 # the load balancer
etcd:
  local:
    dataDir: /var/lib/etcd
    imageTag: 3.6.16-0
kind: ClusterConfiguration
kubernetesVersion: v1.36.3
networking:
  dnsDomain: cluster.local
`

func version(text string) skew.Version {
	v, err := skew.Parse(text)
	if err != nil {
		panic(err)
	}
	return v
}

// wantPlane wants what newPlane has.
func wantPlane(replicas int) rollout.Want {
	return rollout.Want{
		Revision: "rev-1", Owner: logbook.Owner{Repository: "https://git.example.com/fleet", Cluster: "seed"},
		Plane: &rollout.WantPlane{
			Replicas: replicas, Kubernetes: version("v1.36.3"), Image: "debian-12", Surge: 1, StableFor: time.Minute, Attempts: 2, Snapshot: replicas == 1,
			Timeouts: rollout.Timeouts{Create: 20 * time.Minute, Join: 15 * time.Minute, Drain: 10 * time.Minute, Detach: 10 * time.Minute, Destroy: 20 * time.Minute},
		},
	}
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
		t.Fatalf("%v: run go test -update ./reconcile/rollout/planetest and read the story before you commit it", err)
	}
	if string(want) != got {
		t.Errorf("the story of %s changed (go test -update rewrites it)\ngot:\n%s\nwant:\n%s", path, got, want)
	}
}
