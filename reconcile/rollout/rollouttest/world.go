// SPDX-License-Identifier: Apache-2.0

// Package rollouttest is a cluster's CoreDNS as a value, for tests of what decides and of what runs the decisions.
// It shares no code with the steps' models: it follows Kubernetes' rules by itself, so that it can contradict them.
// Start at New; Observe, Do and Pass are the whole world.
package rollouttest

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/theseus-gitops/theseus/reconcile/live"
	"github.com/theseus-gitops/theseus/reconcile/logbook"
	"github.com/theseus-gitops/theseus/reconcile/rollout"
)

// World is a cluster's CoreDNS as Kubernetes would keep it: every object has a version that moves with each write,
// a Deployment's pods follow its template after a while, and nothing happens that was not asked for.
// It shares no code with the steps' models.
type World struct {
	Now        time.Time
	version    int
	configV    string
	deployV    string
	kubeadmV   string
	roleV      string
	Data       map[string]string
	Run        *live.DNSRun
	Image      string
	Items      []live.VolumeItem
	NoVolume   bool
	changed    time.Time
	KubeadmDNS live.KubeadmDNS
	Role       []live.PolicyRule
	Book       logbook.Book
	Broken     map[string]bool // images whose pods never come up
	BadCanary  map[string]bool // images whose canary fails
	BadAnswer  map[string]bool // images whose pods answer wrongly once they run
	// Canary is what a killed run left.
	Canary bool
	// Paused and Replicas are the Deployment's.
	Paused   bool
	Replicas int32
	// Verified are the images whose pods have answered, in turn; the first is what ran at the beginning.
	Verified []string
	// running is what the newest pods run once they are up; serving is what answers meanwhile.
	running, serving string
	Story            []string
}

// DefaultCorefile is what kubeadm writes.
const DefaultCorefile = `.:53 {
    errors
    health {
       lameduck 5s
    }
    ready
    kubernetes cluster.local in-addr.arpa ip6.arpa {
       pods insecure
       fallthrough in-addr.arpa ip6.arpa
       ttl 30
    }
    prometheus :9153
    forward . /etc/resolv.conf {
       max_concurrent 1000
    }
    cache 30
    loop
    reload
    loadbalance
}
`

// OldCorefile lacks what 1.7.0 makes a new default, so that leaving 1.6.7 migrates it.
func OldCorefile() string {
	return strings.Replace(DefaultCorefile, "forward . /etc/resolv.conf {\n       max_concurrent 1000\n    }", "forward . /etc/resolv.conf", 1)
}

// New is a cluster whose CoreDNS runs an image with a Corefile, as kubeadm would have made it.
func New(image, text string) *World {
	w := &World{
		Now: time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC), Data: map[string]string{live.CorefileKey: text},
		Image: image, running: image, serving: image, Verified: []string{image}, Replicas: 2, Items: []live.VolumeItem{{Key: live.CorefileKey, Path: "Corefile"}},
		KubeadmDNS: live.KubeadmDNS{}, Role: []live.PolicyRule{{
			APIGroups: []string{"discovery.k8s.io"}, Resources: []string{"endpointslices"}, Verbs: []string{"list", "watch"},
		}},
		Broken: map[string]bool{}, BadCanary: map[string]bool{}, BadAnswer: map[string]bool{},
	}
	for _, v := range []*string{&w.configV, &w.deployV, &w.kubeadmV, &w.roleV} {
		w.bump(v)
	}
	return w
}

func (w *World) bump(v *string) {
	w.version++
	*v = fmt.Sprint(w.version)
}

// Observe is what an honest observer would see now.
func (w *World) Observe() live.Cluster {
	kube := live.Kube{
		ServerVersion: "v1.36.3", Book: w.Book,
		KubeadmConfig: &live.KubeadmConfig{ResourceVersion: w.kubeadmV, ClusterConfiguration: "original", DNSDomain: "cluster.local", DNS: w.KubeadmDNS},
	}
	kube.DNS = live.DNS{
		Config:     &live.DNSConfig{ResourceVersion: w.configV, Data: maps.Clone(w.Data), Run: w.Run},
		Deployment: &live.DNSDeployment{ResourceVersion: w.deployV, Image: w.Image, Containers: []string{"coredns"}, Changed: w.changed, Rollout: w.rollout()},
		Role:       &live.DNSRole{ResourceVersion: w.roleV, Rules: slices.Clone(w.Role)},
		Canary:     w.Canary, Pods: w.pods(),
	}
	if !w.NoVolume {
		kube.DNS.Deployment.Volume = &live.ConfigVolume{Name: "config-volume", Items: slices.Clone(w.Items)}
	}
	return live.Cluster{Kube: &kube}
}

// pods are those that serve, and a new one that does not come up.
func (w *World) pods() []live.DNSPod {
	var out []live.DNSPod
	for i := range w.Replicas {
		out = append(out, live.DNSPod{Name: fmt.Sprintf("coredns-%d", i), Image: w.serving, Ready: true})
	}
	if w.Broken[w.Image] && w.running != w.Image {
		out = append(out, live.DNSPod{Name: "coredns-new", Image: w.Image, Waiting: "CrashLoopBackOff", Message: "back-off", Restarts: 1})
	}
	return out
}

