// SPDX-License-Identifier: Apache-2.0

package rollout_test

import (
	"strings"
	"testing"
	"time"

	"github.com/theseus-gitops/theseus/reconcile/live"
	"github.com/theseus-gitops/theseus/reconcile/logbook"
	"github.com/theseus-gitops/theseus/reconcile/rollout"
)

// next is the decision in a few words: "step subject", "stalled Reason", "wait" or "done", and then its sentence.
func next(want rollout.Want, have live.Cluster) string {
	switch d := rollout.Next(want, have, noon).(type) {
	case rollout.Do:
		return d.Step.Name() + " " + d.Step.Subject + ": " + d.Step.Why
	case rollout.Wait:
		return "wait: " + d.Why
	case rollout.Stalled:
		return "stalled " + d.Failure.Reason + ": " + d.Failure.Message
	case rollout.Done:
		return "done: " + d.Why
	}
	return "nothing"
}

// planeRow is one observation, and what must follow from it.
type planeRow struct {
	name     string
	machines int
	change   func(w *rollout.Want, c *live.Cluster)
	// want are texts of the decision, the first its beginning.
	want []string
}

func checkPlane(t *testing.T, rows []planeRow) {
	t.Helper()
	for _, r := range rows {
		t.Run(r.name, func(t *testing.T) {
			t.Parallel()
			want, have := wantPlane(r.machines), planeOf(r.machines)
			want.Plane.Image, want.Plane.Snapshot = "debian-13", true
			r.change(&want, &have)
			got := next(want, have)
			if !strings.HasPrefix(got, r.want[0]) {
				t.Errorf("got  %s\nwant %s…", got, r.want[0])
			}
			for _, text := range r.want[1:] {
				if !strings.Contains(got, text) {
					t.Errorf("%s\nlacks %q", got, text)
				}
			}
		})
	}
}

func config(c *live.Cluster, replace ...string) {
	c.Kube.KubeadmConfig.ClusterConfiguration = strings.NewReplacer(replace...).Replace(c.Kube.KubeadmConfig.ClusterConfiguration)
}

func parts(c *live.Cluster, node string, edit func(p *live.Parts)) {
	p := c.Kube.Plane.Parts[node]
	edit(&p)
	c.Kube.Plane.Parts[node] = p
}

