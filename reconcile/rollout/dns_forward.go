// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"fmt"
	"strings"

	"github.com/theseus-gitops/theseus/reconcile/corefile"
	"github.com/theseus-gitops/theseus/reconcile/live"
	"github.com/theseus-gitops/theseus/reconcile/skew"
)

// forward brings the target: the image that runs is not it.
func (d *dns) forward() Decision {
	if f := d.failed(); f != nil {
		return d.remembered(f)
	}
	original, failure := d.original()
	if failure != nil {
		return Stalled{Failure: *failure}
	}
	plan := d.assess(original)
	if plan.Outcome == corefile.Refused {
		return Stalled{Failure: d.refused(plan)}
	}
	if d.deploy.Rollout.Paused {
		return Stalled{Failure: d.paused()}
	}
	decision := d.prepare(original, plan)
	if decision == nil && d.config.Data[live.CorefileKey] != plan.Corefile {
		decision = d.migrate(original, plan)
	}
	if decision == nil {
		decision = d.updateImage(plan)
	}
	if do, ok := decision.(Do); ok {
		do.Notices = append(texts(plan.Notices), d.warnings(original, plan)...)
		return do
	}
	return decision
}

// original is the Corefile as it was before this run: the backup once the run has made one, so that a
// migrated text is never migrated twice, nor taken for the original.
func (d *dns) original() (string, *Failure) {
	text, ok := d.config.Data[live.CorefileKey]
	backup, backed := d.config.Data[live.CorefileBackupKey]
	if d.run.Open() && d.run.From == d.deploy.Image {
		switch {
		case live.Hash(text) != d.run.Corefile && live.Hash(text) != d.run.Candidate && d.mountedKey() == live.CorefileBackupKey:
			return "", &Failure{
				Reason:  "CorefileEdited",
				Message: "ConfigMap kube-system/coredns: Corefile was edited by someone else while CoreDNS was being upgraded; the pods still read Corefile-backup",
				Remedy:  "put the text you want into both keys, Corefile and Corefile-backup, and remove the annotation " + live.DNSRunAnnotation,
			}
		case live.Hash(backup) == d.run.Corefile && live.Hash(text) == d.run.Candidate:
			return backup, nil
		}
	}
	if d.mountedKey() == live.CorefileBackupKey && backed {
		return backup, nil
	}
	if !ok {
		return "", &Failure{
			Reason:  "CorefileMissing",
			Message: "ConfigMap kube-system/coredns has no key Corefile",
			Remedy:  "restore the key Corefile; CoreDNS will not start without it",
		}
	}
	return text, nil
}

// prepare is everything before the Corefile or the Deployment is touched.
func (d *dns) prepare(original string, plan corefile.Assessment) Decision {
	if d.kube.KubeadmConfig == nil {
		return Stalled{Failure: Failure{
			Reason:  "KubeadmConfigMissing",
			Message: "ConfigMap kube-system/kubeadm-config does not exist, so what later joins would deploy can't be kept in agreement with CoreDNS " + d.to,
			Remedy:  "restore it with `kubeadm init phase upload-config kubeadm`",
		}}
	}
	if decision := d.prepareRole(); decision != nil {
		return decision
	}
	if plan.Corefile != d.config.Data[live.CorefileKey] && d.mountedKey() == "" {
		return Stalled{Failure: Failure{
			Reason:  "CorefileVolumeUnknown",
			Message: "the Corefile must be migrated, but Deployment kube-system/coredns mounts neither key Corefile nor Corefile-backup of ConfigMap coredns, so the running pods can't be kept on the old text",
			Remedy:  "mount key Corefile of ConfigMap coredns in the Deployment, or migrate the Corefile by hand and set coreDNS.skipCorefileMigration: true",
		}}
	}
	run := live.DNSRun{
		From: d.deploy.Image, To: d.target, Corefile: live.Hash(original), Candidate: live.Hash(plan.Corefile),
		Items: d.plainItems(), KubeadmDNS: d.kube.KubeadmConfig.DNS, Opened: d.now,
	}
	if !d.underWay(run) {
		if wait := d.comingUp(); wait != nil {
			return wait
		}
		return Do{Step: Step{
			Subject: subjectCanary,
			Why:     fmt.Sprintf("CoreDNS %s must answer with this Corefile before the Deployment is touched", d.to),
			Act:     CanaryDNS{Image: d.target, Corefile: plan.Corefile, Questions: d.questions(plan.Corefile), Run: d.keepOriginals(run), ResourceVersion: d.config.ResourceVersion},
		}}
	}
	if step := d.syncKubeadm(d.wantedKubeadmDNS(), "later joins and upgrades are to agree with CoreDNS "+d.to); step != nil {
		return Do{Step: *step}
	}
	return nil
}

