// SPDX-License-Identifier: Apache-2.0

package status

import (
	"cmp"
	"slices"
	"time"

	"github.com/theseus-gitops/theseus/reconcile/image"
	"github.com/theseus-gitops/theseus/reconcile/live"
	"github.com/theseus-gitops/theseus/reconcile/logbook"
	"github.com/theseus-gitops/theseus/reconcile/rollout"
	"github.com/theseus-gitops/theseus/reconcile/skew"
)

// Report is what a pass over one cluster has to say. Reports of passes in which nothing happened must be equal:
// no durations, attempts or times of the pass in its texts.
type Report struct {
	Cluster string
	Stage   string
	Labels  map[string]string
	// Revision is the hash of the effective spec, "" when there is none (an invalid spec).
	Revision string
	Outcome  Outcome
	// Why is the sentence for people.
	Why string
	// Until is when a wait ends or becomes a failure; zero when nothing is waited for.
	Until time.Time
	// Failure says more about Stalled (and Invalid); nil when there is no more to say.
	Failure *rollout.Failure
	// Runbook is where to read on about Failure: a URL, or a path in Theseus's repository. "" when there is nothing.
	Runbook string
	// Want holds only what this version acts on, so that a cluster that is as wanted never shows a difference.
	Want logbook.Versions
	// Live is nil when the cluster was not observed.
	Live *live.Kube
	// Machines is nil when they were not observed, or are left alone.
	Machines *live.Machines
	// Plan is nil when there is none.
	Plan    *Plan
	Notices []string
	// Taken are the steps of this pass, for the command's output; the document does not hold them.
	Taken []TakenStep
	// Finished is the roll that ended in this pass; nil when none did.
	Finished *Entry
}

// StepOf is a rollout step as status writes it.
func StepOf(s rollout.Step) Step {
	return Step{Step: s.Name(), Subject: s.Subject, Why: s.Why}
}

// liveOf takes from an observation what the document shows.
func liveOf(kube live.Kube, machines *live.Machines) *Live {
	l := &Live{
		KubernetesVersion: line(kube.ServerVersion), CoreDNSBefore: coreDNSBefore(kube.DNS),
		BaseImages: baseImages(machines), Etcd: etcdVersions(kube.Plane),
	}
	if d := kube.DNS.Deployment; d != nil {
		l.CoreDNS = tagOf(d.Image)
	}
	for _, n := range kube.Nodes {
		if v := line(n.KubeletVersion); v != "" {
			l.KubeletVersions = append(l.KubeletVersions, v)
		}
	}
	slices.SortFunc(l.KubeletVersions, compareVersions)
	l.KubeletVersions = slices.Compact(l.KubeletVersions)
	return l
}

// coreDNSBefore is the tag that the Deployment had before the run that is open, once it has another image.
func coreDNSBefore(dns live.DNS) string {
	if dns.Config == nil || dns.Deployment == nil || !dns.Config.Run.Open() || dns.Deployment.Image == dns.Config.Run.From {
		return ""
	}
	return tagOf(dns.Config.Run.From)
}

func tagOf(reference string) string {
	ref, err := image.Parse(reference)
	if err != nil {
		return line(reference) // shown as it is: what it means is rollout's business
	}
	return cmp.Or(ref.Tag, ref.Digest)
}

// compareVersions orders by version; what is none comes last. Equal versions are ordered as text, so that the order is total.
func compareVersions(a, b string) int {
	va, errA := skew.Parse(a)
	vb, errB := skew.Parse(b)
	switch {
	case errA == nil && errB == nil:
		return cmp.Or(va.Compare(vb), cmp.Compare(a, b))
	case errA == nil:
		return -1
	case errB == nil:
		return 1
	}
	return cmp.Compare(a, b)
}
