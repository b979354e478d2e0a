// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"time"

	"github.com/spf13/cobra"

	"github.com/theseus-gitops/theseus/reconcile"
	"github.com/theseus-gitops/theseus/reconcile/logbook"
)

type reconcileFlags struct {
	fleet    fleetFlags
	output   output
	detailed bool
	deadline time.Duration
	parallel int
	poll     time.Duration
	log      logFlags
}

func (a *app) reconcileCommand() *cobra.Command {
	var f reconcileFlags
	c := &cobra.Command{
		Use:   "reconcile --repo URL [flags]",
		Short: "Bring the clusters to what the specs want, and commit status",
		Long: `Reconcile does one pass: read the specs, look at each cluster, do one safe step after another where something
differs, and commit what happened to the status branch. A cluster that is as wanted is not written to at all.

It ends when every cluster is as wanted, waits, or needs a person, or when --deadline is over. On Ctrl-C or SIGTERM the
step under way is finished, nothing new is begun, and status is committed; the next run goes on where this one stopped.
A second one ends it at once; clusters that were being worked on then stay locked for up to 5 minutes.

Exit codes: 0 the pass worked (as wanted, more to do, waiting, or another run holds the lock), 1 a cluster needs
attention, 2 usage, 70 a defect of Theseus, 130 after Ctrl-C, 143 after SIGTERM. With --detailed-exitcode the first
that applies of: 22 stalled, 20 invalid spec, 21 push refused, 30 passing error, 40 locked, 11 waiting, 10 more to do, 0.`,
		Example: `  theseus reconcile --repo https://git.example.com/fleet.git --repo-secret fleet --secrets ./secrets
  theseus reconcile --repo ./fleet --cluster seed-eu-1 --secrets ./secrets --detailed-exitcode`,
		Args: none,
		RunE: func(c *cobra.Command, _ []string) error { return a.reconcile(c.Context(), f) },
	}
	f.fleet.bind(c)
	f.fleet.bindClusters(c)
	f.output.bind(c)
	f.log.bind(c)
	c.Flags().BoolVar(&f.detailed, "detailed-exitcode", false, "tell by the exit code how the pass ended")
	c.Flags().DurationVar(&f.deadline, "deadline", time.Hour, "begin no further step after this long; 0 means never")
	c.Flags().IntVar(&f.parallel, "parallel", 4, "clusters worked on at once")
	c.Flags().DurationVar(&f.poll, "poll", 2*time.Second, "pause between two looks while something is awaited")
	return c
}

func (a *app) reconcile(ctx context.Context, f reconcileFlags) error {
	if err := f.output.check(); err != nil {
		return err
	}
	if f.parallel < 1 {
		return usage("--parallel %d: want 1 or more", f.parallel)
	}
	pass, err := a.pass(ctx, f.fleet, f.log)
	if err != nil {
		return err
	}
	defer pass.end()
	pass.Stop, pass.Parallel, pass.PollEvery = a.ending.finishFirst(pass.say), f.parallel, f.poll
	pass.repo.stop = pass.Stop
	if f.deadline > 0 {
		pass.Until = time.Now().Add(f.deadline)
	}
	result, err := pass.Run(ctx)
	if err != nil {
		return passError(err, f.detailed)
	}
	pass.end()
	if err := a.printPass(f.output, pass.repo.origin(), result); err != nil {
		return err
	}
	if f.detailed {
		return exitWith(detailedCode(result))
	}
	return exitWith(plainCode(result))
}

// passError is an error before any cluster was looked at, with its code.
func passError(err error, detailed bool) error {
	var exit *exitError
	switch {
	case errors.As(err, &exit):
		return err
	case errors.Is(err, reconcile.ErrUnknownCluster):
		return &exitError{code: exitUsage, err: err}
	case detailed:
		return &exitError{code: exitTransient, err: err}
	default:
		return &exitError{code: exitFailed, err: err}
	}
}

// pass is a reconcile.Pass made from the flags, with what must be ended after it.
type pass struct {
	reconcile.Pass
	*progress
	repo *repository
}

func (a *app) pass(ctx context.Context, f fleetFlags, log logFlags) (*pass, error) {
	secrets := secretSource{dir: f.secrets}
	repo, err := f.open(ctx, secrets)
	if err != nil {
		return nil, err
	}
	repo.warn = a.warn
	progress := a.progress(log)
	return &pass{
		Pass: reconcile.Pass{
			Source: repo, Status: repo, Connector: connector{
				secrets: secrets, progress: progress,
				export: func(ctx context.Context, folder string) error {
					return repo.export(ctx, string(repo.tip.Revision), folder)
				},
			}, Progress: progress,
			Place: func() logbook.Owner {
				return logbook.Owner{Repository: repo.Identity(), Branch: repo.tip.Branch, Path: repo.path}
			},
			Now: time.Now, Sleep: sleep, PollEvery: 2 * time.Second, Parallel: 4, Only: f.clusters,
		},
		progress: progress, repo: repo,
	}, nil
}

func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
