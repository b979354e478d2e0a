// SPDX-License-Identifier: Apache-2.0

// Command parts builds what the lab's machines are made of, once, into a cache.
// It holds no recipe: see package parts. Start at run.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/theseus-gitops/theseus/test/lab/parts"
)

const usage = `usage: go run ./cmd/parts [-kubernetes VERSION] [-debian RELEASE] COMMAND

Builds what is missing of the lab's parts into the cache folder
($THESEUS_LAB_CACHE, default theseus-lab in the user's cache folder).
What was built is printed on standard output, progress on standard error.

  all       all that the lab's scenarios and the tests need, whatever the flags
  node      the machine image; prints its name in Docker
  envtest   etcd and kube-apiserver for envtest; prints their folder
  tofu      OpenTofu; prints its path
  list      what the cache holds

`

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdout, os.Stderr); err != nil {
		fmt.Fprintln(os.Stderr, "parts:", err)
		stop()
		os.Exit(1) //nolint:gocritic // stop was called above
	}
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	flags := flag.NewFlagSet("parts", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.Usage = func() {
		_, _ = io.WriteString(stderr, usage)
		flags.PrintDefaults()
	}
	kubernetes := flags.String("kubernetes", parts.First, "Kubernetes version")
	debian := flags.String("debian", parts.Debian12.Name, "Debian release of the machine image")
	if err := flags.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			return nil
		}
		return err
	}
	versions, err := parts.VersionsOf(*kubernetes)
	if err != nil {
		return err
	}
	release, err := parts.ReleaseOf(*debian)
	if err != nil {
		return err
	}
	cache, err := open(stderr)
	if err != nil {
		return err
	}
	switch flags.Arg(0) {
	case "all":
		return all(ctx, cache, stdout, stderr)
	case "node":
		image, err := cache.NodeImage(ctx, release, versions)
		return printed(stdout, image, err)
	case "envtest":
		dir, err := cache.Envtest(ctx, versions)
		return printed(stdout, dir, err)
	case "tofu":
		path, err := cache.Tofu(ctx)
		return printed(stdout, path, err)
	case "list":
		return list(cache, stdout)
	default:
		flags.Usage()
		return fmt.Errorf("command %q: want all, node, envtest, tofu or list", flags.Arg(0))
	}
}

func open(stderr io.Writer) (*parts.Cache, error) {
	wd, err := os.Getwd()
	if err != nil {
		return nil, err
	}
	source, err := parts.FindSource(wd)
	if err != nil {
		return nil, err
	}
	root, err := parts.DefaultRoot()
	if err != nil {
		return nil, err
	}
	return parts.Open(root, source, stderr)
}

func all(ctx context.Context, cache *parts.Cache, stdout, stderr io.Writer) error {
	err := func() error {
		for _, m := range parts.Machines() {
			versions, err := parts.VersionsOf(m.Kubernetes)
			if err != nil {
				return err
			}
			image, err := cache.NodeImage(ctx, m.Release, versions)
			if err := printed(stdout, "node "+image, err); err != nil {
				return err
			}
		}
		first, err := parts.VersionsOf(parts.First)
		if err != nil {
			return err
		}
		dir, err := cache.Envtest(ctx, first)
		if err := printed(stdout, "envtest "+dir, err); err != nil {
			return err
		}
		tofu, err := cache.Tofu(ctx)
		return printed(stdout, "tofu "+tofu, err)
	}()
	return errors.Join(err, timings(stderr, cache.Reports()))
}

// printed prints a result, unless there is an error instead.
func printed(stdout io.Writer, line string, err error) error {
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(stdout, line)
	return err
}
