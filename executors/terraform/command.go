// SPDX-License-Identifier: Apache-2.0

package terraform

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"syscall"
)

// run starts Terraform in the module's folder and waits for its end, however ctx ends: a cancelled ctx interrupts it
// once (a second interrupt would make it give up its state), and it is killed only after StopTimeout. Secrets are
// never arguments. A failure is a *commandError, with what Terraform said scrubbed.
func (m *Module) run(ctx context.Context, args ...string) ([]byte, error) {
	if ctx.Err() != nil {
		return nil, fmt.Errorf("%s %s was not started: %w", m.name(), args[0], context.Cause(ctx))
	}
	stdout, err := m.folder.unnamed()
	if err != nil {
		return nil, err
	}
	defer func() { _ = stdout.Close() }()
	stderr, err := m.folder.unnamed()
	if err != nil {
		return nil, err
	}
	defer func() { _ = stderr.Close() }()

	cmd := exec.CommandContext(ctx, m.binary, args...) //nolint:gosec // the program and its arguments come from the spec and from here
	cmd.Dir, cmd.Env = m.options.Dir, m.env
	cmd.Stdout, cmd.Stderr = stdout, stderr
	cmd.ExtraFiles = []*os.File{m.folder.Handle()}
	// A group of its own: a Ctrl-C in the terminal reaches it once, by us.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = m.options.StopTimeout
	failure := cmd.Run()

	out, err := contents(stdout)
	if err != nil {
		return nil, err
	}
	// A command that worked has worked, even when it was asked to stop at its end.
	if failure == nil || cmd.ProcessState != nil && cmd.ProcessState.Success() {
		return out, nil
	}
	said, err := contents(stderr)
	if err != nil {
		return nil, err
	}
	return nil, m.failed(ctx, args[0], failure, out, said)
}

func contents(file *os.File) ([]byte, error) {
	if _, err := file.Seek(0, io.SeekStart); err != nil {
		return nil, fmt.Errorf("reading what Terraform printed: %w", err)
	}
	data, err := io.ReadAll(file)
	if err != nil {
		return nil, fmt.Errorf("reading what Terraform printed: %w", err)
	}
	return data, nil
}

func (m *Module) failed(ctx context.Context, command string, failure error, stdout, stderr []byte) error {
	e := &commandError{command: m.name() + " " + command, failure: failure, problems: diagnosed(stdout)}
	if len(e.problems) == 0 {
		e.problems = spoken(stderr)
	}
	for i, p := range e.problems {
		e.problems[i] = problem{Summary: m.secrets.scrub(p.Summary), Detail: m.secrets.scrub(p.Detail), Address: m.secrets.scrub(p.Address)}
	}
	if ctx.Err() != nil {
		e.interrupted = context.Cause(ctx)
	}
	var exit *exec.ExitError
	if errors.As(failure, &exit) {
		e.failure = nil // its text, "exit status 1", says nothing
		if !exit.Exited() {
			e.failure = fmt.Errorf("it was ended by a signal: %w", failure)
		}
	}
	return e
}
