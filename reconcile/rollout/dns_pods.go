// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"fmt"
	"strings"
	"time"

	"github.com/theseus-gitops/theseus/reconcile/live"
)

// hopelessRestarts is how often a new pod may crash before waiting for it is pointless.
const hopelessRestarts = 3

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

// sidecar says what keeps the new pods from being ready when it is no fault of CoreDNS's own container in any of them.
func (d *dns) sidecar() string {
	found := ""
	for _, pod := range d.kube.DNS.Pods {
		if pod.Image != d.deploy.Image || pod.Ready || pod.Deleting {
			continue
		}
		if pod.Sidecar == "" {
			return ""
		}
		found = pod.Sidecar
	}
	return found
}

// ready counts the pods of an image that serve.
func (d *dns) ready(image string) int {
	n := 0
	for _, pod := range d.kube.DNS.Pods {
		if pod.Image == image && pod.Ready && !pod.Deleting {
			n++
		}
	}
	return n
}

// comeUpWithin is how long a pod may take to be ready before it is no longer expected to.
const comeUpWithin = 2 * time.Minute

// comingUp waits for the present pods while none is ready and one was only just made, as after a drain: without an answer of
// theirs the canary's can't be compared with anything. Those that do not come up are no reason to wait, the upgrade may mend them.
func (d *dns) comingUp() Decision {
	if d.ready(d.deploy.Image) > 0 {
		return nil
	}
	var until time.Time
	for _, pod := range d.kube.DNS.Pods {
		if end := pod.Created.Add(comeUpWithin); pod.Image == d.deploy.Image && !pod.Deleting && pod.Restarts == 0 && end.After(until) {
			until = end
		}
	}
	if !until.After(d.now) {
		return nil
	}
	return Wait{
		Until: until, Why: "CoreDNS " + d.from + ": its pods are coming up, and what they answer is what the canary is compared with",
		Subject: subjectDeployment, ResumedBy: AwaitedDNSRollout,
	}
}

// rolloutState tells how far the new pods are, which old ones still serve, and what holds back those that are not ready.
func (d *dns) rolloutState() string {
	r := d.deploy.Rollout
	if r.ObservedGeneration < r.Generation {
		return "its Deployment's controller has not seen the change yet"
	}
	var old int
	var troubles []string
	for _, pod := range d.kube.DNS.Pods {
		switch {
		case pod.Deleting:
		case pod.Ready && pod.Image != d.deploy.Image:
			old++
		case !pod.Ready && (pod.Waiting != "" || pod.Sidecar != ""):
			troubles = append(troubles, trouble(pod))
		}
	}
	state := fmt.Sprintf("%d of %d pods updated, %d available", r.Updated, r.Wanted, max(0, r.Total-r.Unavailable))
	if old > 0 {
		state = fmt.Sprintf("%d of %d new pods ready, %d old still serving", d.ready(d.deploy.Image), r.Wanted, old)
	}
	const told = 1 // pods of one template have one trouble
	if len(troubles) > told {
		troubles = append(troubles[:told], fmt.Sprintf("and %d more not ready", len(troubles)-told))
	}
	return strings.Join(append([]string{state}, troubles...), "; ")
}

// trouble is one pod's, bounded: it goes into lines, statuses and commits.
func trouble(pod live.DNSPod) string {
	if pod.Waiting == "" {
		return pod.Name + ": " + cut(pod.Sidecar, 200)
	}
	text := pod.Name + ": " + pod.Waiting
	switch {
	case pod.LastWords != "":
		text += fmt.Sprintf(", its last words: %q", pod.LastWords)
	case pod.Message != "":
		text += " (" + cut(pod.Message, 200) + ")"
	}
	return text
}

func cut(text string, most int) string {
	if r := []rune(text); len(r) > most {
		return string(r[:most]) + "…"
	}
	return text
}