// What a person has to decide or mend is said before the first write.
func TestAPlaneIsRefusedEarly(t *testing.T) {
	t.Parallel()
	fresh := func(f func(w *rollout.Want, c *live.Cluster)) func(w *rollout.Want, c *live.Cluster) {
		return func(w *rollout.Want, c *live.Cluster) {
			c.Etcd, c.Machines.Idle = nil, false
			f(w, c)
		}
	}
	checkPlane(t, []planeRow{
		{"a minor is skipped (kubernetes-sigs/cluster-api#5853)", 3, fresh(func(w *rollout.Want, _ *live.Cluster) { w.Plane.Kubernetes = version("v1.38.0") }),
			[]string{"stalled MinorSkipped", "v1.36.3", "v1.38.0"}},
		{"a minor back", 3, fresh(func(w *rollout.Want, _ *live.Cluster) { w.Plane.Kubernetes = version("v1.35.4") }),
			[]string{"stalled MinorDowngrade", "v1.35.4"}},
		{"a patch back is a roll like any other", 3, fresh(func(w *rollout.Want, _ *live.Cluster) { w.Plane.Kubernetes = version("v1.36.1") }),
			[]string{"check-module"}},
		{"a node that Terraform does not know", 3, fresh(func(_ *rollout.Want, c *live.Cluster) {
			c.Machines.All = c.Machines.All[:2]
			c.Machines.All = append(c.Machines.All, live.Machine{Name: "seed-cp-9", Pool: live.ControlPlanePool, KubernetesVersion: "v1.36.3", Image: "debian-12"})
		}), []string{"stalled NodeWithoutMachine", "seed-cp-3"}},
		{"the endpoint is a machine", 3, fresh(func(_ *rollout.Want, c *live.Cluster) { config(c, "10.0.0.1:6443", "10.0.0.12:6443") }),
			[]string{"stalled EndpointIsMachine", "seed-cp-2"}},
		{"the endpoint is somebody else's", 3, fresh(func(_ *rollout.Want, c *live.Cluster) {
			c.Kube.Plane.Served, c.Kube.Plane.EndpointForeign = nil, "CN=proxy.example.com"
		}), []string{"stalled EndpointForeign", "CN=proxy.example.com"}},
		{"the endpoint ends TLS, as the spec says", 3, fresh(func(w *rollout.Want, c *live.Cluster) {
			w.Plane.EndsTLS = true
			c.Kube.Plane.Served, c.Kube.Plane.EndpointForeign = nil, "CN=proxy.example.com"
		}), []string{"check-module"}},
		{"no endpoint", 3, fresh(func(_ *rollout.Want, c *live.Cluster) { config(c, "controlPlaneEndpoint: 10.0.0.1:6443", "") }),
			[]string{"stalled EndpointIsMachine", "controlPlaneEndpoint"}},
		{"external etcd", 3, fresh(func(_ *rollout.Want, c *live.Cluster) { config(c, "local:", "external:") }),
			[]string{"stalled ExternalEtcd"}},
		{"a worker's kubelet too old (kubernetes-sigs/cluster-api#2544)", 3, fresh(func(w *rollout.Want, c *live.Cluster) {
			w.Plane.Kubernetes = version("v1.37.2")
			c.Kube.Nodes = append(c.Kube.Nodes, live.Node{Name: "w-1", KubeletVersion: "v1.33.13", Ready: true})
		}), []string{"stalled KubeletSkew", "w-1", "v1.33.13"}},
		{"a worker's kubelet three minors behind is fine", 3, fresh(func(w *rollout.Want, c *live.Cluster) {
			w.Plane.Kubernetes = version("v1.37.2")
			c.Kube.Nodes = append(c.Kube.Nodes, live.Node{Name: "w-1", KubeletVersion: "v1.34.4", Ready: true})
		}), []string{"check-module"}},
		{"etcd 3.6.8 below 3.7 (etcd-io/website#1165, #1168)", 3, fresh(func(w *rollout.Want, c *live.Cluster) {
			w.Plane.Kubernetes = version("v1.37.2")
			parts(c, "seed-cp-2", func(p *live.Parts) { p.Etcd.Image = "registry.k8s.io/etcd:3.6.8-0" })
		}), []string{"stalled EtcdTooOld", "3.6.8", "3.6.11"}},
		{"etcd 3.5.24 below 3.6 (etcd-io/etcd#20967)", 3, fresh(func(w *rollout.Want, c *live.Cluster) {
			w.Plane.EtcdTag = "3.6.16-0"
			for _, n := range c.Kube.Nodes {
				parts(c, n.Name, func(p *live.Parts) { p.Etcd.Image = "registry.k8s.io/etcd:3.5.24-0" })
			}
		}), []string{"stalled EtcdTooOld", "3.5.24", "3.5.26"}},
		{"an etcd minor is skipped", 3, fresh(func(w *rollout.Want, c *live.Cluster) {
			w.Plane.EtcdTag = "3.7.3-0"
			parts(c, "seed-cp-1", func(p *live.Parts) { p.Etcd.Image = "registry.k8s.io/etcd:3.5.35-0" })
		}), []string{"stalled EtcdTooOld", "one minor at a time"}},
		{"which etcd a patch brings is unknown", 3, fresh(func(w *rollout.Want, c *live.Cluster) {
			w.Plane.Kubernetes = version("v1.37.9")
			config(c, "    imageTag: 3.6.16-0\n", "")
		}), []string{"stalled EtcdVersionUnknown", "v1.37.9"}},
		{"an audit policy that the machine would lack", 3, fresh(func(_ *rollout.Want, c *live.Cluster) {
			config(c, "clusterName: seed", "apiServer:\n  extraVolumes:\n  - {name: audit, hostPath: /etc/kubernetes/audit.yaml, mountPath: /etc/audit.yaml}\nclusterName: seed")
		}), []string{"stalled HostFilesMissing", "/etc/kubernetes/audit.yaml"}},
		{"the image has the audit policy", 3, fresh(func(w *rollout.Want, c *live.Cluster) {
			w.Plane.Files = []string{"/etc/kubernetes/audit.yaml"}
			config(c, "clusterName: seed", "apiServer:\n  extraVolumes:\n  - {name: audit, hostPath: /etc/kubernetes/audit.yaml, mountPath: /etc/audit.yaml}\nclusterName: seed")
		}), []string{"check-module"}},
		{"etcd 3.7 lacks an argument", 3, fresh(func(w *rollout.Want, c *live.Cluster) {
			w.Plane.Kubernetes, w.Plane.EtcdTag = version("v1.37.2"), "3.7.3-0"
			config(c, "dataDir: /var/lib/etcd", "dataDir: /var/lib/etcd\n    extraArgs: [{name: experimental-initial-corrupt-check, value: 'true'}]")
		}), []string{"stalled KubeadmConfigUnfit", "experimental-initial-corrupt-check"}},
		{"one machine and nowhere for a snapshot", 1, fresh(func(w *rollout.Want, _ *live.Cluster) { w.Plane.Snapshot = false }),
			[]string{"stalled SnapshotPlaceMissing"}},
		{"one machine and a budget at zero", 1, fresh(func(_ *rollout.Want, c *live.Cluster) {
			parts(c, "seed-cp-1", func(p *live.Parts) { p.Pods[0].Budgets = []string{"web"} })
		}), []string{"stalled DrainBlocked", "default/web-1", "PodDisruptionBudget web"}},
		{"three machines and a budget at zero: a notice only", 3, fresh(func(_ *rollout.Want, c *live.Cluster) {
			parts(c, "seed-cp-1", func(p *live.Parts) { p.Pods[0].Budgets = []string{"web"} })
		}), []string{"check-module"}},
		{"data on a local volume", 3, fresh(func(_ *rollout.Want, c *live.Cluster) {
			parts(c, "seed-cp-2", func(p *live.Parts) { p.Pods[0].LocalVolumes = []string{"pv-7"} })
		}), []string{"stalled DrainNeedsConsent", "loseLocalVolumes", "default/web-2"}},
		{"machines of this target failed before", 3, fresh(func(w *rollout.Want, c *live.Cluster) { c.Kube.Book.Attempts = map[string]int{w.Revision: 2} }),
			[]string{"stalled MachinesFailed"}},
		{"a new spec tries again", 3, fresh(func(_ *rollout.Want, c *live.Cluster) { c.Kube.Book.Attempts = map[string]int{"another": 2} }),
			[]string{"check-module"}},
		{"no kubeadm-config", 3, fresh(func(_ *rollout.Want, c *live.Cluster) { c.Kube.KubeadmConfig = nil }),
			[]string{"stalled KubeadmConfigMissing"}},
		{"CoreDNS would be refused afterwards", 3, fresh(func(w *rollout.Want, _ *live.Cluster) { w.DNS = &rollout.WantDNS{Tag: "v1.14.1"} }),
			[]string{"stalled DNSDowngrade"}},
		{"no API server to get credentials from", 3, func(_ *rollout.Want, c *live.Cluster) {
			c.Etcd = nil
			for _, n := range c.Kube.Nodes {
				parts(c, n.Name, func(p *live.Parts) { p.APIServer.Ready = false })
			}
		}, []string{"wait: no control-plane machine that stays is Ready"}},
	})
}

