// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"fmt"
	"time"

	"github.com/theseus-gitops/theseus/reconcile/corefile"
	"github.com/theseus-gitops/theseus/reconcile/image"
	"github.com/theseus-gitops/theseus/reconcile/live"
	"github.com/theseus-gitops/theseus/reconcile/logbook"
	"github.com/theseus-gitops/theseus/reconcile/skew"
)

// Subjects of the CoreDNS steps.
const (
	subjectRole       = "clusterrole/system:coredns"
	subjectConfig     = "configmap/coredns"
	subjectDeployment = "deployment/coredns"
	subjectKubeadm    = "configmap/kubeadm-config"
	subjectLogbook    = "configmap/theseus"
	subjectCanary     = "pod/" + live.DNSCanaryName
)

// dns is one look at CoreDNS: what is wanted, what is there, and what follows from the two alone.
type dns struct {
	want   Want
	kube   live.Kube
	now    time.Time
	config live.DNSConfig
	deploy live.DNSDeployment
	// target is the image wanted; from and to are tags.
	target   string
	from, to string
	// run is the recorded run, the zero value when there is none.
	run live.DNSRun
}

// nextDNS decides the CoreDNS part. The order is that of a run:
//
//	role → canary (opens the run) → kubeadm-config → [backup → pods read the backup → migrated Corefile] →
//	image → pods available → verified (closes the run)
//
// and, once the target is given up or withdrawn, back again from wherever it was.
func nextDNS(want Want, kube live.Kube, now time.Time) Decision {
	if ends := absentDNS(kube); ends != nil {
		return ends
	}
	d := lookAtDNS(want, kube, now)
	if failure := d.resolveTarget(); failure != nil {
		return Stalled{Failure: *failure}
	}
	if d.config.Manager.Known() || d.deploy.Manager.Known() {
		if ends := d.respectManager(); ends != nil {
			return ends
		}
	}
	switch {
	case d.restoring():
		return d.restore()
	case d.deploy.Image == d.target && d.run.Open() && d.run.To == d.target:
		return d.finish()
	case d.deploy.Image == d.target:
		return d.settled()
	default:
		return d.forward()
	}
}

func lookAtDNS(want Want, kube live.Kube, now time.Time) *dns {
	d := &dns{want: want, kube: kube, now: now, config: *kube.DNS.Config, deploy: *kube.DNS.Deployment}
	if d.config.Run != nil {
		d.run = *d.config.Run
	}
	return d
}

// absentDNS answers for a cluster without CoreDNS of kubeadm's making. Such a cluster is as wanted:
// there is nothing to upgrade (kubernetes-sigs/cluster-api does the same), but the user hears of it.
func absentDNS(kube live.Kube) Decision {
	const left = "CoreDNS is left alone: "
	switch {
	case kube.KubeadmConfig != nil && kube.KubeadmConfig.DNS.Disabled:
		return Done{Why: left + "kubeadm-config says dns.disabled", Notices: []string{"CoreDNS: kubeadm-config says dns.disabled, so coreDNS.imageTag has no effect; remove it from the spec"}}
	case kube.DNS.Config == nil:
		return Done{Why: left + "ConfigMap kube-system/coredns does not exist", Notices: []string{"CoreDNS: ConfigMap kube-system/coredns does not exist, so coreDNS.imageTag has no effect"}}
	case kube.DNS.Deployment == nil:
		return Done{Why: left + "Deployment kube-system/coredns does not exist", Notices: []string{"CoreDNS: Deployment kube-system/coredns does not exist, so coreDNS.imageTag has no effect"}}
	}
	return nil
}

// resolveTarget fills target, from and to.
func (d *dns) resolveTarget() *Failure {
	if d.config.RunUnreadable != "" {
		return &Failure{
			Reason: "DNSRunUnreadable", Message: "ConfigMap kube-system/coredns: annotation " + live.DNSRunAnnotation + " can't be read: " + d.config.RunUnreadable,
			Remedy: "compare Corefile and Corefile-backup by hand, put the right text into Corefile, then remove the annotation",
		}
	}
	if d.deploy.Image == "" {
		return &Failure{
			Reason: "DNSContainerMissing", Message: fmt.Sprintf("Deployment kube-system/coredns has no container named coredns, only %q", d.deploy.Containers),
			Remedy: "name the CoreDNS container coredns, or remove coreDNS.imageTag from the spec",
		}
	}
	current, err := image.Parse(d.deploy.Image)
	if err != nil {
		return &Failure{
			Reason: "DNSImageUnreadable", Message: "Deployment kube-system/coredns: " + err.Error(),
			Remedy: "set the image of container coredns to REPOSITORY:TAG once by hand",
		}
	}
	target, err := image.Target(current, image.Want{Repository: d.want.DNS.Repository, Tag: d.want.DNS.Tag})
	if err != nil {
		return &Failure{Reason: "DNSImageUnreadable", Message: "Deployment kube-system/coredns: " + err.Error(), Remedy: "correct the image by hand, or the spec's coreDNS section"}
	}
	if back, ok := d.ranBefore(); ok {
		target = back
	}
	d.target, d.from, d.to = target.String(), current.Tag, target.Tag
	return nil
}

