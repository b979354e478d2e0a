// SPDX-License-Identifier: Apache-2.0

package rollout_test

import (
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/theseus-gitops/theseus/reconcile/live"
	"github.com/theseus-gitops/theseus/reconcile/logbook"
	"github.com/theseus-gitops/theseus/reconcile/rollout"
	"github.com/theseus-gitops/theseus/reconcile/rollout/rollouttest"
	"github.com/theseus-gitops/theseus/reconcile/skew"
)

// noon is when the tests look.
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

// wantPlane wants what plane has.
func wantPlane(replicas int) rollout.Want {
	return rollout.Want{
		Revision: "rev-1", Owner: logbook.Owner{Repository: "https://git.example.com/fleet", Cluster: "seed"},
		Plane: &rollout.WantPlane{
			Replicas: replicas, Kubernetes: version("v1.36.3"), Image: "debian-12", Surge: 1, StableFor: time.Minute, Attempts: 2, Snapshot: replicas == 1,
			Timeouts: rollout.Timeouts{Create: 20 * time.Minute, Join: 15 * time.Minute, Drain: 10 * time.Minute, Detach: 10 * time.Minute, Destroy: 20 * time.Minute},
		},
	}
}

// planeOf is a healthy control plane of so many machines, seed-cp-1 and so on, as a process with credentials sees it.
// The oldest leads etcd, and each machine has one pod to evict.
func planeOf(n int) live.Cluster {
	c := live.Cluster{
		Kube: &live.Kube{
			ServerVersion: "v1.36.3",
			KubeadmConfig: &live.KubeadmConfig{ResourceVersion: "11", ClusterConfiguration: clusterConfiguration},
			KubeletConfig: &live.ConfigMap{ResourceVersion: "12", Data: map[string]string{"kubelet": "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n"}},
			KubeProxy:     &live.KubeProxy{ResourceVersion: "13", Image: "registry.k8s.io/kube-proxy:v1.36.3"},
			Plane:         &live.Plane{Parts: map[string]live.Parts{}, Served: []string{}},
			DNS:           rollouttest.New(repo+"v1.14.2", rollouttest.DefaultCorefile).Observe().Kube.DNS,
		},
		Machines: &live.Machines{Endpoint: "10.0.0.1:6443", ActsOnServing: true, Idle: true},
		Etcd:     &live.Etcd{Confirmed: true, AlarmsSeen: true},
	}
	for i := range n {
		name, address := "seed-cp-"+strconv.Itoa(i+1), fmt.Sprintf("10.0.0.%d", 11+i)
		ready := func(component, tag string) live.Part {
			return live.Part{Image: "registry.k8s.io/" + component + ":" + tag, Ready: true}
		}
		created := noon.Add(time.Duration(i-1000) * time.Hour)
		c.Machines.All = append(c.Machines.All, live.Machine{
			Name: name, Role: live.ControlPlanePool, Pool: live.ControlPlanePool, KubernetesVersion: "v1.36.3", Image: "debian-12", Created: created,
			Serving: true, Hostname: name, Addresses: []string{address},
		})
		c.Kube.Nodes = append(c.Kube.Nodes, live.Node{
			Name: name, ControlPlane: true, Ready: true, Schedulable: true, KubeletVersion: "v1.36.3", Addresses: []string{address}, Created: created,
			Taints: []live.Taint{{Key: "node-role.kubernetes.io/control-plane", Effect: "NoSchedule"}},
		})
		c.Kube.Plane.Served = append(c.Kube.Plane.Served, name)
		c.Kube.Plane.Parts[name] = live.Parts{
			APIServer: ready("kube-apiserver", "v1.36.3"), ControllerManager: ready("kube-controller-manager", "v1.36.3"),
			Scheduler: ready("kube-scheduler", "v1.36.3"), Etcd: ready("etcd", "3.6.16-0"),
			Pods: []live.Evictee{{Namespace: "default", Name: "web-" + strconv.Itoa(i+1)}},
		}
		c.Etcd.Members = append(c.Etcd.Members, live.Member{
			ID: live.MemberID(101 + i), Name: name, PeerURLs: []string{"https://" + address + ":2380"},
			Status: &live.MemberStatus{Version: "3.6.16", Leader: 101, RaftTerm: 2},
		})
	}
	return c
}

// told is a plan as people read it.
func told(plan rollout.Plan) string {
	var b strings.Builder
	for _, s := range plan.Steps {
		fmt.Fprintf(&b, "%-26s %-26s %s\n", s.Name(), s.Subject, s.Why)
	}
	switch end := plan.End.(type) {
	case rollout.Done:
		fmt.Fprintf(&b, "done: %s\n", end.Why)
	case rollout.Wait:
		fmt.Fprintf(&b, "wait: %s\n", end.Why)
	case rollout.Stalled:
		fmt.Fprintf(&b, "stalled: %s: %s\n", end.Failure.Reason, end.Failure.Message)
	case rollout.Do:
	}
	return b.String()
}

func TestPlansOfAPlane(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name     string
		machines int
		replicas int
		change   func(w *rollout.Want, have *live.Cluster)
	}{
		{"as-wanted", 3, 3, func(*rollout.Want, *live.Cluster) {}},
		{"three-image", 3, 3, func(w *rollout.Want, have *live.Cluster) {
			w.Plane.Image = "debian-13"
			have.Etcd, have.Machines.Idle = nil, false
		}},
		{"three-version", 3, 3, func(w *rollout.Want, have *live.Cluster) {
			w.Plane.Kubernetes, w.Plane.Image, w.Plane.EtcdTag = version("v1.37.2"), "debian-13", "3.7.3-0"
			w.DNS = &rollout.WantDNS{Tag: "v1.14.6"}
			have.Etcd, have.Machines.Idle = nil, false
		}},
		{"one-version", 1, 1, func(w *rollout.Want, have *live.Cluster) {
			w.Plane.Kubernetes, w.Plane.EtcdTag = version("v1.37.2"), "3.7.3-0"
			have.Etcd, have.Machines.Idle = nil, false
			have.Machines.ActsOnServing = false
		}},
		{"five-domains", 5, 5, func(w *rollout.Want, have *live.Cluster) {
			w.Plane.Image, w.Plane.FailureDomains = "debian-13", []string{"a", "b", "c"}
			for i := range have.Machines.All {
				have.Machines.All[i].FailureDomain = []string{"a", "b", "c", "a", "z"}[i]
			}
		}},
		{"one-to-three", 1, 3, func(w *rollout.Want, _ *live.Cluster) { w.Plane.Snapshot = true }},
		{"three-to-one", 3, 1, func(*rollout.Want, *live.Cluster) {}},
		{"killed-while-joining", 3, 3, func(w *rollout.Want, have *live.Cluster) {
			w.Plane.Image = "debian-13"
			pending(have, w, time.Minute, func(*logbook.Pending) {})
			asked(have)
			have.Etcd, have.Kube.Plane.Credentials, have.Machines.Idle = nil, true, false
		}},
		{"surge-0", 3, 3, func(w *rollout.Want, _ *live.Cluster) {
			w.Plane.Image, w.Plane.Surge, w.Plane.Unavailable = "debian-13", 0, 1
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			want, have := wantPlane(c.replicas), planeOf(c.machines)
			c.change(&want, &have)
			golden(t, filepath.Join("testdata", "plans", c.name+".txt"), told(rollout.Play(want, have, noon)))
		})
	}
}
