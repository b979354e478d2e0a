// SPDX-License-Identifier: Apache-2.0

package rollout_test

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/theseus-gitops/theseus/reconcile/live"
	"github.com/theseus-gitops/theseus/reconcile/rollout"
	"github.com/theseus-gitops/theseus/reconcile/rollout/rollouttest"
)

// row is one situation and its one right outcome.
type row struct {
	image    string // what runs; "" is registry.k8s.io/coredns/coredns:v1.14.2
	corefile string // "" is kubeadm's
	tag      string // wanted; "" is v1.14.6
	repo     string // wanted
	skip     bool
	takeOver bool
	change   func(*live.Kube)
	// One of: the reason of a stall; a wait, whose why says; a converged cluster, with or without a notice; the first step, and the image in the end.
	stalled string
	waits   bool
	says    string
	done    bool
	notice  string // of a Done, or of the first step
	image2  string
	first   string
}

// Sources: kubernetes-sigs/cluster-api's own tables of its CoreDNS update (workload_cluster_coredns_test.go, names
// "capi …"), and public reports by their number. Where Theseus differs on purpose, the case says why.
func rows() map[string]row {
	noDNS := func(change func(*live.DNS)) func(*live.Kube) { return func(k *live.Kube) { change(&k.DNS) } }
	manager := func(name string) func(*live.Kube) {
		return noDNS(func(d *live.DNS) { d.Deployment.Manager = live.Manager{Name: name, Evidence: "label x=y"} })
	}
	const old = "registry.k8s.io/coredns/coredns:"
	return map[string]row{
		"capi 1 skipped by the user: dns.disabled with a broken ConfigMap": {change: func(k *live.Kube) {
			k.KubeadmConfig.DNS.Disabled = true
			k.DNS.Config.Data = nil
		}, done: true, notice: "dns.disabled"},
		"drained a moment ago, and no pod answers yet": {change: noDNS(func(d *live.DNS) {
			for i := range d.Pods {
				d.Pods[i].Ready, d.Pods[i].Created = false, now().Add(-10*time.Second)
			}
		}), waits: true, says: "coming up"},
		"no pod answers, and has not for long": {change: noDNS(func(d *live.DNS) {
			for i := range d.Pods {
				d.Pods[i].Ready, d.Pods[i].Created = false, now().Add(-time.Hour)
			}
		}), first: "canary-coredns"},
		"new pods that crash are not waited for": {change: noDNS(func(d *live.DNS) {
			for i := range d.Pods {
				d.Pods[i].Ready, d.Pods[i].Restarts, d.Pods[i].Created = false, 1, now().Add(-10*time.Second)
			}
		}), first: "canary-coredns"},
		"capi 2 no ConfigMap, no Deployment":    {change: noDNS(func(d *live.DNS) { d.Config, d.Deployment = nil, nil }), done: true, notice: "ConfigMap"},
		"capi 2b ConfigMap alone missing":       {change: noDNS(func(d *live.DNS) { d.Config = nil }), done: true, notice: "ConfigMap"},
		"capi 2c Deployment alone missing":      {change: noDNS(func(d *live.DNS) { d.Deployment = nil }), done: true, notice: "Deployment"},
		"capi 3 ConfigMap without Corefile key": {change: noDNS(func(d *live.DNS) { d.Config.Data = map[string]string{"other": "x"} }), stalled: "CorefileMissing"},
		"capi 5 downgrade":                      {image: "registry.k8s.io/some-folder/coredns:1.6.2", tag: "1.1.3", stalled: "DNSDowngrade", says: "lower"},
		"capi 6 kubeadm-config missing":         {change: func(k *live.Kube) { k.KubeadmConfig = nil }, stalled: "KubeadmConfigMissing"},
		"capi 7 the migration fails": {image: "registry.k8s.io/coredns:1.3.1", tag: "1.5.0", stalled: "CorefileRefused",
			corefile: ".:53 {\n  errors\n  kubernetes cluster.local\n  proxy . 1.1.1.1\n  proxy . 8.8.8.8\n}\n"},
		"capi 8 another registry and version": {image: "k8s.gcr.io/some-folder/coredns:1.6.2", repo: "k8s.gcr.io/some-repo", tag: "1.7.0", image2: "k8s.gcr.io/some-repo/coredns:1.7.0"},
		"capi 9 a mirror keeps the name coredns": {image: "k8s.gcr.io/some-repo/coredns:1.7.0", repo: "k8s.gcr.io/some-repo", tag: "1.8.0",
			image2: "k8s.gcr.io/some-repo/coredns:1.8.0"},
		"capi 10 the default registry before 1.8.0": {image: "k8s.gcr.io/coredns:1.6.7", repo: "k8s.gcr.io", tag: "1.7.0", image2: "k8s.gcr.io/coredns:1.7.0"},
		"capi 11 already there": {image: "k8s.gcr.io/coredns:1.7.0", repo: "k8s.gcr.io", tag: "1.7.0", done: true, change: func(k *live.Kube) {
			k.KubeadmConfig.DNS = live.KubeadmDNS{ImageRepository: "k8s.gcr.io", ImageTag: "1.7.0"}
		}},
		"capi 11b already there, but kubeadm-config says otherwise (ours: the next join would disagree)": {image: "k8s.gcr.io/coredns:1.7.0", repo: "k8s.gcr.io", tag: "1.7.0", first: "sync-dns-config", image2: "k8s.gcr.io/coredns:1.7.0"},
		"capi 12 the default registry gains a folder at 1.8.0":                                           {image: "k8s.gcr.io/coredns:1.7.0", tag: "v1.8.0", image2: "k8s.gcr.io/coredns/coredns:v1.8.0"},
		"capi 13 already at a version the library lacks": {image: "k8s.gcr.io/coredns/coredns:v1.8.1", tag: "v1.8.1", done: true, change: func(k *live.Kube) {
			k.KubeadmConfig.DNS.ImageTag = "v1.8.1"
		}},
		"image without a tag":                                   {image: "k8s.gcr.io/coredns", stalled: "DNSImageUnreadable", says: "tag"},
		"image that is none":                                    {image: "k8s.gcr.io/asd:1123/asd:coredns:1.6.1", stalled: "DNSImageUnreadable"},
		"image tag that is no version":                          {image: "k8s.gcr.io/coredns:v1X6.2", stalled: "DNSImageUnreadable"},
		"image by digest alone":                                 {image: "registry.k8s.io/coredns/coredns@sha256:" + strings.Repeat("a", 64), stalled: "DNSImageUnreadable"},
		"image by tag and digest, another tag":                  {image: old + "v1.14.2@sha256:" + strings.Repeat("a", 64), image2: old + "v1.14.6"},
		"image by tag and digest, the same tag":                 {image: old + "v1.14.6@sha256:" + strings.Repeat("a", 64), first: "sync-dns-config", image2: old + "v1.14.6@sha256:" + strings.Repeat("a", 64)},
		"docker.io image of one part":                           {image: "coredns:1.11.1", tag: "1.12.1", image2: "coredns:1.12.1"},
		"vendor suffix (kubernetes#84326)":                      {image: old + "v1.12.0-100", tag: "v1.12.1", image2: old + "v1.12.1"},
		"vendor suffix with two underscores":                    {image: "myrepo/coredns:v1.8.6_vmware.1_b2", tag: "v1.9.3_vmware.1_b1", image2: "myrepo/coredns:v1.9.3_vmware.1_b1"},
		"same version, another suffix":                          {image: "myrepo/coredns:v1.9.3_vmware.1", tag: "v1.9.3_vmware.2", image2: "myrepo/coredns:v1.9.3_vmware.2"},
		"same version, another registry":                        {image: old + "v1.14.6", repo: "mirror.example/dns", image2: "mirror.example/dns/coredns:v1.14.6"},
		"unknown version, another registry (C7)":                {image: "a.example/coredns:v1.99.0", tag: "v1.99.0", repo: "b.example", image2: "b.example/coredns:v1.99.0"},
		"newer than the library (spectrocloud/cluster-api#241)": {tag: "v1.99.0", image2: old + "v1.99.0"},
		"unknown and old (kubespray#6596)":                      {image: "registry.k8s.io/coredns:1.6.8", tag: "1.7.0", stalled: "CorefileRefused"},
		"unknown and old, with consent (kubernetes#84523)":      {image: "registry.k8s.io/coredns:1.6.8", tag: "1.7.0", skip: true, image2: "registry.k8s.io/coredns:1.7.0"},
		"no container coredns": {change: noDNS(func(d *live.DNS) { d.Deployment.Image, d.Deployment.Containers = "", []string{"dns", "sidecar"} }),
			stalled: "DNSContainerMissing", says: "sidecar"},
		"managed by Helm":           {change: manager("Helm"), stalled: "DNSManagedElsewhere", says: "Helm"},
		"managed by Helm, at rest":  {image: old + "v1.14.6", change: manager("Helm"), done: true, notice: "Helm"},
		"managed by Helm, consent":  {change: manager("Helm"), takeOver: true, image2: old + "v1.14.6"},
		"ConfigMap managed by Flux": {change: noDNS(func(d *live.DNS) { d.Config.Manager = live.Manager{Name: "Flux", Evidence: "label"} }), stalled: "DNSManagedElsewhere", says: "ConfigMap"},
		"ClusterRole missing":       {change: noDNS(func(d *live.DNS) { d.Role = nil }), stalled: "DNSRoleMissing"},
		"ClusterRole not needed below 1.8.1": {image: "registry.k8s.io/coredns:1.6.7", tag: "1.7.0", change: noDNS(func(d *live.DNS) { d.Role = nil }),
			image2: "registry.k8s.io/coredns:1.7.0"},
		"annotation of a run unreadable": {change: noDNS(func(d *live.DNS) { d.Config.RunUnreadable = "unexpected end of JSON input" }), stalled: "DNSRunUnreadable"},
		"migration without a mounted Corefile": {image: "registry.k8s.io/coredns:1.6.7", corefile: rollouttest.OldCorefile(), change: noDNS(func(d *live.DNS) {
			d.Deployment.Volume.Items = []live.VolumeItem{{Key: "dns.conf", Path: "Corefile"}}
		}), stalled: "CorefileVolumeUnknown"},
		"no migration needed, whatever is mounted": {change: noDNS(func(d *live.DNS) {
			d.Deployment.Volume.Items = []live.VolumeItem{{Key: "dns.conf", Path: "Corefile"}}
		}), first: "canary-coredns"},
		"grpc is kept, and only warned about (kubeadm#2830)": {corefile: ".:53 {\n  errors\n  kubernetes cluster.local\n  grpc . 127.0.0.1:5553\n}\n", image2: old + "v1.14.6", notice: "grpc"},
		"a tag older than what kubeadm ships (cluster-api#6429)": {image: old + "v1.13.1", tag: "v1.13.1", done: true, notice: "older than v1.14.2", change: func(k *live.Kube) {
			k.KubeadmConfig.DNS.ImageTag = "v1.13.1"
		}},
		"a paused Deployment brings no pods": {change: noDNS(func(d *live.DNS) { d.Deployment.Rollout.Paused = true }), stalled: "DNSDeploymentPaused", says: "spec.paused"},
		"a Deployment scaled to zero can't be asked": {change: noDNS(func(d *live.DNS) {
			d.Deployment.Rollout = live.Rollout{Generation: 1, ObservedGeneration: 1}
			d.Pods = nil
		}), first: "canary-coredns", notice: "scaled to 0"},
		"at rest and scaled to zero": {image: old + "v1.14.6", change: func(k *live.Kube) {
			k.KubeadmConfig.DNS.ImageTag, k.DNS.Deployment.Rollout, k.DNS.Pods = "v1.14.6", live.Rollout{Generation: 1, ObservedGeneration: 1}, nil
		}, done: true, notice: "scaled to 0"},
		"the wanted image, and no pod of it runs": {image: old + "v1.14.6", change: func(k *live.Kube) {
			k.KubeadmConfig.DNS.ImageTag, k.DNS.Deployment.Rollout.Unavailable = "v1.14.6", 2
			for i := range k.DNS.Pods {
				k.DNS.Pods[i].Ready, k.DNS.Pods[i].Waiting = false, "CrashLoopBackOff"
			}
		}, stalled: "DNSNotServing", says: "CrashLoopBackOff"},
		"new pods wait for another container, not for CoreDNS": {image: old + "v1.14.6", change: func(k *live.Kube) {
			k.DNS.Config.Run = &live.DNSRun{From: old + "v1.14.2", To: old + "v1.14.6", Opened: now().Add(-time.Hour)}
			k.DNS.Deployment.Rollout.Unavailable = 1
			k.DNS.Pods[0].Ready, k.DNS.Pods[0].Sidecar = false, "container node-cache can't start: ErrImagePull"
		}, stalled: "DNSSidecarNotReady", says: "node-cache"},
		"a crashed CoreDNS is quoted": {image: old + "v1.14.6", change: func(k *live.Kube) {
			k.KubeadmConfig.DNS.ImageTag, k.DNS.Deployment.Rollout.Unavailable = "v1.14.6", 2
			for i := range k.DNS.Pods {
				k.DNS.Pods[i].Ready, k.DNS.Pods[i].Waiting, k.DNS.Pods[i].LastWords = false, "CrashLoopBackOff", "Corefile:3: unknown directive"
			}
		}, stalled: "DNSNotServing", says: `its last words: "Corefile:3: unknown directive"`},
		"the wanted image, and one pod of it is missing": {image: old + "v1.14.6", change: func(k *live.Kube) {
			k.KubeadmConfig.DNS.ImageTag, k.DNS.Deployment.Rollout.Unavailable, k.DNS.Pods[0].Ready = "v1.14.6", 1, false
		}, waits: true, says: "not all of its pods"},
		"somebody's Corefile-backup would be replaced": {image: "registry.k8s.io/coredns:1.6.7", corefile: rollouttest.OldCorefile(), change: noDNS(func(d *live.DNS) {
			d.Config.Data[live.CorefileBackupKey] = "mine"
		}), first: "canary-coredns", notice: "holds another text (4 bytes", image2: old + "v1.14.6"},
		"a canary that a killed run left, and nothing else to do": {image: old + "v1.14.6", change: func(k *live.Kube) {
			k.KubeadmConfig.DNS.ImageTag, k.DNS.Canary = "v1.14.6", true
		}, first: "remove-canary"},
		"a Corefile that the library panics on": {corefile: "{\n errors\n}\n", image: "registry.k8s.io/coredns:1.6.7", stalled: "CorefileRefused"},
		"a Corefile that is none":               {corefile: ".:53 {\n  errors\n", stalled: "CorefileRefused"},
	}
}

