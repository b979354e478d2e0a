// SPDX-License-Identifier: Apache-2.0

package parts

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash"
	"os"
	"path/filepath"
	"sort"
)

// Part is one thing that is built once and kept.
type Part struct {
	Name    string
	Version string
	// Expect says how long a first build takes, to be told when it starts.
	Expect string
	// Recipe lists all that decides the result besides Files and Needs: flags,
	// versions of tools, lists of packages.
	Recipe []string
	// Files are patterns of source files, relative to the lab's module folder.
	Files []string
	// Needs are the parts that are built before, for Build to use.
	Needs []Part
	// Build fills job.Dir.
	Build func(ctx context.Context, job *Job) error
	// Usable, if set, tells whether a built part still serves.
	Usable func(ctx context.Context, dir string) bool
}

// String is the part's name and version.
func (p Part) String() string {
	if p.Version == "" {
		return p.Name
	}
	return p.Name + " " + p.Version
}

// key names the part's folder: name, version, and a hash of all that decides
// what is in it.
func (p Part) key(source string) (string, error) {
	sum := sha256.New()
	sum.Write(fmt.Appendf(nil, "part %q %q\n", p.Name, p.Version))
	for _, line := range p.Recipe {
		sum.Write(fmt.Appendf(nil, "recipe %q\n", line))
	}
	for _, pattern := range p.Files {
		if err := hashFiles(sum, source, pattern); err != nil {
			return "", err
		}
	}
	for _, need := range p.Needs {
		key, err := need.key(source)
		if err != nil {
			return "", fmt.Errorf("need %s: %w", need, err)
		}
		sum.Write(fmt.Appendf(nil, "need %q\n", key))
	}
	key := p.Name
	if p.Version != "" {
		key += "-" + p.Version
	}
	return key + "-" + hex.EncodeToString(sum.Sum(nil))[:12], nil
}

func hashFiles(w hash.Hash, source, pattern string) error {
	found, err := filepath.Glob(filepath.Join(source, pattern))
	if err != nil {
		return err
	}
	if len(found) == 0 {
		return fmt.Errorf("recipe: no file %s in %s", pattern, source)
	}
	sort.Strings(found)
	for _, file := range found {
		data, err := os.ReadFile(file)
		if err != nil {
			return fmt.Errorf("recipe: %w", err)
		}
		name, err := filepath.Rel(source, file)
		if err != nil {
			return err
		}
		w.Write(fmt.Appendf(nil, "file %q %x\n", name, sha256.Sum256(data)))
	}
	return nil
}

// Job is one build of a part.
type Job struct {
	part  Part
	needs map[string]string // folders by key

	// Dir is the folder to fill. It is renamed afterwards: keep no absolute path to it.
	Dir string
	// Source is the lab's module folder.
	Source string
	// Key is the name that the folder will bear.
	Key string
}

// Need returns the folder of a part that this one lists in Needs.
func (j *Job) Need(p Part) (string, error) {
	key, err := p.key(j.Source)
	if err != nil {
		return "", fmt.Errorf("need %s: %w", p, err)
	}
	dir, ok := j.needs[key]
	if !ok {
		return "", fmt.Errorf("%s is not among the needs of %s, whose hash would miss its changes: list it, or build again if its sources were just edited", p, j.part)
	}
	return dir, nil
}

// Scratch makes a folder for what need not be kept; remove takes it away. It
// is swept with the job's own folder should the process be killed.
func (j *Job) Scratch() (dir string, remove func() error, err error) {
	dir, err = os.MkdirTemp(filepath.Dir(j.Dir), j.Key+".")
	if err != nil {
		return "", nil, err
	}
	return dir, func() error { return os.RemoveAll(dir) }, nil
}
