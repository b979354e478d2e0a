// SPDX-License-Identifier: Apache-2.0

package parts

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"time"
)

// command is one call of a tool, with what it said kept for the error.
type command struct {
	dir   string
	env   []string
	stdin io.Reader
}

// run starts the tool and returns its standard output. Its whole process group
// ends with ctx: debootstrap and go both have children of their own.
func (c command) run(ctx context.Context, name string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = c.dir
	cmd.Env = append(os.Environ(), c.env...)
	cmd.Stdin = c.stdin
	var stdout bytes.Buffer
	var both transcript
	cmd.Stdout = io.MultiWriter(&stdout, &both)
	cmd.Stderr = &both
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM) }
	cmd.WaitDelay = 10 * time.Second
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("%s: %w\n%s", shellLine(name, args), err, tail(both.String(), 40))
	}
	return stdout.String(), nil
}

// transcript keeps what a tool writes to both its outputs, each from a
// goroutine of its own.
type transcript struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (t *transcript) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.buf.Write(p)
}

func (t *transcript) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.buf.String()
}

// shellLine is the call, ready to paste.
func shellLine(name string, args []string) string {
	words := []string{name}
	for _, arg := range args {
		if arg == "" || strings.ContainsAny(arg, " \t\n'\"$*?;&|<>()") {
			arg = "'" + strings.ReplaceAll(arg, "'", `'\''`) + "'"
		}
		words = append(words, arg)
	}
	return strings.Join(words, " ")
}

// tail keeps the last lines of what a tool said.
func tail(s string, lines int) string {
	all := strings.Split(strings.TrimRight(s, "\n"), "\n")
	if len(all) > lines {
		all = append([]string{"..."}, all[len(all)-lines:]...)
	}
	return strings.Join(all, "\n")
}
