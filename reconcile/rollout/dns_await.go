// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"fmt"
	"strings"
	"time"

	"github.com/theseus-gitops/theseus/reconcile/corefile"
	"github.com/theseus-gitops/theseus/reconcile/image"
	"github.com/theseus-gitops/theseus/reconcile/logbook"
)

const (
	// dnsRolloutTimeout is how long the Deployment may take to have all its pods available. Images are already
	// on most nodes, so minutes are ample; kubeadm and Cluster API do not wait at all.
	dnsRolloutTimeout = 5 * time.Minute
)

// await is nil once the pods of our newest change are all available, a Wait while they may still come, and
// the record of a failure when they won't.
func (d *dns) await() Decision {
	if d.deploy.Rollout.Complete() {
		return nil
	}
	if d.deploy.Rollout.Paused {
		return Stalled{Failure: d.paused()}
	}
	deadline := d.deadline()
	if why := d.hopeless(deadline); why != "" {
		if sidecar := d.sidecar(); sidecar != "" {
			return Stalled{Failure: Failure{
				Reason:  "DNSSidecarNotReady",
				Message: fmt.Sprintf("CoreDNS %s itself is up, but its pods are not ready: %s; %s", d.to, sidecar, d.rolloutState()),
				Remedy:  "mend that container in Deployment kube-system/coredns; the next pass then goes on",
			}}
		}
		return Do{Step: d.giveUp(Failure{
			Reason:  "DNSRolloutFailed",
			Message: fmt.Sprintf("CoreDNS %s → %s: %s; %s", d.fromTag(), d.to, why, d.rolloutState()),
			Remedy:  "correct the tag or the Corefile; to try the same again, set spec.retry to any new text",
		})}
	}
	return Wait{Until: deadline, Why: "CoreDNS " + tagOf(d.deploy.Image) + ": " + d.rolloutState(), Subject: subjectDeployment, ResumedBy: AwaitedDNSRollout}
}

// paused is a Deployment whose controller brings no pods: nothing that is changed would arrive.
func (d *dns) paused() Failure {
	return Failure{
		Reason:  "DNSDeploymentPaused",
		Message: fmt.Sprintf("Deployment kube-system/coredns is paused (spec.paused), so no pod of CoreDNS %s would come", d.to),
		Remedy:  "kubectl -n kube-system rollout resume deployment/coredns",
	}
}

// serving is nil when all pods of the image that is wanted are available. The image alone is no success: a cluster
// without DNS must not count as being as wanted.
func (d *dns) serving() Decision {
	r := d.deploy.Rollout
	if r.Complete() {
		return nil
	}
	if d.ready(d.deploy.Image) == 0 && r.Wanted > 0 && d.now.After(d.deadline()) {
		return Stalled{Failure: Failure{
			Reason:  "DNSNotServing",
			Message: fmt.Sprintf("CoreDNS %s is the image wanted, but no pod of it is ready: %s", d.to, d.rolloutState()),
			Remedy:  "see why the pods fail (kubectl -n kube-system describe pods -l k8s-app=kube-dns); Theseus did not change anything here that it could put back",
		}}
	}
	wait := Wait{
		Until: d.now.Add(dnsRolloutTimeout), Subject: subjectDeployment, ResumedBy: AwaitedNothing,
		Why: "CoreDNS " + d.to + " is there, but not all of its pods are available: " + d.rolloutState(),
	}
	if d.kube.Book.Roll != nil {
		// Pods that were drained from a machine come up elsewhere: the roll ends when they have.
		wait.ResumedBy = AwaitedDNSRollout
		wait.Else = &Failure{
			Reason: "DNSNotServing", Message: wait.Why,
			Remedy: "see why the pods do not come up (kubectl -n kube-system describe pods -l k8s-app=kube-dns); the next pass goes on",
		}
	}
	return wait
}

// remembered is the stall from the logbook's memory of this target, with what serves instead.
func (d *dns) remembered(f *logbook.FailedTarget) Decision {
	message := f.Message
	if d.deploy.Rollout.Complete() && d.deploy.Image != d.target {
		message += fmt.Sprintf(". CoreDNS %s runs as before, %d of %d pods ready", d.from, d.ready(d.deploy.Image), d.deploy.Rollout.Wanted)
	}
	return Stalled{Failure: Failure{Reason: f.Reason, Message: message, Remedy: f.Remedy}, Remembered: true}
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
	if d.deploy.Rollout.Paused {
		return Stalled{Failure: d.paused()}
	}
	deadline := d.deadline()
	if why := d.hopeless(deadline); why != "" {
		return Stalled{Failure: Failure{
			Reason:  "DNSRestoreStuck",
			Message: fmt.Sprintf("CoreDNS was put back to %s, but its pods do not come up: %s; %s", d.run.From, why, d.rolloutState()),
			Remedy:  "see why the pods fail (kubectl -n kube-system describe pods -l k8s-app=kube-dns); the Corefile that worked is in key Corefile-backup or Corefile of ConfigMap kube-system/coredns",
		}}
	}
	return Wait{Until: deadline, Why: "CoreDNS " + tagOf(d.run.From) + " is being put back: " + d.rolloutState(), Subject: subjectDeployment, ResumedBy: AwaitedDNSRollout}
}

func (d *dns) deadline() time.Time {
	since := d.deploy.Changed
	if since.IsZero() {
		since = d.run.Opened
	}
	return since.Add(dnsRolloutTimeout)
}

// fromTag is the tag before the run, also when the Deployment already names the new one.
func (d *dns) fromTag() string {
	if d.deploy.Image == d.target && d.run.From != "" {
		return tagOf(d.run.From)
	}
	return d.from
}

// tagOf is an image's tag, the whole reference where it has none.
func tagOf(reference string) string {
	ref, err := image.Parse(reference)
	if err != nil || ref.Tag == "" {
		return reference
	}
	return ref.Tag
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