// member edits a member.
func member(c *live.Cluster, name string, edit func(m *live.Member)) {
	for i := range c.Etcd.Members {
		if c.Etcd.Members[i].Name == name {
			edit(&c.Etcd.Members[i])
		}
	}
}

func record(c *live.Cluster) {
	c.Kube.Book.Members = map[string]logbook.Member{}
	for _, m := range c.Etcd.Members {
		c.Kube.Book.Members[m.Name] = logbook.Member{ID: m.ID.String(), PeerURLs: m.PeerURLs}
	}
}

// At a rest point, what is sick or left over comes before the next machine.
func TestAPlaneAtRest(t *testing.T) {
	t.Parallel()
	checkPlane(t, []planeRow{
		{"a learner that was never promoted (kubernetes/kubeadm#2997)", 3, func(_ *rollout.Want, c *live.Cluster) {
			member(c, "seed-cp-3", func(m *live.Member) { m.Learner = true })
		}, []string{"wait: ", "seed-cp-3", "learner"}},
		{"NOSPACE (kubernetes-sigs/cluster-api#13846)", 3, func(_ *rollout.Want, c *live.Cluster) {
			member(c, "seed-cp-2", func(m *live.Member) { m.Alarms = []live.Alarm{live.NoSpace} })
		}, []string{"wait: ", "seed-cp-2", "NOSPACE"}},
		{"a dead machine that is to go anyway goes first (etcd's FAQ)", 3, func(_ *rollout.Want, c *live.Cluster) {
			c.Kube.Nodes[1].Ready = false
			member(c, "seed-cp-2", func(m *live.Member) { m.Status, m.Unreachable = nil, "connection refused" })
		}, []string{"mark-leaving seed-cp-2"}},
		{"a dead machine that is as wanted", 3, func(w *rollout.Want, c *live.Cluster) {
			c.Machines.All[1].Image = "debian-13"
			c.Kube.Nodes[1].Ready = false
			member(c, "seed-cp-2", func(m *live.Member) { m.Status, m.Unreachable = nil, "connection refused" })
		}, []string{"wait: ", "seed-cp-2", "not Ready"}},
		{"a machine without Node (kubernetes-sigs/cluster-api#4554)", 3, func(_ *rollout.Want, c *live.Cluster) {
			c.Kube.Nodes = c.Kube.Nodes[:2]
		}, []string{"wait: ", "seed-cp-3: it has no Node"}},
		{"a recorded member without machine (kubernetes-sigs/cluster-api#3860)", 3, func(_ *rollout.Want, c *live.Cluster) {
			c.Etcd.Members = append(c.Etcd.Members, live.Member{ID: 99, Name: "seed-cp-0", PeerURLs: []string{"https://10.0.0.99:2380"}})
			record(c)
		}, []string{"remove-stray-member member seed-cp-0 (63)"}},
		{"an unknown member is named, not removed", 3, func(_ *rollout.Want, c *live.Cluster) {
			record(c)
			c.Etcd.Members = append(c.Etcd.Members, live.Member{ID: 99, PeerURLs: []string{"https://10.0.0.99:2380"}, Learner: true})
		}, []string{"stalled UnknownMember", "unnamed member 63", "10.0.0.99"}},
		{"a stray that the quorum needs (one time-out removes nobody)", 3, func(_ *rollout.Want, c *live.Cluster) {
			c.Etcd.Members = append(c.Etcd.Members, live.Member{ID: 99, Name: "seed-cp-0", PeerURLs: []string{"https://10.0.0.99:2380"}})
			record(c)
			for _, n := range []string{"seed-cp-1", "seed-cp-2"} {
				member(c, n, func(m *live.Member) { m.Status = nil })
			}
		}, []string{"stalled EtcdNoQuorum"}},
		{"an entry that Terraform never made", 3, func(_ *rollout.Want, c *live.Cluster) {
			c.Machines.All = append(c.Machines.All, live.Machine{Name: "seed-cp-4", Pool: live.ControlPlanePool, KubernetesVersion: "v1.36.3", Missing: true})
		}, []string{"drop-entry seed-cp-4"}},
		{"a tainted machine that runs is replaced, not dropped", 3, func(w *rollout.Want, c *live.Cluster) {
			w.Plane.Image = "debian-12"
			c.Machines.All[2].Broken = true
			c.Kube.Book.Roll = &logbook.Roll{Snapshot: "x"}
		}, []string{"ensure-join-rbac"}},
		{"the members disagree", 3, func(_ *rollout.Want, c *live.Cluster) {
			c.Etcd.Differences = []string{"seed-cp-3 does not know seed-cp-1"}
			c.Kube.Book.Roll = &logbook.Roll{Snapshot: "x"}
		}, []string{"stalled EtcdMembersDiffer", "seed-cp-3 does not know"}},
		{"kube-proxy is not everywhere yet", 3, func(w *rollout.Want, c *live.Cluster) {
			w.Plane.Image = "debian-12"
			c.Kube.KubeProxy.Rollout = live.Rollout{Wanted: 3, Total: 3, Updated: 1, Unavailable: 1}
		}, []string{"wait: kube-proxy v1.36.3: 1 of 3 nodes updated"}},
		{"an image of one's own is nobody's to change", 3, func(w *rollout.Want, c *live.Cluster) {
			w.Plane.Image = "debian-12"
			c.Kube.KubeProxy.Image = "registry.example.com/my-proxy:1"
		}, []string{"done: 3 control-plane machines"}},
		{"credentials that a killed run left", 3, func(w *rollout.Want, c *live.Cluster) {
			w.Plane.Image = "debian-12"
			c.Kube.Plane.Credentials = true
		}, []string{"delete-credentials", "interrupted run"}},
		{"kubeadm-config of a version that nobody wants any more", 3, func(w *rollout.Want, c *live.Cluster) {
			w.Plane.Image = "debian-12"
			config(c, "v1.36.3", "v1.37.2", "3.6.16-0", "3.7.3-0")
			c.Kube.Book.Originals = &logbook.Originals{KubeadmConfig: clusterConfiguration}
		}, []string{"sync-kubeadm-config"}},
		{"kubelet-config with a gate that the target's kubelet does not know", 3, func(w *rollout.Want, c *live.Cluster) {
			w.Plane.Kubernetes, w.Plane.EtcdTag = version("v1.37.2"), "3.7.3-0"
			config(c, "v1.36.3", "v1.37.2", "3.6.16-0", "3.7.3-0")
			c.Kube.KubeletConfig.Data["kubelet"] += "featureGates:\n  NoSuchGate: true\n"
			c.Kube.Book.Roll = &logbook.Roll{Snapshot: "x", Prepared: "control-plane v1.37.2, image debian-13, etcd 3.7.3-0"}
		}, []string{"sync-kubelet-config", "NoSuchGate"}},
	})
}

