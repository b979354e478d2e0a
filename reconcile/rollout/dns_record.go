// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"strings"

	"github.com/theseus-gitops/theseus/reconcile/image"
	"github.com/theseus-gitops/theseus/reconcile/live"
)

// keptRuns is how many verified runs are remembered behind the newest: as many steps back as anybody takes, and few
// enough for an annotation.
const keptRuns = 3

// runs are the recorded runs that lead back from what runs now, the newest first. A run whose images the Deployment
// does not name says nothing about the present.
func (d *dns) runs() []live.DNSRun {
	if d.config.Run == nil || (d.deploy.Image != d.run.From && d.deploy.Image != d.run.To) {
		return nil
	}
	var out []live.DNSRun
	for r := d.config.Run; r != nil; r = r.Before {
		out = append(out, *r)
	}
	return out
}

// ranBefore is the image before a recorded run, when the spec's tag is that image's: going back means back to
// that very image, also where upstream has moved it since (registry.k8s.io/coredns became coredns/coredns at 1.8.0)
// and where it was pinned by a digest.
func (d *dns) ranBefore() (image.Ref, bool) {
	asked := strings.TrimSuffix(d.want.DNS.Repository, "/")
	for _, r := range d.runs() {
		before, err := image.Parse(r.From)
		if err == nil && before.Tag == d.want.DNS.Tag && (asked == "" || asked == before.Repository) {
			return before, true
		}
	}
	return image.Ref{}, false
}

// wayBack reports whether the recorded runs lead back from the verified image that runs to another one, with its
// Corefile. It is the only way to a lower tag: from our own record, never by migrating down.
func (d *dns) wayBack(to string) bool {
	if d.run.Open() || d.deploy.Image != d.run.To {
		return false
	}
	kept := d.keptTexts()
	for _, r := range d.runs() {
		// An unmigrated Corefile stays as it is, edited or not: there is nothing to put back.
		if r.Candidate != r.Corefile && !kept[r.Corefile] {
			return false
		}
		if r.From == to {
			return true
		}
		// Going back over a migration writes the old text over the new one; the backup stays.
		if r.Candidate != r.Corefile {
			kept = map[string]bool{r.Corefile: true}
		}
	}
	return false
}

// keptTexts are the hashes of the Corefiles that still exist.
func (d *dns) keptTexts() map[string]bool {
	kept := map[string]bool{}
	for _, key := range []string{live.CorefileKey, live.CorefileBackupKey} {
		if text, ok := d.config.Data[key]; ok {
			kept[live.Hash(text)] = true
		}
	}
	return kept
}

// reachable are the tags that wayBack leads to, the nearest first.
func (d *dns) reachable() []string {
	var out []string
	for _, r := range d.runs() {
		if before, err := image.Parse(r.From); err == nil && d.wayBack(r.From) {
			out = append(out, before.Tag)
		}
	}
	return out
}

// recorded is the Corefile as it was before the newest run, and whether it still exists in one of the keys.
func (d *dns) recorded() (string, bool) {
	for _, key := range []string{live.CorefileKey, live.CorefileBackupKey} {
		if text, ok := d.config.Data[key]; ok && live.Hash(text) == d.run.Corefile {
			return text, true
		}
	}
	return "", false
}

// before is what a new run remembers behind itself: the verified run that brought what runs now, and those before it.
func (d *dns) before() *live.DNSRun {
	if d.run.Open() {
		return d.run.Before
	}
	if d.config.Run == nil || d.deploy.Image != d.run.To {
		return nil
	}
	return bounded(d.run, keptRuns)
}

// bounded is a run with so many runs at most, itself included.
func bounded(r live.DNSRun, most int) *live.DNSRun {
	if r.Before != nil {
		if most > 1 {
			r.Before = bounded(*r.Before, most-1)
		} else {
			r.Before = nil
		}
	}
	return &r
}

// closedForward is the record once the target was verified.
func (d *dns) closedForward() live.DNSRun {
	closed := d.run
	closed.Closed = d.now
	return closed
}

// closedBack is the record once everything is as before the run: the run before it, from which the way back goes on,
// or, when none is known, this one.
func (d *dns) closedBack() live.DNSRun {
	if d.run.Before != nil {
		return *d.run.Before
	}
	return d.closedForward()
}
