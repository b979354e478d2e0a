// SPDX-License-Identifier: Apache-2.0

// Command lab brings a real kubeadm cluster up on this machine and takes it down again: see test/lab/README.md.
// It has no logic of its own: packages cluster and service have.
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

	"github.com/theseus-gitops/theseus/test/lab/cluster"
	"github.com/theseus-gitops/theseus/test/lab/service"
)

const usage = `Usage: lab COMMAND [flags]

  up            bring the lab up, or find it up
  down          remove all of it; built parts stay
  status        say what is there
  kubeconfig    print the path of the administrator's kubeconfig
  module        print the folder of the Terraform module that made the machines
  machine-exec  MACHINE -- COMMAND ...: run a command in a machine
  reset-coredns put CoreDNS back: --tag TAG, --corefile FILE (default: kubeadm's own)
  corefile      print the Corefile that is in the cluster
  engine        start Docker Engine when none answers (up does it too)
  service       serve machines, faults, endpoint and Terraform states (up starts it)

Every command but service takes --name (default "lab"): labs of different names live side by side.
`

// errUsage is a command line that makes no sense; what is wrong was said already.
var errUsage = errors.New("usage")

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	switch {
	case errors.Is(err, errUsage), errors.Is(err, flag.ErrHelp):
		os.Exit(2)
	case err != nil:
		fmt.Fprintln(os.Stderr, "lab:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, out, errOut io.Writer) error {
	commands := map[string]func(context.Context, *command) error{
		"up": up, "down": down, "status": status, "kubeconfig": kubeconfig, "module": module,
		"machine-exec": machineExec, "reset-coredns": resetCoreDNS, "corefile": corefile, "engine": engine, "service": serve,
	}
	if len(args) == 0 || commands[args[0]] == nil {
		_, _ = io.WriteString(errOut, usage)
		return errUsage
	}
	c := &command{args: args[1:], out: out, flags: flag.NewFlagSet("lab "+args[0], flag.ContinueOnError)}
	c.flags.SetOutput(errOut)
	if args[0] != "service" {
		c.flags.StringVar(&c.options.Name, "name", "lab", "name of the lab")
	}
	return commands[args[0]](ctx, c)
}

// command is what every command gets: its arguments, flags to add its own to, and where to write.
type command struct {
	args    []string
	out     io.Writer
	flags   *flag.FlagSet
	options cluster.Options
}

// parse reads the flags; as many arguments as asked for must be left, or any number when that is negative.
func (c *command) parse(arguments int) error {
	if err := c.flags.Parse(c.args); err != nil {
		return errors.Join(errUsage, err)
	}
	if arguments >= 0 && c.flags.NArg() != arguments {
		return fmt.Errorf("%s takes no argument %q", c.flags.Name(), c.flags.Args())
	}
	return nil
}

func serve(ctx context.Context, c *command) error {
	dir := c.flags.String("state", "", "the lab's folder")
	if err := c.parse(0); err != nil {
		return err
	}
	if *dir == "" {
		return errors.New("service needs --state: lab up starts it with the lab's folder")
	}
	return service.Run(ctx, *dir, c.out)
}