func TestRows(t *testing.T) {
	t.Parallel()
	for name, r := range rows() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r.check(t)
		})
	}
}

func (r row) check(t *testing.T) {
	t.Helper()
	image, corefile, want := r.image, r.corefile, rollout.Want{Revision: "r", DNS: &rollout.WantDNS{Tag: "v1.14.6", Repository: r.repo, SkipMigration: r.skip, TakeOver: r.takeOver}}
	if image == "" {
		image = repo + "v1.14.2"
	}
	if corefile == "" {
		corefile = rollouttest.DefaultCorefile
	}
	if r.tag != "" {
		want.DNS.Tag = r.tag
	}
	have := rollouttest.New(image, corefile).Observe()
	if r.change != nil {
		r.change(have.Kube)
	}
	before := *have.Kube
	decision := rollout.Next(want, have, now())
	if !maps.Equal(dataOf(before), dataOf(*have.Kube)) {
		t.Error("Next changed what it was given")
	}
	switch d := decision.(type) {
	case rollout.Stalled:
		if d.Failure.Reason != r.stalled || !strings.Contains(d.Failure.Message, r.says) || d.Failure.Remedy == "" {
			t.Errorf("stalled: %+v; want reason %q, message with %q, and a remedy", d.Failure, r.stalled, r.says)
		}
	case rollout.Done:
		if !r.done || !strings.Contains(strings.Join(d.Notices, "\n"), r.notice) {
			t.Errorf("done: %+v; want done %v with notice %q", d, r.done, r.notice)
		}
	case rollout.Do:
		r.checkPlan(t, d, rollout.Play(want, have, now()))
	case rollout.Wait:
		if !r.waits || !strings.Contains(d.Why, r.says) {
			t.Errorf("waits: %+v; want that %v, saying %q", d, r.waits, r.says)
		}
	}
}