// respectManager stops before an object that another tool manages is changed.
func (d *dns) respectManager() Decision {
	if d.want.DNS.TakeOver {
		return nil
	}
	object, m := "ConfigMap", d.config.Manager
	if d.deploy.Manager.Known() {
		object, m = "Deployment", d.deploy.Manager
	}
	what := fmt.Sprintf("%s kube-system/coredns is managed by %s (%s)", object, m.Name, m.Evidence)
	if d.deploy.Image == d.target {
		return Done{Why: "CoreDNS runs " + d.target, Notices: []string{"CoreDNS: " + what + "; Theseus changes nothing there"}}
	}
	return Stalled{Failure: Failure{
		Reason: "DNSManagedElsewhere", Message: fmt.Sprintf("CoreDNS runs %s, %s is wanted, but %s", d.deploy.Image, d.target, what),
		Remedy: fmt.Sprintf("upgrade CoreDNS with %s and remove coreDNS.imageTag from the spec, or set coreDNS.takeOver: true", m.Name),
	}}
}

// settled is the end: the image is the target's and no run is open.
func (d *dns) settled() Decision {
	if step := d.syncKubeadm(d.wantedKubeadmDNS(), "kubeadm-config is to name the CoreDNS that runs"); step != nil {
		return Do{Step: *step}
	}
	if f := d.failed(); f != nil {
		return d.remembered(f)
	}
	if decision := d.serving(); decision != nil {
		return decision
	}
	done := Done{Why: "CoreDNS runs " + d.target}
	if d.deploy.Rollout.Wanted == 0 {
		done.Notices = append(done.Notices, scaledToZero)
	}
	if notice := d.behind(); notice != "" {
		done.Notices = append(done.Notices, notice)
	}
	return done
}

// behind is the hint that a pinned tag has fallen behind: nothing else would tell (kubernetes-sigs/cluster-api#6429).
func (d *dns) behind() string {
	kubernetes, err := skew.Parse(d.kube.ServerVersion)
	if err != nil {
		return ""
	}
	runs, err := skew.ParseTag(d.to)
	shipped, known := skew.KubeadmCoreDNS(kubernetes)
	if err != nil || !known || runs.Core().Compare(shipped) >= 0 {
		return ""
	}
	return fmt.Sprintf("CoreDNS: %s is older than %s, which kubeadm of Kubernetes %d.%d deploys", d.to, shipped, kubernetes.Major, kubernetes.Minor)
}

// wantedKubeadmDNS is the dns section that agrees with the spec.
func (d *dns) wantedKubeadmDNS() live.KubeadmDNS {
	section := live.KubeadmDNS{ImageTag: d.want.DNS.Tag, ImageRepository: d.want.DNS.Repository}
	if section.ImageRepository == "" && d.kube.KubeadmConfig != nil {
		section.ImageRepository = d.kube.KubeadmConfig.DNS.ImageRepository
	}
	return section
}

// syncKubeadm is the step that makes kubeadm-config's dns section be section, nil when it is, or when
// there is no kubeadm-config.
func (d *dns) syncKubeadm(section live.KubeadmDNS, why string) *Step {
	cfg := d.kube.KubeadmConfig
	if cfg == nil || cfg.DNS == section {
		return nil
	}
	act := SyncDNSConfig{DNS: section, ResourceVersion: cfg.ResourceVersion}
	if d.kube.Book.Originals == nil || d.kube.Book.Originals.KubeadmConfig == "" {
		act.Original = cfg.ClusterConfiguration
	}
	return &Step{Subject: subjectKubeadm, Why: why, Act: act}
}

// failed is the memory of this very target having failed under this very spec, nil when there is none.
func (d *dns) failed() *logbook.FailedTarget {
	f := d.kube.Book.FailedTarget
	if f == nil || f.Revision != d.want.Revision || f.Target != d.targetName() {
		return nil
	}
	return f
}

func (d *dns) targetName() string { return "coredns " + d.target }

// assess judges the Corefile for the step from the running tag to the wanted one.
func (d *dns) assess(original string) corefile.Assessment {
	others := make(map[string]string, len(d.config.Data))
	for k, v := range d.config.Data {
		if k != live.CorefileKey && k != live.CorefileBackupKey {
			others[k] = v
		}
	}
	return corefile.Assess(corefile.Request{
		From: d.from, To: d.to, Corefile: original, OtherKeys: others, SkipMigration: d.want.DNS.SkipMigration,
	})
}
