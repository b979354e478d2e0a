// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os/exec"
	"strings"
)

// RunError is a command that failed: what was run, and what it said.
type RunError struct {
	Args   []string
	Output string // standard error, trimmed
	Err    error  // *exec.ExitError, *exec.Error or the context's error
}

func (e *RunError) Error() string {
	s := fmt.Sprintf("running %q: %v", strings.Join(e.Args, " "), e.Err)
	if e.Output != "" {
		s += ": " + e.Output
	}
	return s
}

func (e *RunError) Unwrap() error { return e.Err }

// run starts a command without a shell and returns its standard output.
func run(ctx context.Context, stdin io.Reader, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	var stdout, stderr bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = stdin, &stdout, &stderr
	if err := cmd.Run(); err != nil {
		if ctx.Err() != nil {
			err = ctx.Err()
		}
		return "", &RunError{Args: args, Output: strings.TrimSpace(stderr.String()), Err: err}
	}
	return stdout.String(), nil
}
