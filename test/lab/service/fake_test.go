// SPDX-License-Identifier: Apache-2.0

package service_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/theseus-gitops/theseus/test/lab/service"
	"github.com/theseus-gitops/theseus/test/lab/service/engine"
)

// fakeEngine behaves as a container engine does: names are unique, addresses too, and a container does only what its
// state allows. fail makes the next call of that name break.
type fakeEngine struct {
	mu         sync.Mutex
	containers map[string]*fakeContainer
	disks      map[string]engine.Disk
	routes     map[string]string
	fail       string
	calls      []string
}

type fakeContainer struct {
	engine.Container
	address string // empty: unplugged
	files   map[string]engine.File
	full    bool
	boots   int
}

func newFakeEngine() *fakeEngine {
	return &fakeEngine{containers: map[string]*fakeContainer{}, disks: map[string]engine.Disk{}, routes: map[string]string{}}
}

// call notes a call and breaks when it was told to.
func (f *fakeEngine) call(name string) error {
	f.calls = append(f.calls, name)
	if f.fail == name {
		f.fail = ""
		return errors.New("the engine broke at " + name)
	}
	return nil
}

func (f *fakeEngine) in(name string, states ...engine.State) (*fakeContainer, error) {
	c := f.containers[name]
	if c == nil {
		return nil, fmt.Errorf("no such container: %s", name)
	}
	if len(states) > 0 && !slices.Contains(states, c.State) {
		return nil, fmt.Errorf("container %s is %s, not %v", name, c.State, states)
	}
	return c, nil
}

func (f *fakeEngine) List(_ context.Context, labels map[string]string) ([]engine.Container, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	var list []engine.Container
	for _, c := range f.containers {
		if matches(c.Labels, labels) {
			list = append(list, c.Container)
		}
	}
	return list, nil
}

func matches(have, want map[string]string) bool {
	for k, v := range want {
		if have[k] != v {
			return false
		}
	}
	return true
}

func (f *fakeEngine) Create(_ context.Context, s engine.Spec) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.call("create"); err != nil {
		return err
	}
	if f.containers[s.Name] != nil {
		return fmt.Errorf("the name %s is taken", s.Name)
	}
	if _, ok := f.disks[s.Volume]; !ok {
		return fmt.Errorf("no volume %s", s.Volume)
	}
	f.containers[s.Name] = &fakeContainer{
		Container: engine.Container{Name: s.Name, Image: s.Image, State: engine.StateCreated, Labels: maps.Clone(s.Labels)},
		address:   s.Address, files: map[string]engine.File{},
	}
	return nil
}

func (f *fakeEngine) CopyIn(_ context.Context, name string, files []engine.File) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	c, err := f.in(name)
	if err := errors.Join(err, f.call("copy")); err != nil {
		return err
	}
	for _, file := range files {
		c.files[file.Path] = file
	}
	return nil
}

func (f *fakeEngine) move(call, name string, to engine.State, from ...engine.State) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	c, err := f.in(name, from...)
	if err := errors.Join(err, f.call(call)); err != nil {
		return err
	}
	if call == "start" {
		c.boots++
		for _, other := range f.containers {
			if other != c && other.State == engine.StateRunning && other.address == c.address {
				return fmt.Errorf("address %s is in use", c.address)
			}
		}
	}
	c.State = to
	return nil
}

func (f *fakeEngine) Start(_ context.Context, name string) error {
	return f.move("start", name, engine.StateRunning, engine.StateCreated, engine.StateExited)
}

func (f *fakeEngine) Kill(_ context.Context, name string) error {
	return f.move("kill", name, engine.StateExited, engine.StateRunning, engine.StatePaused)
}

func (f *fakeEngine) Pause(_ context.Context, name string) error {
	return f.move("pause", name, engine.StatePaused, engine.StateRunning)
}

func (f *fakeEngine) Unpause(_ context.Context, name string) error {
	return f.move("unpause", name, engine.StateRunning, engine.StatePaused)
}

