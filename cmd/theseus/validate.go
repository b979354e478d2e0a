// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/theseus-gitops/theseus/reconcile/spec"
)

type validateFlags struct {
	fleet  fleetFlags
	output output
}

func (a *app) validateCommand() *cobra.Command {
	var f validateFlags
	c := &cobra.Command{
		Use:   "validate [DIR | --repo URL] [flags]",
		Short: "Check the specs, in a folder or in the repository",
		Long: `Validate reads fleet.yaml and every spec below a folder (the working copy, committed or not) or at the head of a
repository's branch, and names every problem at once, as FILE:LINE:COLUMN, with what was found and what is allowed.
It needs no cluster. Errors make the exit code 20; warnings do not.`,
		Example: `  theseus validate
  theseus validate ./fleet
  theseus validate --repo https://git.example.com/fleet.git --branch main -o json`,
		Args: arguments(cobra.MaximumNArgs(1)),
		RunE: func(c *cobra.Command, args []string) error { return a.validate(c.Context(), f, args) },
	}
	f.fleet.bind(c)
	f.output.bind(c)
	return c
}

func (a *app) validate(ctx context.Context, f validateFlags, args []string) error {
	if err := f.output.check(); err != nil {
		return err
	}
	files, err := f.files(ctx, args)
	if err != nil {
		return err
	}
	repo, problems := spec.Parse(files)
	if !f.output.text() {
		if problems == nil {
			problems = spec.Problems{}
		}
		if err := f.output.write(a.std.out, problems); err != nil {
			return err
		}
	} else {
		warnings := 0
		for _, p := range problems {
			if p.Severity == spec.Warning {
				warnings++
			}
		}
		_, _ = fmt.Fprint(a.std.out, problems.String())
		_, _ = fmt.Fprintf(a.std.out, "%s, %s, %s; %s, %s; %s ignored\n",
			count(len(repo.Clusters), "good cluster"), count(len(repo.Releases), "good release"), fleetWord(repo),
			count(len(problems)-warnings, "error"), count(warnings, "warning"), count(repo.OtherFiles, "other YAML file"))
	}
	if problems.HasErrors() {
		return exitWith(exitInvalid)
	}
	return nil
}

func fleetWord(repo spec.Repository) string {
	if repo.Fleet == nil {
		return "no good fleet"
	}
	return "1 fleet with " + count(len(repo.Fleet.Spec.Stages), "stage")
}

func count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// files reads the specs from the repository when --repo is given, else from the folder.
func (f validateFlags) files(ctx context.Context, args []string) ([]spec.File, error) {
	if f.fleet.repo != "" {
		if len(args) > 0 {
			return nil, usage("give a folder or --repo, not both")
		}
		repo, err := f.fleet.open(ctx, secretSource{dir: f.fleet.secrets})
		if err != nil {
			return nil, err
		}
		head, err := repo.Head(ctx)
		if err != nil {
			return nil, err
		}
		return repo.Files(ctx, head)
	}
	dir := "."
	if len(args) == 1 {
		dir = args[0]
	}
	return readFolder(filepath.Join(dir, f.fleet.path))
}

// readFolder reads a working copy as the repository would show it: no .git, links not followed.
func readFolder(dir string) ([]spec.File, error) {
	var files []spec.File
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		relative, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		file := spec.File{Path: filepath.ToSlash(relative)}
		switch {
		case d.IsDir():
			return skipGit(dir, path, d)
		case d.Type()&fs.ModeSymlink != 0:
			file.Kind = spec.Symlink
		case !d.Type().IsRegular():
			return nil
		case filepath.Ext(path) != ".yaml" && filepath.Ext(path) != ".yml":
			return nil
		default:
			if err := readFile(path, &file); err != nil {
				return err
			}
		}
		files = append(files, file)
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("folder %s: %w", dir, err)
	}
	return files, nil
}

// skipGit passes over repositories' own folders, and over other repositories inside this one.
func skipGit(root, path string, d fs.DirEntry) error {
	if d.Name() == ".git" {
		return fs.SkipDir
	}
	if _, err := os.Lstat(filepath.Join(path, ".git")); err == nil && path != root {
		return fs.SkipDir
	}
	return nil
}

func readFile(path string, file *spec.File) error {
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	if info.Size() > spec.MaxFileBytes {
		file.Kind = spec.TooLarge
		return nil
	}
	file.Data, err = os.ReadFile(path) //nolint:gosec // the folder is the user's own choice
	return err
}