func (w *World) rollout() live.Rollout {
	r := live.Rollout{Generation: 1, ObservedGeneration: 1, Wanted: w.Replicas, Total: w.Replicas, Updated: w.Replicas, Paused: w.Paused}
	if !w.settled() {
		r.Updated, r.Total, r.Unavailable = 1, w.Replicas+1, 1
	}
	return r
}

func (w *World) settled() bool {
	return w.running == w.Image && w.Now.Sub(w.changed) > 20*time.Second
}

// Pass lets time go by; pods follow the template unless their image is broken.
func (w *World) Pass(d time.Duration) {
	w.Now = w.Now.Add(d)
	if !w.Broken[w.Image] && !w.Paused {
		w.running, w.serving = w.Image, w.Image
	}
}

// Do carries out one step as the API server would, preconditions included.
func (w *World) Do(step rollout.Step) error {
	if failure := w.refuses(step); failure != nil {
		return failure
	}
	have, want := w.precondition(step)
	if want != have {
		return rollout.ErrConflict
	}
	switch act := step.Act.(type) { //nolint:gochecksumtype // this world has CoreDNS alone
	case rollout.EnsureDNSRole:
		w.Role = append(w.Role, live.PolicyRule{APIGroups: []string{"discovery.k8s.io"}, Resources: []string{"endpointslices"}, Verbs: []string{"list", "watch"}})
		w.bump(&w.roleV)
	case rollout.CanaryDNS:
		w.Canary = false
		w.record(act.Run)
	case rollout.RemoveCanary:
		w.Canary = false
	case rollout.SyncDNSConfig:
		w.kubeadm(act)
	case rollout.WriteCorefile:
		w.Data[act.Key] = act.Text
		w.bump(&w.configV)
	case rollout.PatchDNS:
		w.patch(act)
	case rollout.RecordFailure:
		w.Book.FailedTarget = &act.Failed
	case rollout.VerifyDNS:
		w.Verified = append(w.Verified, w.Image)
		w.record(act.Run)
	case rollout.RecordDNSRun:
		w.record(act.Run)
	}
	return nil
}

// refuses is what goes wrong with a target, as an executor would find it out.
func (w *World) refuses(step rollout.Step) error {
	switch act := step.Act.(type) {
	case rollout.CanaryDNS:
		if w.BadCanary[act.Image] {
			return &rollout.Failure{Reason: "DNSCanaryFailed", Message: "the canary never became ready", Remedy: "look"}
		}
	case rollout.VerifyDNS:
		if w.serving != act.Image {
			return fmt.Errorf("asked pods of %s, of which none is there", act.Image)
		}
		if w.BadAnswer[w.Image] {
			return &rollout.Failure{Reason: "DNSVerifyFailed", Message: "SERVFAIL", Remedy: "look"}
		}
	default:
	}
	return nil
}

// precondition is the version that an object has and the one that a step was decided on.
func (w *World) precondition(step rollout.Step) (have, want string) {
	switch act := step.Act.(type) { //nolint:gochecksumtype // this world has CoreDNS alone
	case rollout.EnsureDNSRole:
		return w.roleV, act.ResourceVersion
	case rollout.CanaryDNS:
		return w.configV, act.ResourceVersion
	case rollout.SyncDNSConfig:
		return w.kubeadmV, act.ResourceVersion
	case rollout.WriteCorefile:
		return w.configV, act.ResourceVersion
	case rollout.PatchDNS:
		return w.deployV, act.ResourceVersion
	case rollout.VerifyDNS:
		return w.configV, act.ResourceVersion
	case rollout.RecordDNSRun:
		return w.configV, act.ResourceVersion
	case rollout.RecordFailure, rollout.RemoveCanary:
	}
	return "", ""
}

func (w *World) record(run live.DNSRun) {
	w.Run = &run
	w.bump(&w.configV)
}

func (w *World) kubeadm(act rollout.SyncDNSConfig) {
	if act.Original != "" {
		w.Book.Originals = &logbook.Originals{KubeadmConfig: act.Original}
	}
	w.KubeadmDNS = act.DNS
	w.bump(&w.kubeadmV)
}

func (w *World) patch(act rollout.PatchDNS) {
	if act.Image != "" {
		w.Image = act.Image
	}
	if act.Volume != "" {
		w.Items = slices.Clone(act.Items)
	}
	w.running, w.changed = "", w.Now
	w.bump(&w.deployV)
}

// Mounted is the Corefile that the present template shows to its pods.
func (w *World) Mounted() string {
	if w.Items == nil {
		return w.Data[live.CorefileKey]
	}
	for _, it := range w.Items {
		if it.Path == "Corefile" {
			return w.Data[it.Key]
		}
	}
	return ""
}

// Tell adds a line to the story, for goldens and for failures.
func (w *World) Tell(format string, args ...any) {
	w.Story = append(w.Story, fmt.Sprintf(format, args...))
}