func (r row) checkPlan(t *testing.T, first rollout.Do, plan rollout.Plan) {
	t.Helper()
	if r.stalled != "" || r.done || r.waits {
		t.Fatalf("begins with %s; want stalled %q or done %v", first.Step.Name(), r.stalled, r.done)
	}
	if _, done := plan.End.(rollout.Done); !done {
		t.Fatalf("the plan ends with %+v", plan.End)
	}
	if !strings.Contains(strings.Join(first.Notices, "\n"), r.notice) {
		t.Errorf("notices %q, want one with %q", first.Notices, r.notice)
	}
	if r.first != "" && first.Step.Name() != r.first {
		t.Errorf("begins with %s, want %s", first.Step.Name(), r.first)
	}
	i := slices.IndexFunc(plan.Steps, func(s rollout.Step) bool {
		p, ok := s.Act.(rollout.PatchDNS)
		return ok && p.Purpose == rollout.UpdateImage
	})
	switch {
	case i < 0 && r.image2 != "" && r.image2 != r.image:
		t.Errorf("the plan never sets the image; want %s", r.image2)
	case i >= 0 && r.image2 != "" && plan.Steps[i].Act.(rollout.PatchDNS).Image != r.image2:
		t.Errorf("image %s, want %s", plan.Steps[i].Act.(rollout.PatchDNS).Image, r.image2)
	}
}

func dataOf(k live.Kube) map[string]string {
	if k.DNS.Config == nil {
		return nil
	}
	return k.DNS.Config.Data
}

func now() time.Time { return time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC) }

// capi 4 and 14: a spec without a tag asks for nothing, whatever the cluster looks like.
func TestNoTagNoChange(t *testing.T) {
	t.Parallel()
	have := rollouttest.New("garbage:::", "garbage").Observe()
	if d, done := rollout.Next(rollout.Want{Revision: "r"}, have, now()).(rollout.Done); !done {
		t.Errorf("%+v, want Done", d)
	}
}

func TestNotObservedIsNoGroundToAct(t *testing.T) {
	t.Parallel()
	if d, waits := rollout.Next(wantDNS("v1.14.6"), live.Cluster{}, now()).(rollout.Wait); !waits {
		t.Errorf("%+v, want Wait", d)
	}
}
