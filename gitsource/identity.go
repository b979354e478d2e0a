// SPDX-License-Identifier: Apache-2.0

package gitsource

import (
	"os"
	"path/filepath"
	"strings"

	"github.com/go-git/go-git/v5/config"
)

// Identity names the repository the same however its URL is spelled: host and path, without scheme, user and the suffix
// .git. A local clone has the identity of its remote origin, so that a person's clone and the job's URL are one
// repository; a local repository without one has its path.
func (r *Repo) Identity() string {
	if r.loc.scheme != schemeLocal {
		return r.loc.identity()
	}
	if origin, ok := originOf(r.loc.path); ok {
		return origin.identity()
	}
	return r.loc.identity()
}

func (l location) identity() string {
	if l.scheme == schemeLocal {
		return l.path // fleet and fleet.git beside each other are two
	}
	path := strings.TrimSuffix(strings.Trim(l.path, "/"), ".git")
	host := strings.ToLower(l.host)
	if l.port != "" && l.port != defaultPort(l.scheme) {
		host += ":" + l.port
	}
	return host + "/" + path
}

// originOf is where a local clone came from. What can't be read, or holds credentials, is no origin.
func originOf(path string) (location, bool) {
	file, err := os.Open(filepath.Join(gitDir(path), "config"))
	if err != nil {
		return location{}, false
	}
	defer file.Close() //nolint:errcheck // it was only read
	settings, err := config.ReadConfig(file)
	if err != nil || settings.Remotes["origin"] == nil || len(settings.Remotes["origin"].URLs) == 0 {
		return location{}, false
	}
	l, err := parseLocation(settings.Remotes["origin"].URLs[0])
	return l, err == nil
}

// gitDir is the folder with a repository's config: .git, the folder itself when it is bare, or the main repository's
// when path is a worktree of its own (gitrepository-layout).
func gitDir(path string) string {
	dot := filepath.Join(path, ".git")
	info, err := os.Stat(dot)
	switch {
	case err != nil:
		return path
	case info.IsDir():
		return dot
	}
	linked := pathIn(dot, "gitdir: ", path)
	return pathIn(filepath.Join(linked, "commondir"), "", linked)
}

// pathIn reads a path from a file of one line, relative to a folder.
func pathIn(file, prefix, folder string) string {
	text, err := os.ReadFile(file)
	if err != nil {
		return folder
	}
	named := strings.TrimPrefix(strings.TrimSpace(string(text)), prefix)
	if filepath.IsAbs(named) {
		return named
	}
	return filepath.Join(folder, named)
}