// pending is a machine that is being added: asked for, with or without a Node and member.
func pending(c *live.Cluster, w *rollout.Want, since time.Duration, edit func(p *logbook.Pending)) {
	p := logbook.Pending{Name: "seed-cp-9", Serial: 9, Target: "control-plane v1.36.3, image debian-13", Since: noon.Add(-since)}
	edit(&p)
	c.Kube.Book.Pending, c.Kube.Book.Roll = &p, &logbook.Roll{ID: "r", Snapshot: "x"}
	record(c)
	_ = w
}

func asked(c *live.Cluster) {
	c.Machines.All = append(c.Machines.All, live.Machine{
		Name: "seed-cp-9", Role: live.ControlPlanePool, Pool: live.ControlPlanePool, KubernetesVersion: "v1.36.3", Image: "debian-13", Created: noon, Serving: true,
	})
}

// up is the machine with a Node; its member is added by the caller.
func up(c *live.Cluster) {
	asked(c)
	n := c.Kube.Nodes[0]
	n.Name, n.Addresses, n.Created = "seed-cp-9", []string{"10.0.0.19"}, noon
	c.Kube.Nodes = append(c.Kube.Nodes, n)
	p := c.Kube.Plane.Parts["seed-cp-1"]
	p.Pods = nil
	c.Kube.Plane.Parts["seed-cp-9"] = p
	c.Kube.Plane.Served = append(c.Kube.Plane.Served, "seed-cp-9")
}

