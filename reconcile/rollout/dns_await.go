// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"fmt"
	"strings"
	"time"

	"github.com/theseus-gitops/theseus/reconcile/corefile"
	"github.com/theseus-gitops/theseus/reconcile/logbook"
)

const (
	// dnsRolloutTimeout is how long the Deployment may take to have all its pods available. Images are already
	// on most nodes, so minutes are ample; kubeadm and Cluster API do not wait at all.
	dnsRolloutTimeout = 5 * time.Minute
	// hopelessRestarts is how often a new pod may crash before waiting for it is pointless.
	hopelessRestarts = 3
)

// await is nil once the pods of our newest change are all available, a Wait while they may still come, and
// the record of a failure when they won't.
func (d *dns) await() Decision {
	if d.deploy.Rollout.Complete() {
		return nil
	}
	deadline := d.deadline()
	if why := d.hopeless(deadline); why != "" {
		return Do{Step: d.giveUp(Failure{
			Reason:  "DNSRolloutFailed",
			Message: fmt.Sprintf("CoreDNS %s → %s: %s; %s", d.fromTag(), d.to, why, d.rolloutState()),
			Remedy:  "see why the new pods fail (kubectl -n kube-system describe pods -l k8s-app=kube-dns), correct the tag or the Corefile, or set spec.retry to try again",
		})}
	}
	return Wait{Until: deadline, Why: "waiting for CoreDNS: " + d.rolloutState(), ResumedBy: AwaitedDNSRollout}
}

// giveUp is the step that remembers the failure of the target.
func (d *dns) giveUp(f Failure) Step {
	return Step{
		Subject: subjectLogbook, Why: "CoreDNS " + d.to + " is given up before anything is undone",
		Act: RecordFailure{logbook.FailedTarget{
			Target: d.targetName(), Revision: d.want.Revision, Since: d.now, Reason: f.Reason, Message: f.Message, Remedy: f.Remedy,
		}},
	}
}

// awaitRestored is await on the way back, where giving up again is no way out.
func (d *dns) awaitRestored() Decision {
	if d.deploy.Rollout.Complete() {
		return nil
	}
	deadline := d.deadline()
	if why := d.hopeless(deadline); why != "" {
		return Stalled{Failure: Failure{
			Reason:  "DNSRestoreStuck",
			Message: fmt.Sprintf("CoreDNS was put back to %s, but its pods do not come up: %s; %s", d.run.From, why, d.rolloutState()),
			Remedy:  "see why the pods fail (kubectl -n kube-system describe pods -l k8s-app=kube-dns); the Corefile that worked is in key Corefile-backup or Corefile of ConfigMap kube-system/coredns",
		}}
	}
	return Wait{Until: deadline, Why: "waiting for the CoreDNS that was put back: " + d.rolloutState(), ResumedBy: AwaitedDNSRollout}
}

func (d *dns) deadline() time.Time {
	since := d.deploy.Changed
	if since.IsZero() {
		since = d.run.Opened
	}
	return since.Add(dnsRolloutTimeout)
}

// hopeless says why waiting is pointless, "" when it is not.
func (d *dns) hopeless(deadline time.Time) string {
	if d.now.After(deadline) {
		return fmt.Sprintf("its pods were not available within %s", dnsRolloutTimeout)
	}
	if d.deploy.Rollout.Stuck != "" && d.deploy.Rollout.ObservedGeneration >= d.deploy.Rollout.Generation {
		return "its rollout is stuck: " + d.deploy.Rollout.Stuck
	}
	for _, pod := range d.kube.DNS.Pods {
		if pod.Image == d.deploy.Image && !pod.Ready && !pod.Deleting && pod.Restarts >= hopelessRestarts && pod.Waiting == "CrashLoopBackOff" {
			return fmt.Sprintf("pod %s crashed %d times", pod.Name, pod.Restarts)
		}
	}
	return ""
}

// fromTag is the tag before the run, also when the Deployment already names the new one.
func (d *dns) fromTag() string {
	if d.deploy.Image == d.target && d.run.From != "" {
		return d.run.From[strings.LastIndex(d.run.From, ":")+1:]
	}
	return d.from
}

// rolloutState tells how far the Deployment is, and what holds back the pods that are not ready.
func (d *dns) rolloutState() string {
	r := d.deploy.Rollout
	if r.ObservedGeneration < r.Generation {
		return "its Deployment's controller has not seen the change yet"
	}
	state := fmt.Sprintf("%d of %d pods updated, %d unavailable", r.Updated, r.Wanted, r.Unavailable)
	for _, pod := range d.kube.DNS.Pods {
		if pod.Ready || pod.Deleting || pod.Waiting == "" {
			continue
		}
		state += fmt.Sprintf("; %s: %s", pod.Name, pod.Waiting)
		if pod.Message != "" {
			state += " (" + pod.Message + ")"
		}
	}
	return state
}

// questions are what canary and pods are asked: the API server's name in each zone of the kubernetes plugin,
// and the SOA of every other zone, so that a stub zone that stops answering is seen before users see it
// (coredns/coredns#6318).
func (d *dns) questions(text string) []Question {
	zones, err := corefile.Zones(text)
	if err != nil {
		return []Question{{Name: ".", Type: "SOA", Port: dnsPort}}
	}
	var out []Question
	seen := map[Question]bool{}
	for _, z := range zones {
		q := Question{Name: z.Name, Type: "SOA", Port: z.Port}
		switch {
		case z.Kubernetes && !reverse(z.Name):
			q = Question{Name: "kubernetes.default.svc." + z.Name, Type: "A", Port: z.Port}
		case z.Name == "." || reverse(z.Name):
			continue
		}
		if !seen[q] {
			seen[q] = true
			out = append(out, q)
		}
	}
	if len(out) == 0 {
		out = append(out, Question{Name: ".", Type: "SOA", Port: dnsPort})
	}
	return out
}

const dnsPort = 53

func reverse(zone string) bool {
	return strings.HasSuffix(zone, "in-addr.arpa.") || strings.HasSuffix(zone, "ip6.arpa.")
}
