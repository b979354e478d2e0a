// SPDX-License-Identifier: Apache-2.0

package terraform

import (
	"context"
	"os"
	"strings"
	"time"

	"github.com/theseus-gitops/theseus/internal/scratch"
	"github.com/theseus-gitops/theseus/reconcile/logbook"
)

// Holder tells who holds the locks that this Module takes, to be written down before the first of them.
func (m *Module) Holder() logbook.LockHolder {
	host, _ := os.Hostname() // without a name nothing is ever proved to be ours
	return logbook.LockHolder{Host: host, Boot: bootID(), Folder: m.folder.Path(), Since: m.since}
}

// bootID tells two starts of a host apart; empty where the kernel does not say.
func bootID() string {
	id, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(id))
}

// Gone reports whether a holder on this very host is proved to be gone, and every Terraform that it started. Of another host
// nothing can be said from here.
func Gone(h logbook.LockHolder) bool {
	host, err := os.Hostname()
	if err != nil || h.Host != host || h.Boot == "" || h.Folder == "" {
		return false
	}
	if h.Boot != bootID() {
		return true // the host was started anew since
	}
	return scratch.Abandoned(h.Folder)
}

// Reclaim breaks the state's lock when it is proved to be of one of these holders, which is gone. Whoever calls it holds the
// cluster's Lease, so that none of them can begin anew. It gives the lock that it broke, nil when there was none to break: a lock
// of anybody else stays.
func (m *Module) Reclaim(ctx context.Context, holders []logbook.LockHolder, gone func(context.Context, logbook.LockHolder) bool) (*LockedError, error) {
	if len(holders) == 0 {
		return nil, nil //nolint:nilnil // nothing to break and no error
	}
	held, err := m.Locked(ctx)
	if err != nil || held == nil {
		return nil, err
	}
	for _, h := range holders {
		if held.of(h) && gone(ctx, h) {
			return held, m.Unlock(ctx, held.ID)
		}
	}
	return nil, nil //nolint:nilnil // it is somebody else's
}

// of reports whether the lock may be of that holder: Terraform writes USER@HOST and the time, by the same clock.
func (e *LockedError) of(h logbook.LockHolder) bool {
	_, host, ok := strings.Cut(e.Who, "@")
	return ok && host == h.Host && h.Host != "" && !e.Created.IsZero() && !e.Created.Before(h.Since.Add(-time.Second))
}
