// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"fmt"
	"strings"

	"github.com/theseus-gitops/theseus/reconcile/corefile"
	"github.com/theseus-gitops/theseus/reconcile/live"
	"github.com/theseus-gitops/theseus/reconcile/skew"
)

// texts are the notices of the judgement as people read them.
func texts(notices []corefile.Notice) []string {
	var out []string
	for _, n := range notices {
		out = append(out, "CoreDNS: "+strings.TrimPrefix(n.Message, "CoreDNS "))
	}
	return out
}

// refused says why the Corefile keeps the target away, and what helps: a lower tag is reached by no Corefile.
func (d *dns) refused(plan corefile.Assessment) Failure {
	f := Failure{
		Reason: "CorefileRefused", Message: fmt.Sprintf("CoreDNS %s → %s: %s", d.from, d.to, plan.Reason),
		Remedy: "correct the Corefile or the tag; `theseus coredns preview` shows the outcome offline; coreDNS.skipCorefileMigration: true keeps the Corefile as it is",
	}
	from, err := skew.ParseTag(d.from)
	if err != nil {
		return f
	}
	if to, err := skew.ParseTag(d.to); err != nil || to.Core().Compare(from.Core()) >= 0 {
		return f
	}
	f.Reason = "DNSDowngrade"
	if tags := d.reachable(); len(tags) > 0 {
		f.Remedy = "name a tag that is not lower; the way back that Theseus recorded here leads to " + strings.Join(tags, ", then ")
	} else {
		f.Remedy = "name a tag that is not lower; Theseus goes back only to what it upgraded from itself, and nothing of that kind is recorded here"
	}
	return f
}

// warnings are what a person should know before the first write, beside what the Corefile's judgement says.
func (d *dns) warnings(original string, plan corefile.Assessment) []string {
	var out []string
	backup, ok := d.config.Data[live.CorefileBackupKey]
	if ok && plan.Corefile != original && backup != original && d.mountedKey() != live.CorefileBackupKey {
		out = append(out, fmt.Sprintf("CoreDNS: key Corefile-backup of ConfigMap kube-system/coredns holds another text (%d bytes, kubeadm's or somebody's), which the backup of this migration replaces; keep a copy if you need it", len(backup)))
	}
	if d.deploy.Rollout.Wanted == 0 {
		out = append(out, scaledToZero)
	}
	return out
}

const scaledToZero = "CoreDNS: Deployment kube-system/coredns is scaled to 0, so no pod can be asked whether it answers"
