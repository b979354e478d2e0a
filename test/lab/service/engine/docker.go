// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"archive/tar"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"path"
	"strings"
	"time"
)

// Docker is the container engine, reached through the docker command.
type Docker struct{ mode Mode }

// New returns the engine of this host. It does not check that one answers: see Version.
func New(mode Mode) *Docker { return &Docker{mode: mode} }

// Version asks the engine for its version; an error means that none answers.
func (d *Docker) Version(ctx context.Context) (string, error) {
	out, err := run(ctx, nil, "docker", "version", "--format", "{{.Server.Version}}")
	return strings.TrimSpace(out), err
}

// Container is one container of the lab, as the engine has it now.
type Container struct {
	Name   string
	Image  string
	State  State
	Labels map[string]string
}

// State is the engine's word for what a container does.
type State string

// The states that the lab tells apart.
const (
	StateCreated State = "created" // made, never started
	StateRunning State = "running"
	StatePaused  State = "paused"
	StateExited  State = "exited"
)

// List returns the containers that carry all the labels, running or not.
func (d *Docker) List(ctx context.Context, labels map[string]string) ([]Container, error) {
	ids, err := d.ids(ctx, labels, "ps", "--all", "--no-trunc")
	if err != nil || len(ids) == 0 {
		return nil, err
	}
	out, err := run(ctx, nil, append([]string{"docker", "container", "inspect"}, ids...)...)
	if err != nil {
		return nil, err
	}
	return parseContainers(out)
}

func parseContainers(inspect string) ([]Container, error) {
	var raw []struct {
		Name   string
		State  struct{ Status State }
		Config struct {
			Image  string
			Labels map[string]string
		}
	}
	if err := json.Unmarshal([]byte(inspect), &raw); err != nil {
		return nil, fmt.Errorf("reading the engine's list of containers: %w", err)
	}
	list := make([]Container, 0, len(raw))
	for _, r := range raw {
		list = append(list, Container{
			Name: strings.TrimPrefix(r.Name, "/"), Image: r.Config.Image, State: r.State.Status, Labels: r.Config.Labels,
		})
	}
	return list, nil
}

// ids runs a listing subcommand filtered by labels.
func (d *Docker) ids(ctx context.Context, labels map[string]string, args ...string) ([]string, error) {
	args = append([]string{"docker"}, args...)
	args = append(args, "--quiet")
	for k, v := range labels {
		args = append(args, "--filter", "label="+k+"="+v)
	}
	out, err := run(ctx, nil, args...)
	return strings.Fields(out), err
}

// Create makes a container and does not start it.
func (d *Docker) Create(ctx context.Context, s Spec) error {
	_, err := run(ctx, nil, append([]string{"docker"}, s.createArgs(d.mode)...)...)
	return err
}

// File is a file to put into a container.
type File struct {
	Path string // absolute
	Mode int64
	Data []byte
	Link string // when set, a symbolic link to this target instead of a file
}

// CopyIn writes files into a container, started or not. Missing folders are made.
func (d *Docker) CopyIn(ctx context.Context, container string, files []File) error {
	archive, err := archiveOf(files)
	if err != nil {
		return err
	}
	_, err = run(ctx, archive, "docker", "cp", "-", container+":/")
	return err
}

func archiveOf(files []File) (io.Reader, error) {
	var buf bytes.Buffer
	w := tar.NewWriter(&buf)
	for _, f := range files {
		h := &tar.Header{
			Name: strings.TrimPrefix(path.Clean(f.Path), "/"), Mode: f.Mode, Size: int64(len(f.Data)),
			Typeflag: tar.TypeReg, ModTime: time.Unix(0, 0),
		}
		if f.Link != "" {
			h.Typeflag, h.Linkname, h.Size, h.Mode = tar.TypeSymlink, f.Link, 0, 0o777
		}
		if err := w.WriteHeader(h); err != nil {
			return nil, fmt.Errorf("packing %s: %w", f.Path, err)
		}
		if _, err := w.Write(f.Data[:h.Size]); err != nil {
			return nil, fmt.Errorf("packing %s: %w", f.Path, err)
		}
	}
	if err := w.Close(); err != nil {
		return nil, fmt.Errorf("packing files: %w", err)
	}
	return &buf, nil
}

// Start starts a created or exited container.
func (d *Docker) Start(ctx context.Context, name string) error { return d.one(ctx, "start", name) }

// Kill ends a container at once, as a power cut would.
func (d *Docker) Kill(ctx context.Context, name string) error { return d.one(ctx, "kill", name) }

// Pause freezes all processes of a container.
func (d *Docker) Pause(ctx context.Context, name string) error { return d.one(ctx, "pause", name) }

// Unpause lets a paused container go on.
func (d *Docker) Unpause(ctx context.Context, name string) error { return d.one(ctx, "unpause", name) }

func (d *Docker) one(ctx context.Context, verb, name string) error {
	_, err := run(ctx, nil, "docker", verb, name)
	return err
}

// Remove ends and removes a container with its anonymous volumes.
func (d *Docker) Remove(ctx context.Context, name string) error {
	_, err := run(ctx, nil, "docker", "rm", "--force", "--volumes", name)
	return err
}

// Exec runs a command in a container and returns its standard output.
func (d *Docker) Exec(ctx context.Context, name string, args ...string) (string, error) {
	return run(ctx, nil, append([]string{"docker", "exec", name}, args...)...)
}
