// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime/debug"
	"strings"

	"github.com/spf13/cobra"
)

// stream is where a command reads and writes.
type stream struct {
	in       io.Reader
	out, err io.Writer
}

const about = `Theseus keeps kubeadm clusters at the versions that a Git repository asks for.

It reads declarative cluster specs, compares them with the live clusters, carries out one safe step after
another until they agree, and commits what happened to a status branch. Every step is explained before it
happens; being killed anywhere is harmless: the next run observes again and goes on.

Start with a look that changes nothing:

  theseus validate ./fleet                  # are the specs right?
  theseus plan --repo https://git.example.com/fleet.git --secrets ./secrets

then let it work, once by hand or from a CronJob:

  theseus reconcile --repo https://git.example.com/fleet.git --secrets ./secrets
  theseus status --repo https://git.example.com/fleet.git
`

// run is the whole program but for the process around it. It returns the exit code, at once when a signal asks for that.
func run(ctx context.Context, args []string, std stream, signals <-chan os.Signal) int {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	app := &app{std: std}
	done := make(chan int, 1)
	go func() { done <- app.execute(ctx, args) }()
	return app.ending.await(done, signals, cancel)
}

// execute runs one command and returns its exit code.
func (a *app) execute(ctx context.Context, args []string) (code int) {
	defer func() {
		if p := recover(); p != nil {
			_, _ = fmt.Fprintf(a.std.err, "theseus: panic: %v\n%s\nThis is a defect. Nothing is half written: every step can be repeated. Run the command again.\n", p, debug.Stack())
			code = exitPanic
		}
	}()
	root := a.rootCommand() //nolint:contextcheck // commands take theirs from cobra, which ExecuteContext gives it
	root.SetArgs(args)
	return a.exitCode(root.ExecuteContext(ctx))
}

func (a *app) rootCommand() *cobra.Command {
	root := &cobra.Command{
		Use: "theseus", Short: "Upgrade kubeadm clusters from Git", Long: about, Version: versionText(),
		SilenceErrors: true, SilenceUsage: true, CompletionOptions: cobra.CompletionOptions{HiddenDefaultCmd: true},
		Args: cobra.ArbitraryArgs, RunE: unknownCommand,
	}
	root.SetVersionTemplate("{{.Version}}\n")
	root.SetIn(a.std.in)
	root.SetOut(a.std.out)
	root.SetErr(a.std.err)
	root.SetFlagErrorFunc(func(c *cobra.Command, err error) error {
		return usage("%w (see %s --help)", err, c.CommandPath())
	})
	root.AddCommand(a.reconcileCommand(), a.planCommand(), a.statusCommand(), a.validateCommand(),
		a.schemaCommand(), a.corednsCommand(), a.moduleCommand(), a.machinesCommand(), a.versionCommand())
	return root
}

// app is what commands share: the streams, and how a signal ends them.
type app struct {
	std    stream
	ending ending
}

// exitCode prints what went wrong, once, and gives the code for it. After a signal, what failed failed because of that.
func (a *app) exitCode(err error) int {
	if code := a.ending.signalled(); code != 0 {
		return code
	}
	if err == nil {
		return 0
	}
	var exit *exitError
	if !errors.As(err, &exit) {
		exit = &exitError{code: exitFailed, err: err}
	}
	if exit.err != nil {
		_, _ = fmt.Fprintf(a.std.err, "theseus: %v\n", exit.err)
	}
	return exit.code
}

// unknownCommand answers for the root: help without arguments, the nearest command with one that is none.
func unknownCommand(c *cobra.Command, args []string) error {
	if len(args) == 0 {
		return c.Help()
	}
	hint := "see " + c.CommandPath() + " --help"
	c.SuggestionsMinimumDistance = 2
	if near := c.SuggestionsFor(args[0]); len(near) > 0 {
		hint = "did you mean " + strings.Join(near, " or ") + "?"
	}
	return usage("unknown command %q (%s)", args[0], hint)
}

// arguments makes wrong arguments an error of usage.
func arguments(check cobra.PositionalArgs) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		if err := check(c, args); err != nil {
			return usage("%w (see %s --help)", err, c.CommandPath())
		}
		return nil
	}
}

// one wants exactly one argument.
func one(name string) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		switch len(args) {
		case 0:
			return usage("%s is missing: %s (see %s --help)", name, c.UseLine(), c.CommandPath())
		case 1:
			return nil
		}
		return usage("one %s, please, not %d: %s (see %s --help)", name, len(args), some(args), c.CommandPath())
	}
}

// none wants no argument.
func none(c *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	hint := ""
	if c.Flags().Lookup("repo") != nil {
		hint = "; did you mean --repo " + args[0] + "?"
	}
	return usage("%s takes no argument, and %q is one%s (see %s --help)", c.CommandPath(), args[0], hint, c.CommandPath())
}

// usage is an error in how the command was called.
func usage(format string, args ...any) error {
	return &exitError{code: exitUsage, err: fmt.Errorf(format, args...)}
}
