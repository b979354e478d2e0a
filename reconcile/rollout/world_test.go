// SPDX-License-Identifier: Apache-2.0

package rollout_test

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

// world is a cluster's CoreDNS as Kubernetes would keep it: every object has a version that moves with each write,
// a Deployment's pods follow its template after a while, and nothing happens that was not asked for.
// It shares no code with the steps' models.
type world struct {
	now       time.Time
	version   int
	configV   string
	deployV   string
	kubeadmV  string
	roleV     string
	data      map[string]string
	run       *live.DNSRun
	image     string
	items     []live.VolumeItem
	noVolume  bool
	changed   time.Time
	kubeadm   live.KubeadmDNS
	role      []live.PolicyRule
	book      logbook.Book
	broken    map[string]bool // images whose pods never come up
	badCanary map[string]bool // images whose canary fails
	badAnswer map[string]bool // images whose pods answer wrongly once they run
	// running is what the pods run, and the Corefile that each of them reads.
	running string
	story   []string
}

const defaultCorefile = `.:53 {
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

// oldCorefile lacks what 1.7.0 makes a new default, so that leaving 1.6.7 migrates it.
var oldCorefile = strings.Replace(defaultCorefile, "forward . /etc/resolv.conf {\n       max_concurrent 1000\n    }", "forward . /etc/resolv.conf", 1) //nolint:gochecknoglobals // a constant text

func newWorld(image, text string) *world {
	w := &world{
		now: time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC), data: map[string]string{live.CorefileKey: text},
		image: image, running: image, items: []live.VolumeItem{{Key: live.CorefileKey, Path: "Corefile"}},
		kubeadm: live.KubeadmDNS{}, role: []live.PolicyRule{{
			APIGroups: []string{"discovery.k8s.io"}, Resources: []string{"endpointslices"}, Verbs: []string{"list", "watch"},
		}},
		broken: map[string]bool{}, badCanary: map[string]bool{}, badAnswer: map[string]bool{},
	}
	for _, v := range []*string{&w.configV, &w.deployV, &w.kubeadmV, &w.roleV} {
		w.bump(v)
	}
	return w
}

func (w *world) bump(v *string) {
	w.version++
	*v = fmt.Sprint(w.version)
}

// observe is what an honest observer would see now.
func (w *world) observe() live.Cluster {
	kube := live.Kube{
		ServerVersion: "v1.36.3", Book: w.book,
		KubeadmConfig: &live.KubeadmConfig{ResourceVersion: w.kubeadmV, ClusterConfiguration: "original", DNSDomain: "cluster.local", DNS: w.kubeadm},
	}
	kube.DNS = live.DNS{
		Config:     &live.DNSConfig{ResourceVersion: w.configV, Data: maps.Clone(w.data), Run: w.run},
		Deployment: &live.DNSDeployment{ResourceVersion: w.deployV, Image: w.image, Containers: []string{"coredns"}, Changed: w.changed, Rollout: w.rollout()},
		Role:       &live.DNSRole{ResourceVersion: w.roleV, Rules: slices.Clone(w.role)},
	}
	if !w.noVolume {
		kube.DNS.Deployment.Volume = &live.ConfigVolume{Name: "config-volume", Items: slices.Clone(w.items)}
	}
	if w.broken[w.image] && w.running != w.image {
		kube.DNS.Pods = []live.DNSPod{{Name: "coredns-new", Image: w.image, Waiting: "CrashLoopBackOff", Message: "back-off", Restarts: 1}}
	}
	return live.Cluster{Kube: &kube}
}

func (w *world) rollout() live.Rollout {
	r := live.Rollout{Generation: 1, ObservedGeneration: 1, Wanted: 2, Total: 2, Updated: 2}
	if !w.settled() {
		r.Updated, r.Total, r.Unavailable = 1, 3, 1
	}
	return r
}

func (w *world) settled() bool {
	return w.running == w.image && w.now.Sub(w.changed) > 20*time.Second
}

// pass lets time go by; pods follow the template unless their image is broken.
func (w *world) pass(d time.Duration) {
	w.now = w.now.Add(d)
	if !w.broken[w.image] {
		w.running = w.image
	}
}

// do carries out one step as the API server would, preconditions included.
func (w *world) do(step rollout.Step) error {
	stale := func(have, want string) bool { return want != have }
	switch act := step.Act.(type) {
	case rollout.EnsureDNSRole:
		if stale(w.roleV, act.ResourceVersion) {
			return rollout.ErrConflict
		}
		w.role = append(w.role, live.PolicyRule{APIGroups: []string{"discovery.k8s.io"}, Resources: []string{"endpointslices"}, Verbs: []string{"list", "watch"}})
		w.bump(&w.roleV)
	case rollout.CanaryDNS:
		if w.badCanary[act.Image] {
			return &rollout.Failure{Reason: "DNSCanaryFailed", Message: "the canary never became ready", Remedy: "look"}
		}
		if stale(w.configV, act.ResourceVersion) {
			return rollout.ErrConflict
		}
		run := act.Run
		w.run = &run
		w.bump(&w.configV)
	case rollout.SyncDNSConfig:
		if stale(w.kubeadmV, act.ResourceVersion) {
			return rollout.ErrConflict
		}
		if act.Original != "" {
			w.book.Originals = &logbook.Originals{KubeadmConfig: act.Original}
		}
		w.kubeadm = act.DNS
		w.bump(&w.kubeadmV)
	case rollout.WriteCorefile:
		if stale(w.configV, act.ResourceVersion) {
			return rollout.ErrConflict
		}
		w.data[act.Key] = act.Text
		w.bump(&w.configV)
	case rollout.PatchDNS:
		if stale(w.deployV, act.ResourceVersion) {
			return rollout.ErrConflict
		}
		w.patch(act)
	case rollout.RecordFailure:
		w.book.FailedTarget = &act.Failed
	case rollout.VerifyDNS:
		if w.badAnswer[w.image] {
			return &rollout.Failure{Reason: "DNSVerifyFailed", Message: "SERVFAIL", Remedy: "look"}
		}
		run := act.Run
		w.run = &run
		w.bump(&w.configV)
	case rollout.RecordDNSRun:
		run := act.Run
		w.run = &run
		w.bump(&w.configV)
	}
	return nil
}

func (w *world) patch(act rollout.PatchDNS) {
	if act.Image != "" {
		w.image = act.Image
	}
	if act.Volume != "" {
		w.items = slices.Clone(act.Items)
	}
	w.running, w.changed = "", w.now
	w.bump(&w.deployV)
}

// mounted is the Corefile that the present template shows to its pods.
func (w *world) mounted() string {
	if w.items == nil {
		return w.data[live.CorefileKey]
	}
	for _, it := range w.items {
		if it.Path == "Corefile" {
			return w.data[it.Key]
		}
	}
	return ""
}

func (w *world) tell(format string, args ...any) {
	w.story = append(w.story, fmt.Sprintf(format, args...))
}
