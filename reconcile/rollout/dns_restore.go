// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"fmt"
	"time"

	"github.com/theseus-gitops/theseus/reconcile/live"
)

// restoring reports whether what the newest run changed is to be put back: its target failed, is no longer wanted, or
// the spec went back to what ran before. What was never verified is no base to go on from.
func (d *dns) restoring() bool {
	if len(d.runs()) == 0 || d.run.From == d.run.To {
		return false
	}
	if d.run.Open() {
		return d.target != d.run.To || d.failed() != nil
	}
	return d.wayBack(d.target)
}

// withdrawDNS puts an unfinished run back when the spec no longer names a tag; otherwise CoreDNS is left alone.
func withdrawDNS(want Want, kube live.Kube, now time.Time) Decision {
	left := Done{Why: "the spec names no CoreDNS tag, so CoreDNS is left alone"}
	if absentDNS(kube) != nil {
		return left
	}
	d := lookAtDNS(want, kube, now)
	if len(d.runs()) == 0 || !d.run.Open() || d.run.From == d.run.To {
		return left
	}
	d.target, d.from, d.to = d.run.From, tagOf(d.deploy.Image), tagOf(d.run.From)
	return d.restore()
}

// restore goes back, from wherever the run stopped, by the same kinds of writes.
func (d *dns) restore() Decision {
	original, ok := d.recorded()
	if text := d.config.Data[live.CorefileKey]; !ok && text != "" && text == d.config.Data[live.CorefileBackupKey] {
		original, ok = text, true // a person's decision: both keys say so
	}
	touched := d.deploy.Image != d.run.From || d.mountedKey() == live.CorefileBackupKey
	if !ok && touched && d.run.Candidate != d.run.Corefile {
		return Stalled{Failure: Failure{
			Reason:  "CorefileBackupLost",
			Message: fmt.Sprintf("CoreDNS is to go back to %s, but neither key of ConfigMap kube-system/coredns holds the Corefile it had", d.run.From),
			Remedy:  "put the Corefile you want into the keys Corefile and Corefile-backup, set the image by hand, and remove the annotation " + live.DNSRunAnnotation,
		}}
	}
	if !d.run.Open() {
		again := d.run
		again.Opened, again.Closed = d.now, time.Time{}
		return Do{Notices: d.editedSince(), Step: Step{
			Subject: subjectConfig, Why: "the spec goes back to CoreDNS " + d.to + ", which this cluster ran before",
			Act: RecordDNSRun{ResourceVersion: d.config.ResourceVersion, Run: again},
		}}
	}
	return d.putBack(original)
}

// editedSince tells what becomes of a Corefile that was edited after the upgrade which is taken back.
func (d *dns) editedSince() []string {
	switch live.Hash(d.config.Data[live.CorefileKey]) {
	case d.run.Corefile, d.run.Candidate:
		return nil
	}
	if d.run.Candidate == d.run.Corefile {
		return []string{"CoreDNS: the Corefile was edited since " + tagOf(d.run.To) + " came; " + tagOf(d.run.From) + " gets it as it is now"}
	}
	return []string{"CoreDNS: the Corefile was edited since it was migrated for " + tagOf(d.run.To) + "; the way back will stop before it replaces your text"}
}

// putBack is the way back, one write at a time: the old image (reading the backup while the Corefile differs),
// the old Corefile, the old volume, the old dns section of kubeadm-config, and the end of the run.
func (d *dns) putBack(original string) Decision {
	why := d.whyBack()
	onBackup := d.mountedKey() == live.CorefileBackupKey
	// An unmigrated Corefile stays, whoever edited it meanwhile.
	differs := d.config.Data[live.CorefileKey] != original && d.run.Candidate != d.run.Corefile
	if d.deploy.Rollout.Paused && (onBackup || d.deploy.Image != d.run.From) {
		return Stalled{Failure: d.paused()}
	}
	if d.deploy.Image != d.run.From {
		act := PatchDNS{Image: d.run.From, ResourceVersion: d.deploy.ResourceVersion, Purpose: Restore}
		if differs && d.deploy.Volume != nil {
			act.Volume, act.Items = d.deploy.Volume.Name, d.backupItems()
		}
		return Do{Step: Step{Subject: subjectDeployment, Why: why, Act: act}}
	}
	if differs {
		if decision := d.oldCorefile(original, why, onBackup); decision != nil {
			return decision
		}
	}
	if onBackup {
		return Do{Step: Step{
			Subject: subjectDeployment, Why: why,
			Act: PatchDNS{Volume: d.deploy.Volume.Name, Items: d.run.Items, ResourceVersion: d.deploy.ResourceVersion, Purpose: Restore},
		}}
	}
	if decision := d.awaitRestored(); decision != nil {
		return decision
	}
	return d.endRestore(why)
}

// oldCorefile writes back the Corefile from before the migration. Pods read the backup meanwhile, unless somebody set the
// image back by hand: then they read the migrated text already. A text that is neither is a person's, and is not lost.
func (d *dns) oldCorefile(original, why string, onBackup bool) Decision {
	edited := live.Hash(d.config.Data[live.CorefileKey]) != d.run.Candidate
	switch {
	case edited && !onBackup:
		return nil
	case edited:
		if decision := d.awaitRestored(); decision != nil {
			return decision
		}
		return Stalled{Failure: Failure{
			Reason: "CorefileEdited",
			Message: fmt.Sprintf("CoreDNS %s is back and reads key Corefile-backup of ConfigMap kube-system/coredns, but key Corefile was edited by someone since it was migrated for %s, "+
				"and putting back the old text would lose the edit", tagOf(d.run.From), tagOf(d.run.To)),
			Remedy: "keep a copy of key Corefile if you need it; then either set it to the text of Corefile-backup, or put the text that you want into both keys",
		}}
	case onBackup:
		if decision := d.awaitRestored(); decision != nil {
			return decision
		}
	}
	return Do{Step: Step{
		Subject: subjectConfig, Why: why,
		Act: WriteCorefile{Key: live.CorefileKey, Text: original, ResourceVersion: d.config.ResourceVersion},
	}}
}

func (d *dns) whyBack() string {
	switch f := d.failed(); {
	case f != nil:
		return "CoreDNS " + d.to + " was given up: " + f.Reason
	case d.want.DNS == nil:
		return "the spec no longer names a CoreDNS tag, and CoreDNS " + tagOf(d.run.To) + " was never verified"
	case d.run.Closed.IsZero() && d.target != d.run.From:
		return "CoreDNS " + tagOf(d.run.To) + " is no longer wanted"
	}
	return "the spec goes back to CoreDNS " + d.to
}

// endRestore puts kubeadm-config back and ends the run: with a verification when what runs now is what the spec
// wants, without one otherwise, because the old pods are then all there is to have.
func (d *dns) endRestore(why string) Decision {
	wanted := d.want.DNS != nil && d.failed() == nil && d.target == d.run.From
	section := d.run.KubeadmDNS
	if wanted {
		section = d.wantedKubeadmDNS()
	}
	if step := d.syncKubeadm(section, why); step != nil {
		return Do{Step: *step}
	}
	if wanted {
		return Do{Step: d.verifyStep("every pod of CoreDNS "+d.to+" must answer as before", d.closedBack())}
	}
	return Do{Step: Step{Subject: subjectConfig, Why: why + "; everything is as before", Act: RecordDNSRun{ResourceVersion: d.config.ResourceVersion, Run: d.closedBack()}}}
}
