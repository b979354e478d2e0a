// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

const (
	pidFile    = "service.pid"
	serviceLog = "service.log"
)

// processID names a process for good: a number that is used again belongs to one that started at another time.
type processID struct {
	PID   int    `json:"pid"`
	Start string `json:"start"` // in ticks after boot, field 22 of /proc/PID/stat
}

// started reads when the process of that number started; false when there is none.
func started(pid int) (string, bool) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return "", false
	}
	// The second field is the command in parentheses and may hold blanks: count from behind it.
	rest := string(stat)[strings.LastIndexByte(string(stat), ')')+1:]
	fields := strings.Fields(rest)
	const state, start = 0, 19
	if len(fields) <= start || fields[state] == "Z" {
		return "", false
	}
	return fields[start], true
}

func (p processID) alive() bool {
	start, ok := started(p.PID)
	return ok && start == p.Start
}

// serviceProcess reads which process is the lab's service; the zero value when none was started.
func (c *Cluster) serviceProcess() (processID, error) {
	var p processID
	data, err := os.ReadFile(filepath.Join(c.Dir, pidFile))
	if errors.Is(err, fs.ErrNotExist) {
		return p, nil
	}
	if err != nil {
		return p, fmt.Errorf("reading the service's process number: %w", err)
	}
	if err := json.Unmarshal(data, &p); err != nil {
		return p, fmt.Errorf("reading %s: %w", pidFile, err)
	}
	return p, nil
}

// ensureService starts the service in the background, unless it runs, and waits until it answers.
func (c *Cluster) ensureService(ctx context.Context) error {
	p, err := c.serviceProcess()
	if err != nil {
		return err
	}
	if !p.alive() {
		if p, err = c.startService(ctx); err != nil {
			return err
		}
	}
	return poll(ctx, 20*time.Second, 50*time.Millisecond, func(ctx context.Context) error {
		var health struct{ Lab string }
		err := c.cloud.get(ctx, "/healthz", &health)
		switch {
		case err == nil && health.Lab == c.Name:
			return nil
		case err == nil:
			return &finalError{fmt.Errorf("at %s another lab, %q, answers", c.cloud.base, health.Lab)}
		case !p.alive():
			return &finalError{fmt.Errorf("the service ended at its start:\n%s", c.tail(serviceLog))}
		}
		return err
	})
}

func (c *Cluster) startService(ctx context.Context) (processID, error) {
	binary, err := c.binary(ctx)
	if err != nil {
		return processID{}, err
	}
	process, err := startDetached(filepath.Join(c.Dir, serviceLog), binary, "service", "--state", c.Dir)
	if err != nil {
		return processID{}, err
	}
	go func() { _, _ = process.Wait() }() // no zombie while this process lives: alive would take it for running
	start, _ := started(process.Pid)
	p := processID{PID: process.Pid, Start: start}
	return p, c.writeFile(pidFile, p)
}

// binary is the lab command: the running one, or built when a test is running.
func (c *Cluster) binary(ctx context.Context) (string, error) {
	if c.options.Binary != "" {
		return c.options.Binary, nil
	}
	path := filepath.Join(c.options.Root, "bin", "lab")
	build := exec.CommandContext(ctx, "go", "build", "-o", path, "./cmd/lab")
	build.Dir = c.options.Source
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("building the lab command: %w\n%s", err, out)
	}
	return path, nil
}

// tail is the end of one of the lab's logs.
func (c *Cluster) tail(name string) string {
	data, err := os.ReadFile(filepath.Join(c.Dir, name))
	if err != nil {
		return err.Error()
	}
	const most = 2000
	if len(data) > most {
		data = data[len(data)-most:]
	}
	return string(data)
}

// stopService ends the service, and with it the load balancer. There may be none.
func (c *Cluster) stopService(ctx context.Context) error {
	p, err := c.serviceProcess()
	if err != nil {
		return err
	}
	for _, signal := range []syscall.Signal{syscall.SIGTERM, syscall.SIGKILL} {
		if !p.alive() {
			return nil
		}
		if err := syscall.Kill(p.PID, signal); err != nil && !errors.Is(err, syscall.ESRCH) {
			return fmt.Errorf("ending the service (process %d): %w", p.PID, err)
		}
		err = poll(ctx, 15*time.Second, 50*time.Millisecond, func(context.Context) error {
			if p.alive() {
				return fmt.Errorf("the service (process %d) still runs", p.PID)
			}
			return nil
		})
	}
	return err
}
