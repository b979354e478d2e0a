// SPDX-License-Identifier: Apache-2.0

package gitsource

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"strings"
	"sync"
	"time"
)

// startLocal runs git's own server program on a directory. It is the only place that needs the git binary.
func startLocal(ctx context.Context, loc location, m *meter, s service) (wire, error) {
	if info, err := os.Stat(loc.path); err != nil || !info.IsDir() {
		return nil, &Error{Kind: ErrNotFound, Where: loc.display, Why: "there is no such directory"}
	}
	ctx, cancel := context.WithCancel(ctx)
	cmd := exec.CommandContext(ctx, "git", strings.TrimPrefix(string(s), "git-"), loc.path) // fixed program; an absolute path
	cmd.Env = localEnv(os.Environ())
	cmd.WaitDelay = 5 * time.Second
	errs := &tail{}
	cmd.Stderr = errs
	in, err := cmd.StdinPipe()
	if err != nil {
		cancel()
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		cancel()
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		cancel()
		if errors.Is(err, exec.ErrNotFound) {
			return nil, &Error{Kind: ErrConfig, Where: loc.display, Why: "a local repository needs the git program, which is not on the PATH",
				Hint: "install git, or use an https or ssh URL"}
		}
		return nil, err
	}
	return &stream{in: in, out: m.reader(out), meter: m, errors: errs, wait: sync.OnceValue(cmd.Wait), stop: cancel}, nil
}

// localEnv drops what would point git at another repository, or make it speak another protocol version than we do.
func localEnv(environ []string) []string {
	var kept []string
	for _, entry := range environ {
		switch name, _, _ := strings.Cut(entry, "="); name {
		case "GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_OBJECT_DIRECTORY", "GIT_ALTERNATE_OBJECT_DIRECTORIES",
			"GIT_COMMON_DIR", "GIT_NAMESPACE", "GIT_PROTOCOL":
		default:
			kept = append(kept, entry)
		}
	}
	return kept
}