func learner(c *live.Cluster) {
	c.Etcd.Members = append(c.Etcd.Members, live.Member{ID: 209, PeerURLs: []string{"https://10.0.0.19:2380"}, Learner: true})
}

func voter(c *live.Cluster) {
	c.Etcd.Members = append(c.Etcd.Members, live.Member{ID: 209, Name: "seed-cp-9", PeerURLs: []string{"https://10.0.0.19:2380"}, Status: &live.MemberStatus{Leader: 101, RaftTerm: 2}})
}

func placeholder(c *live.Cluster) {
	c.Etcd.Members = append(c.Etcd.Members, live.Member{ID: 300, PeerURLs: []string{"https://192.0.2.1:2380"}, Learner: true})
}

func TestAMachineJoins(t *testing.T) {
	t.Parallel()
	plain := func(*logbook.Pending) {}
	checkPlane(t, []planeRow{
		{"written down, not made", 3, func(w *rollout.Want, c *live.Cluster) { pending(c, w, time.Minute, plain) }, []string{"add-machine seed-cp-9"}},
		{"written down, and Terraform was killed while it made it (flux-iac/tofu-controller#531)", 3, func(w *rollout.Want, c *live.Cluster) {
			pending(c, w, time.Minute, plain)
			c.Machines.Interrupted = true
		}, []string{"give-up-machine seed-cp-9", "Terraform was killed"}},
		{"the same before etcd can be seen: no later process would know", 3, func(w *rollout.Want, c *live.Cluster) {
			pending(c, w, time.Minute, plain)
			c.Etcd, c.Machines.Interrupted = nil, true
		}, []string{"give-up-machine seed-cp-9", "Terraform was killed"}},
		{"the same after a revert: that it was not made is not known", 3, func(w *rollout.Want, c *live.Cluster) {
			w.Plane.Image = "debian-12"
			pending(c, w, time.Minute, plain)
			c.Machines.Interrupted = true
		}, []string{"give-up-machine seed-cp-9", "Terraform was killed"}},
		{"made, without Node", 3, func(w *rollout.Want, c *live.Cluster) { pending(c, w, time.Minute, plain); asked(c) }, []string{"wait: seed-cp-9 is joining: it has no Node"}},
		{"killed while it joins: what it joins with is not taken away", 3, func(w *rollout.Want, c *live.Cluster) {
			pending(c, w, time.Minute, plain)
			asked(c)
			c.Etcd, c.Kube.Plane.Credentials = nil, true
		}, []string{"wait: seed-cp-9 is joining: it has no Node"}},
		{"killed while it joined: etcd is looked at once it is whole", 3, func(w *rollout.Want, c *live.Cluster) {
			pending(c, w, time.Minute, plain)
			up(c)
			c.Etcd, c.Kube.Plane.Credentials = nil, true
		}, []string{"obtain-credentials seed-cp-3"}},
		{"killed before it was made: credentials come first", 3, func(w *rollout.Want, c *live.Cluster) {
			pending(c, w, time.Minute, plain)
			c.Etcd = nil
		}, []string{"obtain-credentials seed-cp-3"}},
		{"killed while it joins, and out of time", 3, func(w *rollout.Want, c *live.Cluster) {
			pending(c, w, 35*time.Minute, plain)
			asked(c)
			c.Etcd = nil
		}, []string{"give-up-machine seed-cp-9"}},
		{"Ready, but a learner (k0sproject/k0smotron#1481)", 3, func(w *rollout.Want, c *live.Cluster) {
			pending(c, w, time.Minute, plain)
			up(c)
			learner(c)
		}, []string{"wait: seed-cp-9 is joining", "learner"}},
		{"a voter that the endpoint does not lead to", 3, func(w *rollout.Want, c *live.Cluster) {
			pending(c, w, time.Minute, plain)
			up(c)
			voter(c)
			c.Kube.Plane.Served = c.Kube.Plane.Served[:3]
		}, []string{"wait: seed-cp-9 is joining", "endpoint"}},
		{"a kubelet certificate that nobody approved", 3, func(w *rollout.Want, c *live.Cluster) {
			pending(c, w, time.Minute, plain)
			up(c)
			voter(c)
			parts(c, "seed-cp-9", func(p *live.Parts) { p.PendingCSR = "csr-x" })
		}, []string{"wait: seed-cp-9 is joining", "csr-x"}},
		{"the spec lets it be approved", 3, func(w *rollout.Want, c *live.Cluster) {
			w.Plane.ApproveCSR = true
			pending(c, w, time.Minute, plain)
			up(c)
			voter(c)
			parts(c, "seed-cp-9", func(p *live.Parts) { p.PendingCSR = "csr-x" })
		}, []string{"approve-serving-csr seed-cp-9"}},
		{"an image with another kubelet", 3, func(w *rollout.Want, c *live.Cluster) {
			pending(c, w, time.Minute, plain)
			up(c)
			voter(c)
			c.Kube.Nodes[3].KubeletVersion = "v1.36.1"
		}, []string{"wait: seed-cp-9 is joining", "v1.36.1 instead of v1.36.3"}},
		{"whole", 3, func(w *rollout.Want, c *live.Cluster) { pending(c, w, time.Minute, plain); up(c); voter(c) }, []string{"await-joined seed-cp-9"}},
		{"whole, what let it in is still there", 3, func(w *rollout.Want, c *live.Cluster) {
			pending(c, w, time.Minute, func(p *logbook.Pending) { p.Joined = noon })
			up(c)
			voter(c)
			c.Kube.Plane.Credentials = true
		}, []string{"delete-credentials"}},
		{"whole for 59 s", 3, func(w *rollout.Want, c *live.Cluster) {
			pending(c, w, time.Minute, func(p *logbook.Pending) { p.Joined = noon.Add(-59 * time.Second) })
			up(c)
			voter(c)
		}, []string{"wait: seed-cp-9 must stay healthy"}},
		{"whole for 60 s", 3, func(w *rollout.Want, c *live.Cluster) {
			pending(c, w, time.Minute, func(p *logbook.Pending) { p.Joined = noon.Add(-time.Minute) })
			up(c)
			voter(c)
		}, []string{"await-stable seed-cp-9"}},
		{"out of time", 3, func(w *rollout.Want, c *live.Cluster) { pending(c, w, 35*time.Minute, plain); asked(c) }, []string{"give-up-machine seed-cp-9", "it has no Node"}},
		{"made half", 3, func(w *rollout.Want, c *live.Cluster) {
			pending(c, w, time.Minute, plain)
			asked(c)
			c.Machines.All[3].Missing = true
		}, []string{"give-up-machine seed-cp-9", "did not make it whole"}},
		{"reverted before it was made", 3, func(w *rollout.Want, c *live.Cluster) {
			w.Plane.Image = "debian-12"
			pending(c, w, time.Second, plain)
		}, []string{"forget-machine seed-cp-9"}},
		{"reverted while it joins (kubernetes-sigs/cluster-api#11772)", 1, func(w *rollout.Want, c *live.Cluster) {
			w.Plane.Image = "debian-12"
			pending(c, w, time.Second, plain)
			asked(c)
		}, []string{"give-up-machine seed-cp-9"}},
	})
}

