// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/theseus-gitops/theseus/test/lab/cluster"
	"github.com/theseus-gitops/theseus/test/lab/parts"
)

func up(ctx context.Context, c *command) error {
	c.flags.StringVar(&c.options.Kubernetes, "kubernetes", parts.First, "Kubernetes version")
	c.flags.IntVar(&c.options.Machines, "machines", 1, "control-plane machines of a new lab")
	c.flags.BoolVar(&c.options.HealthChecked, "health-checked", false, "the load balancer finds serving machines by itself")
	if err := c.parse(0); err != nil {
		return err
	}
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("finding this program, to start its service: %w", err)
	}
	c.options.Binary, c.options.Out = self, c.out
	start := time.Now()
	lab, err := cluster.Up(ctx, c.options)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(c.out, "up in %.1f s\n  export KUBECONFIG=%s\n  endpoint https://%s, lab service %s\n",
		time.Since(start).Seconds(), lab.Kubeconfig, lab.Config.EndpointAddress(), lab.Service())
	return err
}

func down(ctx context.Context, c *command) error {
	if err := c.parse(0); err != nil {
		return err
	}
	lab, err := cluster.New(c.options)
	if err != nil {
		return err
	}
	return lab.Down(ctx)
}

func status(ctx context.Context, c *command) error {
	if err := c.parse(0); err != nil {
		return err
	}
	lab, err := cluster.New(c.options)
	if err != nil {
		return err
	}
	return lab.Status(ctx, c.out)
}

func kubeconfig(_ context.Context, c *command) error {
	if err := c.parse(0); err != nil {
		return err
	}
	lab, err := cluster.Load(c.options)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(c.out, lab.Kubeconfig)
	return err
}

func module(_ context.Context, c *command) error {
	if err := c.parse(0); err != nil {
		return err
	}
	lab, err := cluster.Load(c.options)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(c.out, lab.ModuleDir())
	return err
}

func machineExec(ctx context.Context, c *command) error {
	if err := c.parse(-1); err != nil {
		return err
	}
	args := c.flags.Args()
	if len(args) > 1 && args[1] == "--" {
		args = append(args[:1:1], args[2:]...)
	}
	if len(args) < 2 {
		return errors.New("machine-exec needs a machine and a command: lab machine-exec lab-cp-1 -- crictl ps")
	}
	lab, err := cluster.Load(c.options)
	if err != nil {
		return err
	}
	out, err := lab.Exec(ctx, args[0], args[1:]...)
	if err != nil {
		return err
	}
	_, err = fmt.Fprint(c.out, out)
	return err
}

func resetCoreDNS(ctx context.Context, c *command) error {
	tag := c.flags.String("tag", cluster.CoreDNSTag, "image tag")
	file := c.flags.String("corefile", "", "Corefile (default: kubeadm's own)")
	if err := c.parse(0); err != nil {
		return err
	}
	var corefile []byte
	if *file != "" {
		var err error
		if corefile, err = os.ReadFile(*file); err != nil {
			return fmt.Errorf("reading the Corefile: %w", err)
		}
	}
	lab, err := cluster.Load(c.options)
	if err != nil {
		return err
	}
	return lab.ResetCoreDNS(ctx, *tag, string(corefile))
}

func engine(ctx context.Context, c *command) error {
	if err := c.parse(0); err != nil {
		return err
	}
	c.options.Out = c.out
	lab, err := cluster.New(c.options)
	if err != nil {
		return err
	}
	return lab.EnsureEngine(ctx)
}

func corefile(ctx context.Context, c *command) error {
	if err := c.parse(0); err != nil {
		return err
	}
	lab, err := cluster.Load(c.options)
	if err != nil {
		return err
	}
	client, err := lab.Client()
	if err != nil {
		return err
	}
	config, err := client.CoreV1().ConfigMaps(metav1.NamespaceSystem).Get(ctx, "coredns", metav1.GetOptions{})
	if err != nil {
		return fmt.Errorf("reading CoreDNS's ConfigMap: %w", err)
	}
	_, err = fmt.Fprint(c.out, config.Data["Corefile"])
	return err
}
