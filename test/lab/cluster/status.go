// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"text/tabwriter"
	"time"

	"github.com/theseus-gitops/theseus/test/lab/service"
)

// Status writes what there is of the lab: service, machines, endpoint, API server, DNS. A part that does not answer is
// told, and is no error.
func (c *Cluster) Status(ctx context.Context, out io.Writer) error {
	if err := c.readConfig(); errors.Is(err, fs.ErrNotExist) {
		_, err = fmt.Fprintf(out, "lab %s: not there\n", c.Name)
		return err
	} else if err != nil {
		return err
	}
	ctx, stop := context.WithTimeout(ctx, 20*time.Second)
	defer stop()
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	line := func(what, value string) { _, _ = fmt.Fprintf(w, "%s\t%s\n", what, value) } // Flush reports
	line("lab", c.Name+" in "+c.Dir)
	line("node image", c.Config.Image)
	line("service", c.serviceStatus(ctx))
	var list struct{ Machines []service.Machine }
	if err := c.cloud.get(ctx, "/machines", &list); err == nil {
		for _, m := range list.Machines {
			text := fmt.Sprintf("%s %s, pods %s", m.State, m.Address, m.PodCIDR)
			if m.Fault != "" {
				text += ", fault: " + string(m.Fault)
			}
			line("machine "+m.Name, text)
		}
	}
	line("API server", c.apiStatus())
	dns := "answers at " + c.DNSAddress().String()
	if _, err := c.Resolve(ctx, kubernetesService); err != nil {
		dns = err.Error()
	}
	line("DNS", dns)
	return w.Flush()
}

func (c *Cluster) serviceStatus(ctx context.Context) string {
	var health struct{ Lab string }
	if err := c.cloud.get(ctx, "/healthz", &health); err != nil {
		return "does not answer: " + err.Error()
	}
	return "answers at " + c.Service()
}

func (c *Cluster) apiStatus() string {
	client, err := c.Client()
	if err != nil {
		return err.Error()
	}
	version, err := client.Discovery().ServerVersion()
	if err != nil {
		return err.Error()
	}
	return version.GitVersion + " at https://" + c.Config.EndpointAddress()
}
