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
It needs no cluster. Fields that are not acted on yet are summed up in one line; -o json has each with its place.

Exit codes: 0 no error, with or without warnings, 20 an error in the specs, 1 the folder or the repository can't be
read, 2 usage, 130 after Ctrl-C, 143 after SIGTERM.`,
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
	files, err := a.filesOf(ctx, f, args)
	if err != nil {
		return err
	}
	repo, problems := spec.Parse(files)
	if err := a.printProblems(f.output, repo, problems); err != nil {
		return err
	}
	if problems.HasErrors() {
		return exitWith(exitInvalid)
	}
	return nil
}

// filesOf reads the specs from the repository when --repo is given, else from the folder.
func (a *app) filesOf(ctx context.Context, f validateFlags, args []string) ([]spec.File, error) {
	switch {
	case f.fleet.repo == "" && f.fleet.branch != "":
		return nil, usage("--branch goes with --repo: a folder is read as it is, whatever branch is checked out; to check a branch: theseus validate --repo %s --branch %s",
			folderOf(args), f.fleet.branch)
	case f.fleet.repo == "":
		return folderFiles(filepath.Join(folderOf(args), f.fleet.path))
	case len(args) > 0:
		return nil, usage("give a folder or --repo, not both")
	}
	repo, err := f.fleet.open(ctx, secretSource{dir: f.fleet.secrets})
	if err != nil {
		return nil, err
	}
	repo.warn = a.warn
	head, err := repo.Head(ctx)
	if err != nil {
		return nil, err
	}
	return repo.Files(ctx, head)
}

func folderOf(args []string) string {
	if len(args) == 1 {
		return args[0]
	}
	return "."
}

// folderFiles reads a folder. A single file is refused: without fleet.yaml and the other specs it can't be judged.
func folderFiles(dir string) ([]spec.File, error) {
	if info, err := os.Stat(dir); err == nil && !info.IsDir() {
		return nil, usage("%s is a file; specs are checked together with %s and each other, so name the folder of that file: theseus validate %s",
			dir, spec.FleetFile, fleetAbove(dir))
	}
	return readFolder(dir)
}

// fleetAbove is the nearest folder above a file that has a fleet, else the file's own.
func fleetAbove(file string) string {
	own := filepath.Dir(file)
	absolute, err := filepath.Abs(own)
	for dir, above := absolute, own; err == nil; dir, above = filepath.Dir(dir), filepath.Join(above, "..") {
		if _, missing := os.Stat(filepath.Join(dir, spec.FleetFile)); missing == nil {
			return above
		}
		if dir == filepath.Dir(dir) {
			break
		}
	}
	return own
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