// prepareRole grants what CoreDNS reads from 1.8.1 on.
func (d *dns) prepareRole() Decision {
	to, err := skew.ParseTag(d.to)
	if err != nil || to.Core().Compare(skew.Version{Major: 1, Minor: 8, Patch: 1}) < 0 {
		return nil
	}
	role := d.kube.DNS.Role
	if role == nil {
		return Stalled{Failure: Failure{
			Reason:  "DNSRoleMissing",
			Message: "ClusterRole system:coredns does not exist, so what CoreDNS may read can't be ensured",
			Remedy:  "restore it with `kubeadm init phase addon coredns`, or as your own CoreDNS manifests have it",
		}}
	}
	if role.ReadsEndpointSlices() {
		return nil
	}
	return Do{Step: Step{
		Subject: subjectRole, Why: "CoreDNS reads EndpointSlices from 1.8.1 on, and its role does not allow it yet",
		Act: EnsureDNSRole{ResourceVersion: role.ResourceVersion},
	}}
}

// underWay reports whether the recorded run is the wanted one and its canary has passed.
func (d *dns) underWay(run live.DNSRun) bool {
	return d.run.Open() && d.run.From == run.From && d.run.To == run.To && d.run.Corefile == run.Corefile && d.run.Candidate == run.Candidate
}

// keepOriginals carries over what an open run from the same image found before it changed anything: a new
// run, for another Corefile, would otherwise take the other run's changes for the state before.
func (d *dns) keepOriginals(run live.DNSRun) live.DNSRun {
	run.Before = d.before()
	if d.run.Open() && d.run.From == run.From {
		run.Items, run.KubeadmDNS = d.run.Items, d.run.KubeadmDNS
	}
	return run
}

// migrate changes the Corefile in the order that keeps the running pods on their own text: kubelets sync
// ConfigMaps into running pods, where the reload plugin would load the new text into the old binary
// (kubernetes/kubernetes#88811).
func (d *dns) migrate(original string, plan corefile.Assessment) Decision {
	if d.config.Data[live.CorefileBackupKey] != original {
		return Do{Step: Step{
			Subject: subjectConfig, Why: "the Corefile is kept before it is migrated",
			Act: WriteCorefile{Key: live.CorefileBackupKey, Text: original, ResourceVersion: d.config.ResourceVersion},
		}}
	}
	if d.mountedKey() != live.CorefileBackupKey {
		return Do{Step: Step{
			Subject: subjectDeployment, Why: fmt.Sprintf("pods of CoreDNS %s keep the Corefile they know while it is migrated", d.from),
			Act: PatchDNS{Volume: d.deploy.Volume.Name, Items: d.backupItems(), ResourceVersion: d.deploy.ResourceVersion, Purpose: MountBackup},
		}}
	}
	if decision := d.await(); decision != nil {
		return decision
	}
	return Do{Step: Step{
		Subject: subjectConfig, Why: fmt.Sprintf("CoreDNS %s needs it: %s", d.to, changes(plan.Notices)),
		Act: WriteCorefile{Key: live.CorefileKey, Text: plan.Corefile, ResourceVersion: d.config.ResourceVersion},
	}}
}

// changes names what the migration is for.
func changes(notices []corefile.Notice) string {
	var out []string
	for _, n := range notices {
		if n.Severity == corefile.SeverityRemoved || n.Severity == corefile.SeverityNewDefault {
			out = append(out, n.Message)
		}
	}
	if len(out) == 0 {
		return "its Corefile differs"
	}
	return strings.Join(out, "; ")
}

// updateImage is the one patch that brings the target image, and the Corefile with it.
func (d *dns) updateImage(plan corefile.Assessment) Decision {
	act := PatchDNS{Image: d.target, ResourceVersion: d.deploy.ResourceVersion, Purpose: UpdateImage}
	why := fmt.Sprintf("CoreDNS %s → %s, Corefile byte for byte as before", d.from, d.to)
	if d.mountedKey() == live.CorefileBackupKey {
		act.Volume, act.Items = d.deploy.Volume.Name, d.run.Items
	}
	if plan.Outcome == corefile.Migrated {
		why = fmt.Sprintf("CoreDNS %s → %s, with the migrated Corefile", d.from, d.to)
	}
	return Do{Step: Step{Subject: subjectDeployment, Why: why, Act: act}}
}

// finish waits for the pods of the target, has them verified and closes the run.
func (d *dns) finish() Decision {
	if decision := d.await(); decision != nil {
		return decision
	}
	return Do{Step: d.verifyStep("every pod of CoreDNS "+d.to+" must answer as the canary did", d.closedForward())}
}

// verifyStep asks the pods and then records the run as it is to be once they have answered.
func (d *dns) verifyStep(why string, closed live.DNSRun) Step {
	return Step{
		Subject: subjectDeployment, Why: why,
		Act: VerifyDNS{
			Image: d.deploy.Image, Questions: d.questions(d.config.Data[live.CorefileKey]), Answers: d.run.Answers,
			Run: closed, ResourceVersion: d.config.ResourceVersion,
		},
	}
}