// The way back of a machine that was added. Beside fewer than three voters a placeholder guards it.
func TestAMachineIsTakenBack(t *testing.T) {
	t.Parallel()
	given := func(p *logbook.Pending) { p.GivenUp = "it did not join in time" }
	fenced := func(p *logbook.Pending) { given(p); p.Placeholder = "https://192.0.2.1:2380" }
	checkPlane(t, []planeRow{
		{"what lets it in goes first", 1, func(w *rollout.Want, c *live.Cluster) {
			pending(c, w, time.Hour, given)
			asked(c)
			c.Kube.Plane.Credentials = true
		}, []string{"delete-credentials"}},
		{"its learner goes (kubernetes/kubeadm#3269)", 1, func(w *rollout.Want, c *live.Cluster) { pending(c, w, time.Hour, given); asked(c); learner(c) }, []string{"remove-stray-member unnamed member d1"}},
		{"then the placeholder comes", 1, func(w *rollout.Want, c *live.Cluster) { pending(c, w, time.Hour, given); asked(c) }, []string{"add-placeholder-learner etcd"}},
		{"then the machine is destroyed", 1, func(w *rollout.Want, c *live.Cluster) { pending(c, w, time.Hour, fenced); asked(c); placeholder(c) }, []string{"destroy-machine seed-cp-9"}},
		{"then the placeholder goes", 1, func(w *rollout.Want, c *live.Cluster) { pending(c, w, time.Hour, fenced); placeholder(c) }, []string{"remove-placeholder-learner"}},
		{"then its Node", 1, func(w *rollout.Want, c *live.Cluster) {
			pending(c, w, time.Hour, fenced)
			up(c)
			c.Machines.All = c.Machines.All[:1]
		}, []string{"delete-node seed-cp-9"}},
		{"its Node does not hide its member, which goes first", 1, func(w *rollout.Want, c *live.Cluster) {
			pending(c, w, time.Hour, given)
			up(c)
			voter(c)
			c.Machines.All = c.Machines.All[:1]
		}, []string{"remove-stray-member member seed-cp-9"}},
		{"then nothing is left", 1, func(w *rollout.Want, c *live.Cluster) { pending(c, w, time.Hour, fenced) }, []string{"forget-machine seed-cp-9"}},
		{"promoted between look and removal: the placeholder goes, the plane goes on", 1, func(w *rollout.Want, c *live.Cluster) {
			pending(c, w, time.Hour, fenced)
			up(c)
			voter(c)
			placeholder(c)
		}, []string{"remove-placeholder-learner"}},
		{"promoted and whole: it stays", 1, func(w *rollout.Want, c *live.Cluster) { pending(c, w, time.Hour, fenced); up(c); voter(c) }, []string{"await-joined seed-cp-9", "voter"}},
		{"promoted and never whole: it leaves like any other", 1, func(w *rollout.Want, c *live.Cluster) {
			pending(c, w, time.Hour, fenced)
			up(c)
			voter(c)
			parts(c, "seed-cp-9", func(p *live.Parts) { p.APIServer.Ready = false })
		}, []string{"mark-leaving seed-cp-9"}},
		{"beside three voters no placeholder is needed", 3, func(w *rollout.Want, c *live.Cluster) { pending(c, w, time.Hour, given); asked(c) }, []string{"destroy-machine seed-cp-9"}},
		{"never made: the entry is dropped", 3, func(w *rollout.Want, c *live.Cluster) {
			pending(c, w, time.Hour, given)
			asked(c)
			c.Machines.All[3].Missing = true
		}, []string{"drop-entry seed-cp-9"}},
	})
}

