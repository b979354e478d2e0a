// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/theseus-gitops/theseus/test/lab/service"
	"github.com/theseus-gitops/theseus/test/lab/service/engine"
)

// Down removes all that the lab made: service and load balancer by process number, the rest by label. It may be
// repeated, and works on what is left of a broken lab. Built parts and the container engine stay.
func (c *Cluster) Down(ctx context.Context) error {
	unlock, err := lockLab(ctx, c.Dir)
	if err != nil {
		return err
	}
	defer unlock()
	if err := c.stopService(ctx); err != nil {
		return err
	}
	if _, err := c.engine.Version(ctx); err != nil {
		if _, missing := os.Stat(c.Dir); errors.Is(missing, os.ErrNotExist) {
			return nil // no engine and no folder: there is no lab
		}
		return fmt.Errorf("the container engine does not answer, so the lab's containers can't be removed: %w", err)
	}
	return c.removeAll(ctx)
}

// removeAll removes containers, disks, network and folder, in this order: each is held by the one before.
func (c *Cluster) removeAll(ctx context.Context) error {
	for _, remove := range []func(context.Context) error{c.removeContainers, c.removeDisks, c.removeNetworks} {
		if err := remove(ctx); err != nil {
			return err
		}
	}
	if err := os.RemoveAll(c.Dir); err != nil {
		return fmt.Errorf("removing the lab's folder: %w", err)
	}
	return nil
}

func (c *Cluster) removeContainers(ctx context.Context) error {
	containers, err := c.engine.List(ctx, engine.Labels(c.Name))
	if err != nil {
		return err
	}
	for _, l := range containers {
		if err := c.engine.Remove(ctx, l.Name); err != nil {
			return err
		}
	}
	return nil
}

func (c *Cluster) removeDisks(ctx context.Context) error {
	volumes, err := c.engine.Volumes(ctx, engine.Labels(c.Name))
	if err != nil {
		return err
	}
	for _, volume := range volumes {
		if err := c.engine.RemoveVolume(ctx, volume); err != nil {
			return err
		}
	}
	disks, err := filepath.Glob(filepath.Join(c.Dir, service.DiskFolder, "*"))
	if err != nil {
		return err
	}
	for _, file := range disks {
		if err := engine.DetachDisk(ctx, file); err != nil {
			return err
		}
	}
	return nil
}

func (c *Cluster) removeNetworks(ctx context.Context) error {
	networks, err := c.engine.Networks(ctx)
	if err != nil {
		return err
	}
	for _, n := range networks {
		if n.Labels[engine.Label] == "1" && n.Labels[engine.LabLabel] == c.Name {
			if err := c.engine.RemoveNetwork(ctx, n.Name); err != nil {
				return err
			}
		}
	}
	return nil
}
