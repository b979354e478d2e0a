// SPDX-License-Identifier: Apache-2.0

package gitsource

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strings"
)

// Uncommitted names the YAML files below Options.Path that the working tree of a local repository holds otherwise than
// its last commit: edited, new or removed. Ignored files are left out. A bare or a remote repository has none.
func (r *Repo) Uncommitted(ctx context.Context) ([]string, error) {
	if r.loc.scheme != schemeLocal || !hasWorkingTree(r.loc.path) {
		return nil, nil
	}
	ctx, cancel := context.WithTimeout(ctx, r.opts.Timeout)
	defer cancel()
	// No lock, and no program that the repository's settings name: this only looks.
	cmd := exec.CommandContext(ctx, "git", "--no-optional-locks", "--literal-pathspecs", "-c", "core.fsmonitor=false", "-C", r.loc.path,
		"status", "--porcelain", "-z", "--no-renames", "--untracked-files=all", "--", path.Join(".", r.dir)) //nolint:gosec // no shell
	cmd.Env = localEnv(os.Environ())
	out, err := cmd.Output()
	if err != nil {
		return nil, &Error{Where: r.loc.display, Why: fmt.Sprintf("git status: %v", err), Kind: ctx.Err()}
	}
	var files []string
	for line := range strings.SplitSeq(string(out), "\x00") {
		if len(line) < len("XY p") {
			continue
		}
		name := line[len("XY "):]
		if wantsSpec(entry{mode: modeRegular, name: name}) && printable(name) {
			files = append(files, name)
		}
	}
	return files, nil
}

func hasWorkingTree(dir string) bool {
	_, err := os.Stat(filepath.Join(dir, ".git"))
	return err == nil
}