// going is a machine that is being removed.
func going(c *live.Cluster, name string, edit func(l *logbook.Leaving)) {
	record(c)
	l := logbook.Leaving{Name: name, Node: name, MemberID: c.Kube.Book.Members[name].ID, Since: noon.Add(-time.Minute)}
	edit(&l)
	c.Kube.Book.Leaving, c.Kube.Book.Roll = &l, &logbook.Roll{ID: "r", Snapshot: "x"}
	for i := range c.Kube.Nodes {
		if c.Kube.Nodes[i].Name == name {
			c.Kube.Nodes[i].Leaving, c.Kube.Nodes[i].Schedulable = "2026-12-01T11:59:00Z", false
		}
	}
}

func TestAMachineLeaves(t *testing.T) {
	t.Parallel()
	plain := func(*logbook.Leaving) {}
	drained := func(l *logbook.Leaving) { l.Drained = noon }
	left := func(l *logbook.Leaving) { l.Drained, l.Left = noon, noon }
	node := func(c *live.Cluster, i int, edit func(n *live.Node)) { edit(&c.Kube.Nodes[i]) }
	checkPlane(t, []planeRow{
		{"written down, not marked", 4, func(_ *rollout.Want, c *live.Cluster) {
			going(c, "seed-cp-2", plain)
			node(c, 1, func(n *live.Node) { n.Leaving = "" })
		}, []string{"mark-leaving seed-cp-2"}},
		{"it leads", 4, func(_ *rollout.Want, c *live.Cluster) { going(c, "seed-cp-1", plain) }, []string{"move-leader seed-cp-4"}},
		{"it takes new pods", 4, func(_ *rollout.Want, c *live.Cluster) {
			going(c, "seed-cp-2", plain)
			node(c, 1, func(n *live.Node) { n.Schedulable = true })
		}, []string{"cordon seed-cp-2"}},
		{"Theseus itself runs there", 4, func(_ *rollout.Want, c *live.Cluster) {
			going(c, "seed-cp-2", plain)
			c.Kube.Plane.OwnNode = "seed-cp-2"
		}, []string{"wait: Theseus itself runs on seed-cp-2"}},
		{"pods are there", 4, func(_ *rollout.Want, c *live.Cluster) { going(c, "seed-cp-2", plain) }, []string{"drain seed-cp-2"}},
		{"a budget never allows it (kubernetes/kubernetes#72320)", 4, func(w *rollout.Want, c *live.Cluster) {
			going(c, "seed-cp-2", func(l *logbook.Leaving) { l.Draining = noon.Add(-10 * time.Minute) })
			parts(c, "seed-cp-2", func(p *live.Parts) { p.Pods[0].Budgets = []string{"web", "web-2"} })
		}, []string{"stalled DrainBlocked", "default/web-2", "web and web-2"}},
		{"killed while it was drained, and the time went by", 4, func(w *rollout.Want, c *live.Cluster) {
			going(c, "seed-cp-2", func(l *logbook.Leaving) { l.Draining = noon.Add(-time.Hour) })
		}, []string{"drain seed-cp-2"}},
		{"a pod that can go, and did not in time", 4, func(w *rollout.Want, c *live.Cluster) {
			going(c, "seed-cp-2", func(l *logbook.Leaving) { l.Draining = noon.Add(-10 * time.Minute) })
		}, []string{"stalled DrainBlocked", "was not evicted"}},
		{"a pod that does not end", 4, func(w *rollout.Want, c *live.Cluster) {
			going(c, "seed-cp-2", func(l *logbook.Leaving) { l.Draining = noon.Add(-time.Hour) })
			parts(c, "seed-cp-2", func(p *live.Parts) { p.Pods[0].Terminating = true })
		}, []string{"stalled DrainBlocked", "has not ended"}},
		{"an unmanaged pod came meanwhile", 4, func(_ *rollout.Want, c *live.Cluster) {
			going(c, "seed-cp-2", plain)
			parts(c, "seed-cp-2", func(p *live.Parts) { p.Pods[0].Unmanaged = true })
		}, []string{"stalled DrainNeedsConsent", "evictUnmanaged"}},
		{"a volume is attached (kubernetes-sigs/cluster-api#10661)", 4, func(_ *rollout.Want, c *live.Cluster) {
			going(c, "seed-cp-2", plain)
			parts(c, "seed-cp-2", func(p *live.Parts) { p.Pods, p.Volumes = nil, []string{"csi-1"} })
		}, []string{"wait: seed-cp-2", "csi-1"}},
		{"a volume that never detaches", 4, func(_ *rollout.Want, c *live.Cluster) {
			going(c, "seed-cp-2", func(l *logbook.Leaving) { l.Since = noon.Add(-time.Hour) })
			parts(c, "seed-cp-2", func(p *live.Parts) { p.Pods, p.Volumes = nil, []string{"csi-1"} })
		}, []string{"stalled VolumesAttached", "csi-1"}},
		{"all pods are gone", 4, func(_ *rollout.Want, c *live.Cluster) {
			going(c, "seed-cp-2", plain)
			parts(c, "seed-cp-2", func(p *live.Parts) { p.Pods = nil })
		}, []string{"await-detached seed-cp-2"}},
		{"out of the endpoint (kubernetes-sigs/cluster-api#10934)", 4, func(_ *rollout.Want, c *live.Cluster) { going(c, "seed-cp-2", drained) }, []string{"leave-endpoint seed-cp-2"}},
		{"the endpoint still leads there", 4, func(_ *rollout.Want, c *live.Cluster) {
			going(c, "seed-cp-2", drained)
			c.Machines.All[1].Serving = false
		}, []string{"wait: the endpoint still leads to seed-cp-2"}},
		{"nobody is sent to it any more, and who is connected is told to go", 4, func(_ *rollout.Want, c *live.Cluster) {
			going(c, "seed-cp-2", drained)
			c.Machines.All[1].Serving = false
			c.Kube.Plane.Served = []string{"seed-cp-1"}
		}, []string{"leave-endpoint seed-cp-2", "who is still connected"}},
		{"the load balancer still sends clients to it", 4, func(_ *rollout.Want, c *live.Cluster) {
			going(c, "seed-cp-2", drained)
			c.Machines.All[1].Serving = false
		}, []string{"wait: the endpoint still leads to seed-cp-2"}},
		{"the member goes last (kubernetes-sigs/cluster-api#11138)", 4, func(_ *rollout.Want, c *live.Cluster) {
			going(c, "seed-cp-2", left)
			c.Machines.All[1].Serving = false
			c.Kube.Plane.Served = []string{"seed-cp-1"}
		}, []string{"remove-member seed-cp-2"}},
		{"another member is dead meanwhile", 3, func(_ *rollout.Want, c *live.Cluster) {
			going(c, "seed-cp-2", drained)
			c.Machines.All[1].Serving = false
			c.Kube.Plane.Served = []string{"seed-cp-1"}
			member(c, "seed-cp-3", func(m *live.Member) { m.Status = nil })
		}, []string{"wait: without seed-cp-2, 1 of 2 voters"}},
		{"its member is gone, killed before it was destroyed (kubernetes-sigs/cluster-api#2651)", 4, func(_ *rollout.Want, c *live.Cluster) {
			going(c, "seed-cp-2", drained)
			c.Machines.All[1].Serving = false
			c.Kube.Nodes[1].Ready = false
			c.Etcd.Members = append(c.Etcd.Members[:1:1], c.Etcd.Members[2:]...)
		}, []string{"destroy-machine seed-cp-2"}},
		{"destroyed, its Node is left", 4, func(_ *rollout.Want, c *live.Cluster) {
			going(c, "seed-cp-2", drained)
			c.Kube.Nodes[1].Ready = false
			c.Etcd.Members = append(c.Etcd.Members[:1:1], c.Etcd.Members[2:]...)
			c.Machines.All = append(c.Machines.All[:1:1], c.Machines.All[2:]...)
		}, []string{"delete-node seed-cp-2"}},
		{"wanted again, and nothing was lost yet", 3, func(w *rollout.Want, c *live.Cluster) {
			w.Plane.Image = "debian-12"
			going(c, "seed-cp-2", plain)
		}, []string{"unmark-leaving seed-cp-2"}},
		{"wanted again, but out of the endpoint", 3, func(w *rollout.Want, c *live.Cluster) {
			w.Plane.Image = "debian-12"
			going(c, "seed-cp-2", left)
			c.Machines.All[1].Serving = false
			c.Kube.Plane.Served = []string{"seed-cp-1"}
		}, []string{"remove-member seed-cp-2"}},
		{"a machine that does not answer is not drained (kubernetes-sigs/cluster-api#10661)", 4, func(_ *rollout.Want, c *live.Cluster) {
			going(c, "seed-cp-2", plain)
			c.Kube.Nodes[1].Ready = false
		}, []string{"remove-member seed-cp-2"}},
		{"nobody else can lead: an election decides", 1, func(w *rollout.Want, c *live.Cluster) {
			going(c, "seed-cp-1", plain)
		}, []string{"drain seed-cp-1"}},
	})
}
