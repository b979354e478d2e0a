// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"fmt"
	"os"
	"strconv"
	"strings"
)

// capabilities in the kernel's order (include/uapi/linux/capability.h). It ends before PERFMON, BPF and
// CHECKPOINT_RESTORE: engines built with an older list refuse those names, and SYS_ADMIN implies the first two.
//
//nolint:gochecknoglobals // read-only table
var capabilities = []string{
	"CHOWN", "DAC_OVERRIDE", "DAC_READ_SEARCH", "FOWNER", "FSETID", "KILL", "SETGID", "SETUID", "SETPCAP",
	"LINUX_IMMUTABLE", "NET_BIND_SERVICE", "NET_BROADCAST", "NET_ADMIN", "NET_RAW", "IPC_LOCK", "IPC_OWNER",
	"SYS_MODULE", "SYS_RAWIO", "SYS_CHROOT", "SYS_PTRACE", "SYS_PACCT", "SYS_ADMIN", "SYS_BOOT", "SYS_NICE",
	"SYS_RESOURCE", "SYS_TIME", "SYS_TTY_CONFIG", "MKNOD", "LEASE", "AUDIT_WRITE", "AUDIT_CONTROL", "SETFCAP",
	"MAC_OVERRIDE", "MAC_ADMIN", "SYSLOG", "WAKE_ALARM", "BLOCK_SUSPEND", "AUDIT_READ",
}

// DetectMode reads this process's bounding set, which is the engine's too when both run on the same host as root.
func DetectMode() (Mode, error) {
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return Mode{}, fmt.Errorf("finding what containers may do: %w", err)
	}
	return modeFromStatus(string(status))
}

// modeFromStatus reads the CapBnd line of a /proc/PID/status file.
func modeFromStatus(status string) (Mode, error) {
	for line := range strings.Lines(status) {
		value, ok := strings.CutPrefix(line, "CapBnd:")
		if !ok {
			continue
		}
		mask, err := strconv.ParseUint(strings.TrimSpace(value), 16, 64)
		if err != nil {
			return Mode{}, fmt.Errorf("reading the capability bounding set: %w", err)
		}
		return modeFromMask(mask), nil
	}
	return Mode{}, fmt.Errorf("no CapBnd line in the process status: this lab needs Linux")
}

func modeFromMask(mask uint64) Mode {
	m := Mode{Privileged: true}
	for bit, name := range capabilities {
		if mask&(1<<bit) == 0 {
			m.Privileged = false
			continue
		}
		m.Capabilities = append(m.Capabilities, name)
	}
	return m
}
