// SPDX-License-Identifier: Apache-2.0

// Package cluster brings up a real kubeadm cluster on this machine, resets it between scenarios, and takes it down.
// It builds nothing (package parts does) and makes no machine itself (package service does, as a cloud would).
// Start at Up, whose steps are the whole story.
package cluster

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"time"

	"github.com/theseus-gitops/theseus/test/lab/parts"
	"github.com/theseus-gitops/theseus/test/lab/service"
	"github.com/theseus-gitops/theseus/test/lab/service/engine"
)

// Options say which lab. The zero value is the default lab.
type Options struct {
	Name       string // default "lab": several labs live side by side under different names
	Kubernetes string // default parts.First
	// Machines are the control plane's, made when the lab is new; default 1.
	Machines int
	// HealthChecked: the load balancer has every machine behind it and finds out itself which of them serve. Else a
	// machine is behind it while it is asked to serve.
	HealthChecked bool
	Root          string // cache folder; default parts.DefaultRoot()
	// Binary is the lab command, started again as the lab's service. Empty: it is built from Source first.
	Binary string
	Source string    // the lab's module folder; default: found from the working folder upwards
	Out    io.Writer // progress, one line per step; default: none
}

// Cluster is a lab that is up.
type Cluster struct {
	Name string
	// Dir holds all that belongs to this lab: configuration, disks, logs, Terraform states.
	Dir string
	// Kubeconfig is the file with an administrator's access through the endpoint.
	Kubeconfig string
	Config     service.Config

	options Options
	engine  *engine.Docker
	cloud   cloud
}

// machine is the name of a new lab's control-plane machine of that number, from 1.
func (c *Cluster) machine(n int) string { return fmt.Sprintf("%s-cp-%d", c.Name, n) }

var validLab = regexp.MustCompile(`^[a-z]([a-z0-9-]{0,18}[a-z0-9])?$`)

func (o Options) withDefaults() (Options, error) {
	if o.Name == "" {
		o.Name = "lab"
	}
	if !validLab.MatchString(o.Name) {
		return o, fmt.Errorf("lab name %q: want a letter, then up to 19 of a-z, 0-9 and -", o.Name)
	}
	if o.Kubernetes == "" {
		o.Kubernetes = parts.First
	}
	if o.Machines == 0 {
		o.Machines = 1
	}
	if o.Out == nil {
		o.Out = io.Discard
	}
	if o.Root == "" {
		root, err := parts.DefaultRoot()
		if err != nil {
			return o, err
		}
		o.Root = root
	}
	return o, nil
}

// New returns the lab of that name, which may or may not be up.
func New(o Options) (*Cluster, error) {
	o, err := o.withDefaults()
	if err != nil {
		return nil, err
	}
	mode, err := engine.DetectMode()
	if err != nil {
		return nil, err
	}
	dir := filepath.Join(o.Root, "labs", o.Name)
	return &Cluster{
		Name: o.Name, Dir: dir, Kubeconfig: filepath.Join(dir, "kubeconfig"), options: o, engine: engine.New(mode),
	}, nil
}

// step is one thing that Up sees to. Each finds its work done when it runs again.
type step struct {
	name string
	run  func(context.Context) error
}

// Up brings the lab up, or finds it up. What an earlier, broken attempt left is used, or said to be in the way.
func Up(ctx context.Context, o Options) (*Cluster, error) {
	c, err := New(o)
	if err != nil {
		return nil, err
	}
	unlock, err := lockLab(ctx, c.Dir)
	if err != nil {
		return nil, err
	}
	defer unlock()
	for _, s := range []step{
		{"container engine", c.ensureEngine},
		{"node image", c.ensureImage},
		{"network", c.ensureNetwork},
		{"lab service", c.ensureService},
		{"Terraform module", c.ensureModule},
		{fmt.Sprintf("%d control-plane machine(s)", c.options.Machines), c.ensureMachines},
		{"control plane ready", c.awaitControlPlane},
		{"kube-proxy ready", c.awaitProxy},
		{"CoreDNS ready, and answering through kube-proxy", c.awaitDNS},
		{"state to go back to", c.keepOriginals},
	} {
		start := time.Now()
		if err := s.run(ctx); err != nil {
			return nil, fmt.Errorf("lab %s: %s: %w", c.Name, s.name, err)
		}
		c.say("%-50s %5.1f s", s.name, time.Since(start).Seconds())
	}
	return c, nil
}

func (c *Cluster) say(format string, args ...any) {
	_, _ = fmt.Fprintf(c.options.Out, format+"\n", args...) // progress that nobody can read is no failure
}

// ensureImage builds what is missing of the parts, and takes the node image's name from there.
func (c *Cluster) ensureImage(ctx context.Context) (err error) {
	if c.options.Source == "" {
		here, err := os.Getwd()
		if err != nil {
			return err
		}
		if c.options.Source, err = parts.FindSource(here); err != nil {
			return err
		}
	}
	c.Config.Image, err = c.NodeImage(ctx, parts.Debian12, c.options.Kubernetes)
	return err
}

// NodeImage is the machine image of a Debian release and a Kubernetes version: it is built when it is missing.
func (c *Cluster) NodeImage(ctx context.Context, release parts.Release, kubernetes string) (string, error) {
	versions, err := parts.VersionsOf(kubernetes)
	if err != nil {
		return "", err
	}
	cache, err := parts.Open(c.options.Root, c.options.Source, c.options.Out)
	if err != nil {
		return "", err
	}
	return cache.NodeImage(ctx, release, versions)
}

// Exec runs a command in a machine and returns its standard output.
func (c *Cluster) Exec(ctx context.Context, machine string, args ...string) (string, error) {
	name, err := c.container(ctx, machine)
	if err != nil {
		return "", err
	}
	return c.engine.Exec(ctx, name, args...)
}

// container finds a machine's container by its labels, never by its name: nothing but the lab's own is touched.
func (c *Cluster) container(ctx context.Context, machine string) (string, error) {
	list, err := c.engine.List(ctx, engine.Labels(c.Name))
	if err != nil {
		return "", err
	}
	for _, l := range list {
		if l.Labels[service.LabelMachine] == machine {
			return l.Name, nil
		}
	}
	return "", fmt.Errorf("lab %s has no machine %q", c.Name, machine)
}

// poll runs check until it answers nil, with its last error when ctx or the time ends.
func poll(ctx context.Context, limit, interval time.Duration, check func(context.Context) error) error {
	ctx, stop := context.WithTimeout(ctx, limit)
	defer stop()
	for {
		err := check(ctx)
		var final *finalError
		if err == nil || errors.As(err, &final) {
			return err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("not within %s: %w", limit, err)
		case <-time.After(interval):
		}
	}
}

// finalError is one that waiting does not mend.
type finalError struct{ error }

func (e *finalError) Unwrap() error { return e.error }

// cloud is the lab service's client.
type cloud struct{ base string }

// Service is the URL of the lab's service.
func (c *Cluster) Service() string { return "http://" + c.Config.ServiceAddress() }
