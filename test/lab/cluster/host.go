// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"
)

// ensureEngine checks what the lab needs of this host, and starts dockerd when no engine answers: in CI nothing else does.
func (c *Cluster) ensureEngine(ctx context.Context) error {
	if os.Geteuid() != 0 {
		return errors.New("not root: machines need loop devices, routes and all capabilities: run it as root")
	}
	for _, tool := range []struct{ command, debian string }{
		{"docker", "docker.io (and docker-cli from Debian 13 on)"}, {"haproxy", "haproxy"}, {"ip", "iproute2"},
		{"losetup", "mount"}, {"mkfs.ext4", "e2fsprogs"}, {"curl", "curl"},
	} {
		if _, err := exec.LookPath(tool.command); err != nil {
			return fmt.Errorf("no command %s: apt-get install %s: %w", tool.command, tool.debian, err)
		}
	}
	if _, err := c.engine.Version(ctx); err == nil {
		return nil
	}
	return c.startEngine(ctx)
}

// EnsureEngine starts Docker Engine when none answers. Parts that Docker builds need it before any lab is up.
func (c *Cluster) EnsureEngine(ctx context.Context) error { return c.ensureEngine(ctx) }

// startEngine starts dockerd, which stays when the lab goes: other labs may use it.
func (c *Cluster) startEngine(ctx context.Context) error {
	if _, err := exec.LookPath("dockerd"); err != nil {
		return fmt.Errorf("no container engine answers and there is no dockerd to start: apt-get install docker.io: %w", err)
	}
	if err := os.MkdirAll(c.options.Root, 0o755); err != nil {
		return fmt.Errorf("the cache folder: %w", err)
	}
	file := filepath.Join(c.options.Root, "dockerd.log")
	c.say("no container engine answers: starting dockerd, which logs to %s", file)
	process, err := startDetached(file, "dockerd")
	if err != nil {
		return err
	}
	ended := make(chan error, 1)
	go func() { _, err := process.Wait(); ended <- err }()
	return poll(ctx, time.Minute, 250*time.Millisecond, func(ctx context.Context) error {
		_, err := c.engine.Version(ctx)
		if err == nil {
			return nil
		}
		select {
		case wait := <-ended:
			return &finalError{errors.Join(fmt.Errorf("dockerd ended at its start: %s says why", file), wait)}
		default:
			return fmt.Errorf("dockerd does not answer yet (log: %s): %w", file, err)
		}
	})
}

// startDetached starts a process that outlives this one, in a session of its own, its output appended to a file.
func startDetached(log string, args ...string) (*os.Process, error) {
	path, err := exec.LookPath(args[0])
	if err != nil {
		return nil, fmt.Errorf("starting %s: %w", args[0], err)
	}
	out, err := os.OpenFile(log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, fmt.Errorf("starting %s: %w", args[0], err)
	}
	defer func() { _ = out.Close() }() // the child has its own copy
	null, err := os.Open(os.DevNull)
	if err != nil {
		return nil, fmt.Errorf("starting %s: %w", args[0], err)
	}
	defer func() { _ = null.Close() }()
	process, err := os.StartProcess(path, args, &os.ProcAttr{
		Dir: "/", Env: os.Environ(), Files: []*os.File{null, out, out}, Sys: &syscall.SysProcAttr{Setsid: true},
	})
	if err != nil {
		return nil, fmt.Errorf("starting %s: %w", args[0], err)
	}
	return process, nil
}

// lockLab keeps two commands from working on one lab at once. The lock ends with the process.
func lockLab(ctx context.Context, dir string) (unlock func(), err error) {
	if err := os.MkdirAll(filepath.Dir(dir), 0o700); err != nil {
		return nil, fmt.Errorf("making the labs' folder: %w", err)
	}
	f, err := os.OpenFile(dir+".lock", os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("locking the lab: %w", err)
	}
	err = poll(ctx, 10*time.Minute, 200*time.Millisecond, func(context.Context) error {
		return syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	})
	if err != nil {
		return nil, errors.Join(fmt.Errorf("locking the lab (%s): %w", f.Name(), err), f.Close())
	}
	return func() { _ = f.Close() }, nil
}
