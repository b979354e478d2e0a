// SPDX-License-Identifier: Apache-2.0

package terraform

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

const (
	// ticks are the kernel's units of time in /proc/PID/stat, per second, on every architecture that Go knows.
	ticks = 100
	// clockSlack is by how much the clock may have been set since.
	clockSlack = time.Minute
)

// others reports whether a Terraform of this user may be at work here that was started before a lock was taken, say by a person,
// whose locks look like ours. Those of this process, which are of other modules, don't count. It is true when that can't be found out.
func (m *Module) others(taken time.Time) bool {
	text, err := os.ReadFile("/proc/uptime")
	if err != nil {
		return true
	}
	up, _, _ := strings.Cut(string(text), " ")
	uptime, err := strconv.ParseFloat(up, 64)
	if err != nil {
		return true
	}
	processes, err := filepath.Glob("/proc/[0-9]*")
	if err != nil || len(processes) == 0 {
		return true
	}
	now, names := time.Now(), m.names()
	for _, dir := range processes {
		if p, ok := look(dir); ok && slices.Contains(names, p.name) && p.parent != os.Getpid() {
			age := time.Duration((uptime - p.started) * float64(time.Second))
			if now.Add(-age).Before(taken.Add(clockSlack)) {
				return true
			}
		}
	}
	return false
}

// names are what a running Terraform may be called.
func (m *Module) names() []string {
	names := []string{"terraform", "tofu", filepath.Base(m.binary)}
	if real, err := filepath.EvalSymlinks(m.binary); err == nil {
		names = append(names, filepath.Base(real))
	}
	return names
}

// process is a running program of this user.
type process struct {
	name string
	// started is in seconds since the host's start.
	started float64
	parent  int
}

// look is false for processes of other users, and for those that are over.
func look(dir string) (process, bool) {
	info, err := os.Stat(dir)
	if err != nil {
		return process{}, false
	}
	if owner, ok := info.Sys().(*syscall.Stat_t); !ok || int(owner.Uid) != os.Geteuid() {
		return process{}, false
	}
	program, err := os.Readlink(filepath.Join(dir, "exe"))
	if err != nil {
		return process{}, false
	}
	stat, err := os.ReadFile(filepath.Join(dir, "stat"))
	if err != nil {
		return process{}, false
	}
	// PID (NAME) STATE PARENT …, and a name may hold anything; the start is the 22nd field.
	fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
	const parent, start = 4 - 3, 22 - 3
	if len(fields) <= start {
		return process{}, false
	}
	p := process{name: strings.TrimSuffix(filepath.Base(program), " (deleted)")}
	if p.parent, err = strconv.Atoi(fields[parent]); err != nil {
		return process{}, false
	}
	began, err := strconv.ParseFloat(fields[start], 64)
	p.started = began / ticks
	return p, err == nil
}
