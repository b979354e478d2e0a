// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/theseus-gitops/theseus/reconcile/corefile"
	"github.com/theseus-gitops/theseus/reconcile/skew"
)

func (a *app) corednsCommand() *cobra.Command {
	c := &cobra.Command{Use: "coredns", Short: "Look at CoreDNS upgrades", Args: cobra.ArbitraryArgs, RunE: unknownCommand}
	c.AddCommand(a.previewCommand())
	return c
}

type previewFlags struct {
	from, to, file string
	skip           bool
	output         output
}

func (a *app) previewCommand() *cobra.Command {
	var f previewFlags
	c := &cobra.Command{
		Use:   "preview --from TAG --to TAG [--file FILE]",
		Short: "Show, offline, what a CoreDNS upgrade does to a Corefile",
		Long: `Preview judges a Corefile for the step between two CoreDNS versions, exactly as reconcile does, without a cluster.
The Corefile stays byte for byte as it is unless a plugin or option in it is gone or a new default is needed. The
verdict and notices go to standard error, the resulting Corefile to standard output; with -o json or yaml everything
goes to standard output.

Exit codes: 0 unchanged or migrated, 20 refused, 2 a tag that can't be read, 1 a file that can't be read, 130 after
Ctrl-C, 143 after SIGTERM.`,
		Example: `  theseus coredns preview --from v1.11.3 --to v1.14.6 --file Corefile
  kubectl -n kube-system get cm coredns -o jsonpath='{.data.Corefile}' |
    theseus coredns preview --from 1.6.7 --to v1.14.6 > Corefile.new`,
		Args: none,
		RunE: func(*cobra.Command, []string) error { return a.preview(f) },
	}
	c.Flags().StringVar(&f.from, "from", "", "tag that runs")
	c.Flags().StringVar(&f.to, "to", "", "tag that is wanted")
	c.Flags().StringVarP(&f.file, "file", "f", "-", "the Corefile; - is standard input")
	c.Flags().BoolVar(&f.skip, "skip-migration", false, "judge as with coreDNS.skipCorefileMigration: true")
	f.output.bind(c)
	return c
}

// preview is the JSON form of an assessment.
type preview struct {
	From     string            `json:"from"`
	To       string            `json:"to"`
	Outcome  string            `json:"outcome"`
	Reason   string            `json:"reason"`
	Notices  []corefile.Notice `json:"notices"`
	Corefile string            `json:"corefile"`
}

func (a *app) preview(f previewFlags) error {
	if err := f.output.check(); err != nil {
		return err
	}
	for _, t := range []struct{ flag, tag string }{{"--from", f.from}, {"--to", f.to}} {
		if t.tag == "" {
			return usage("%s is missing: give the tags that run and are wanted, for example --from v1.11.3 --to v1.14.6", t.flag)
		}
		if _, err := skew.ParseTag(t.tag); err != nil {
			return usage("%s: %w", t.flag, err)
		}
	}
	text, err := a.readInput(f.file)
	if err != nil {
		return err
	}
	result := corefile.Assess(corefile.Request{From: f.from, To: f.to, Corefile: string(text), SkipMigration: f.skip})
	if err := a.printPreview(f, result); err != nil {
		return err
	}
	if result.Outcome == corefile.Refused {
		return exitWith(exitInvalid)
	}
	return nil
}

func (a *app) printPreview(f previewFlags, result corefile.Assessment) error {
	if !f.output.text() {
		notices := result.Notices
		if notices == nil {
			notices = []corefile.Notice{}
		}
		return f.output.write(a.std.out, preview{
			From: f.from, To: f.to, Outcome: result.Outcome.String(), Reason: result.Reason, Notices: notices, Corefile: result.Corefile,
		})
	}
	_, _ = fmt.Fprintf(a.std.err, "CoreDNS %s → %s: %s", f.from, f.to, result.Outcome)
	if result.Reason != "" {
		_, _ = fmt.Fprintf(a.std.err, ": %s", result.Reason)
	}
	_, _ = fmt.Fprintln(a.std.err)
	for _, n := range result.Notices {
		_, _ = fmt.Fprintf(a.std.err, "  %s: %s\n", n.Severity, n.Message)
	}
	_, err := fmt.Fprint(a.std.out, result.Corefile)
	return err
}

// readInput reads a named file, or standard input for -.
func (a *app) readInput(name string) ([]byte, error) {
	if name != "-" {
		return os.ReadFile(name) //nolint:gosec // the file is the user's own choice
	}
	data, err := io.ReadAll(io.LimitReader(a.std.in, 1<<20))
	if err != nil {
		return nil, fmt.Errorf("standard input: %w", err)
	}
	if len(data) == 0 {
		return nil, usage("standard input is empty: pipe a Corefile in, or name one with --file")
	}
	return data, nil
}