func (f *fakeEngine) Connect(_ context.Context, _, name, address string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	c, err := f.in(name)
	if err != nil {
		return err
	}
	if c.address != "" {
		return errors.New("already plugged in")
	}
	c.address = address
	return nil
}

func (f *fakeEngine) Disconnect(_ context.Context, _, name string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	c, err := f.in(name)
	if err := errors.Join(err, f.call("disconnect")); err != nil {
		return err
	}
	if c.address == "" {
		return errors.New("not plugged in")
	}
	c.address = ""
	return nil
}

func (f *fakeEngine) Exec(_ context.Context, name string, args ...string) (string, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	c, err := f.in(name, engine.StateRunning)
	if err != nil {
		return "", err
	}
	c.full = args[0] != "rm"
	return "", nil
}

func (f *fakeEngine) Remove(_ context.Context, name string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if _, err := f.in(name); err != nil {
		return err
	}
	delete(f.containers, name)
	return nil
}

func (f *fakeEngine) CreateDisk(_ context.Context, d engine.Disk) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.disks[d.Volume] = d
	return nil
}

func (f *fakeEngine) RemoveDisk(_ context.Context, d engine.Disk) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.disks, d.Volume)
	return nil
}

func (f *fakeEngine) AddRoute(_ context.Context, destination, machine string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.routes[destination] = machine
	return nil
}

func (f *fakeEngine) RemoveRoute(_ context.Context, destination string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.routes, destination)
	return nil
}

type fakeBalancer struct{ members map[string]netip.Addr }

func (b *fakeBalancer) Apply(_ context.Context, members map[string]netip.Addr) error {
	b.members = maps.Clone(members)
	return nil
}

// lab is a service on a fake engine, and a client of it.
type lab struct {
	engine   *fakeEngine
	balancer *fakeBalancer
	dir      string
	server   *service.Server
	web      *httptest.Server
}

func newLab(t *testing.T) *lab {
	t.Helper()
	l := &lab{engine: newFakeEngine(), dir: t.TempDir()}
	l.restart(t)
	return l
}

// restart makes a new service over the same engine and folder, as after a crash of the old one.
func (l *lab) restart(t *testing.T) {
	t.Helper()
	if l.web != nil {
		l.web.Close()
	}
	l.balancer = &fakeBalancer{}
	config := service.Config{
		Lab: "lab", Network: "theseus-lab", Image: "theseus-lab/node:1", Disk: 1 << 30,
		Subnet: netip.MustParsePrefix("10.213.0.0/24"), Gateway: netip.MustParseAddr("10.213.0.1"),
		Pods: netip.MustParsePrefix("10.214.0.0/16"), Services: netip.MustParsePrefix("10.230.0.0/16"),
	}
	l.server = service.New(config, l.dir, l.engine, l.balancer, slog.New(slog.DiscardHandler))
	if err := l.server.Resume(t.Context()); err != nil {
		t.Fatal(err)
	}
	l.web = httptest.NewServer(l.server.Handler())
	t.Cleanup(l.web.Close)
}

// do sends a request and checks the status; it returns the answer's text.
func (l *lab) do(t *testing.T, want int, method, path, body string) string {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), method, l.web.URL+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(response.Body)
	if err := errors.Join(err, response.Body.Close()); err != nil {
		t.Fatal(err)
	}
	if response.StatusCode != want {
		t.Fatalf("%s %s: status %d, want %d: %s", method, path, response.StatusCode, want, text)
	}
	return string(text)
}

func (l *lab) machine(t *testing.T, name string) service.Machine {
	t.Helper()
	return decode[service.Machine](t, l.do(t, http.StatusOK, "GET", "/machines/"+name, ""))
}

func decode[T any](t *testing.T, text string) T {
	t.Helper()
	var v T
	if err := json.NewDecoder(bytes.NewReader([]byte(text))).Decode(&v); err != nil {
		t.Fatalf("%v in %s", err, text)
	}
	return v
}
