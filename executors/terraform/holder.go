// SPDX-License-Identifier: Apache-2.0

package terraform

import (
	"context"
	"os"
	"os/user"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/theseus-gitops/theseus/internal/scratch"
	"github.com/theseus-gitops/theseus/reconcile/logbook"
)

// Holder tells who takes the locks of this Module's calls. Whoever makes these writes it down before, with the time in which the
// calls begin.
func (m *Module) Holder() logbook.LockHolder {
	host, _ := os.Hostname() // without a name nothing is ever proved to be ours
	return logbook.LockHolder{
		User: m.user(), Host: host, Machine: word("/etc/machine-id"), Boot: word("/proc/sys/kernel/random/boot_id"),
		Namespaces: namespaces(), Folder: m.folder.Path(),
	}
}

// user is the name that Terraform writes into a lock: of /etc/passwd, or else what its environment says.
func (m *Module) user() string {
	if u, err := user.LookupId(strconv.Itoa(os.Getuid())); err == nil {
		return u.Username
	}
	if m.variable("HOME") == "" {
		return ""
	}
	return m.variable("USER")
}

// word is what a file of the system says; empty where there is none.
func word(path string) string {
	text, err := os.ReadFile(path)
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(text))
}

// namespaces tells containers of one host apart; empty where the kernel does not say.
func namespaces() string {
	var all []string
	for _, kind := range []string{"pid", "mnt"} {
		id, err := os.Readlink("/proc/self/ns/" + kind)
		if err != nil {
			return ""
		}
		all = append(all, id)
	}
	return strings.Join(all, " ")
}

// Lock is the state's lock as Reclaim found it.
type Lock struct {
	// Held is who holds it, nil for nobody.
	Held *LockedError
	// Broken tells that it was proved to be of a dead process of ours, and is released.
	Broken bool
}

// Reclaim breaks the state's lock when it is proved to be of these holders, which are gone. Whoever calls it holds the cluster's
// Lease, so that none of them can begin anew. A lock of anybody else stays. gone tells of a holder in a pod.
func (m *Module) Reclaim(ctx context.Context, holders []logbook.LockHolder, gone func(context.Context, logbook.LockHolder) bool) (Lock, error) {
	if len(holders) == 0 {
		return Lock{}, nil
	}
	held, err := m.Locked(ctx)
	if err != nil || held == nil {
		return Lock{}, err
	}
	holders = slices.DeleteFunc(slices.Clone(holders), func(h logbook.LockHolder) bool { return !held.of(h) })
	// It may be of any of these, so none may be left.
	alive := slices.ContainsFunc(holders, func(h logbook.LockHolder) bool { return !m.dead(ctx, h, held.Created, gone) })
	if len(holders) == 0 || alive {
		return Lock{Held: held}, nil
	}
	return Lock{Held: held, Broken: true}, m.Unlock(ctx, held.ID)
}

// lateLock is how long after the last call of a step was begun a lock may still be asked for: Terraform reads the module first,
// and a state that the backend did not take is pushed again.
const lateLock = readAgain + time.Minute

// of reports whether the lock is of one of that holder's calls: Terraform writes USER@HOST into it, the operation, and the time by
// the same clock.
func (e *LockedError) of(h logbook.LockHolder) bool {
	ours := []string{"OperationTypePlan", "OperationTypeApply", "state-push", askOperation}
	return h.Host != "" && e.Who == h.User+"@"+h.Host && slices.Contains(ours, e.Operation) &&
		!e.Created.Before(h.Since.Add(-time.Second)) && !e.Created.After(h.Until.Add(lateLock))
}

// dead reports whether the process that took a lock is proved to be gone, and every Terraform that it started. What this process
// started has ended, because it waits for each.
func (m *Module) dead(ctx context.Context, h logbook.LockHolder, taken time.Time, gone func(context.Context, logbook.LockHolder) bool) bool {
	own := m.Holder()
	switch {
	case own.Folder == h.Folder && sees(own, h):
	case h.Pod != "":
		return gone(ctx, h)
	case !goneFrom(h, own):
		return false
	}
	return !m.others(taken)
}

// goneFrom reports whether a holder of this host is proved to be gone, as seen from a process on it.
func goneFrom(h, own logbook.LockHolder) bool {
	if h.Boot != own.Boot && h.Boot != "" && own.Boot != "" {
		// Another start of this machine, unless it is another machine of the same name, or a container's view of one.
		return h.Machine != "" && h.Machine == own.Machine && h.Host == own.Host && onHost(h) && onHost(own)
	}
	// The folder is removed by its owner at its end, or by the next process once nobody works in it.
	return h.Folder != "" && sees(own, h) && scratch.Abandoned(h.Folder)
}

// sees reports whether two processes have one view of processes and files.
func sees(a, b logbook.LockHolder) bool {
	return a.Host == b.Host && a.Boot != "" && a.Boot == b.Boot && a.Namespaces != "" && a.Namespaces == b.Namespaces
}

// onHost reports whether a process ran in no container: the first pid namespace has a number of its own
// (https://github.com/torvalds/linux/blob/v6.12/include/linux/proc_ns.h).
func onHost(h logbook.LockHolder) bool { return strings.HasPrefix(h.Namespaces, "pid:[4026531836] ") }
