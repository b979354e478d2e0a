// SPDX-License-Identifier: Apache-2.0

// Package service is the lab's cloud: machines, faults, an endpoint and Terraform state, over HTTP on the lab network.
// It does not set up Kubernetes (user data does) and keeps no list of machines of its own: the engine's labels are the list.
// Start at Server.Handler, which names every request.
package service

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/netip"
	"regexp"
	"sync"

	"github.com/theseus-gitops/theseus/test/lab/service/engine"
)

// Config is one lab. It is written once, when the lab is made, and read by the service when it starts.
type Config struct {
	Lab     string       `json:"lab"`     // name; part of every container's name
	Network string       `json:"network"` // the engine's network
	Bridge  string       `json:"bridge"`  // its interface on the host
	Subnet  netip.Prefix `json:"subnet"`  // of the machines, a /24
	Gateway netip.Addr   `json:"gateway"` // the host's address in Subnet: service, endpoint and name server
	Pods    netip.Prefix `json:"pods"`    // a /16 that the machines' pod ranges come from
	// Services is the cluster's range of Service addresses. The host reaches them through a machine behind the
	// endpoint, so that a test can ask cluster DNS as any pod does.
	Services netip.Prefix `json:"services"`
	Image    string       `json:"image"` // node image of machines that name none
	Disk     int64        `json:"disk"`  // bytes of each machine's /var
}

// Port is where the service listens on the gateway's address.
const Port = 7070

// EndpointPort is where the load balancer listens on the gateway's address.
const EndpointPort = 6443

// Engine is what the service needs of the container engine and the host.
type Engine interface {
	List(ctx context.Context, labels map[string]string) ([]engine.Container, error)
	Create(ctx context.Context, spec engine.Spec) error
	CopyIn(ctx context.Context, container string, files []engine.File) error
	Start(ctx context.Context, container string) error
	Kill(ctx context.Context, container string) error
	Pause(ctx context.Context, container string) error
	Unpause(ctx context.Context, container string) error
	Connect(ctx context.Context, network, container, address string) error
	Disconnect(ctx context.Context, network, container string) error
	Exec(ctx context.Context, container string, args ...string) (string, error)
	Remove(ctx context.Context, container string) error
	CreateDisk(ctx context.Context, disk engine.Disk) error
	RemoveDisk(ctx context.Context, disk engine.Disk) error
	AddRoute(ctx context.Context, destination, machine string) error
	RemoveRoute(ctx context.Context, destination string) error
}

// Balancer spreads connections over the API servers of the machines that it was told of last.
type Balancer interface {
	// Apply sets the members. Those that stay keep their connections.
	Apply(ctx context.Context, members map[string]netip.Addr) error
}

// Server is the service. Handler serves it.
type Server struct {
	config   Config
	dir      string
	engine   Engine
	balancer Balancer
	log      *slog.Logger

	machines sync.Mutex // one change of machines, faults or endpoint at a time
	states   sync.Mutex
}

// New returns the service of one lab. What outlives a restart is in dir.
func New(config Config, dir string, eng Engine, balancer Balancer, log *slog.Logger) *Server {
	return &Server{config: config, dir: dir, engine: eng, balancer: balancer, log: log}
}

// Handler serves the requests that the lab's README lists.
func (s *Server) Handler() http.Handler {
	mux := http.NewServeMux()
	for pattern, handle := range map[string]func(*http.Request) (reply, error){
		"GET /healthz":            s.health,
		"GET /machines":           s.listMachines,
		"GET /machines/{name}":    s.getMachine,
		"PUT /machines/{name}":    s.putMachine,
		"DELETE /machines/{name}": s.deleteMachine,
		"GET /faults":             s.listFaults,
		"PUT /faults/{name}":      s.putFault,
		"DELETE /faults/{name}":   s.deleteFault,
		"GET /endpoint":           s.listEndpoint,
		"PUT /endpoint/{name}":    s.putEndpoint,
		"DELETE /endpoint/{name}": s.deleteEndpoint,
		"GET /state/{name}":       s.getState,
		"POST /state/{name}":      s.postState,
		"DELETE /state/{name}":    s.deleteState,
		"LOCK /state/{name}":      s.lockState,
		"UNLOCK /state/{name}":    s.unlockState,
	} {
		mux.Handle(pattern, s.serve(handle))
	}
	return mux
}

// Resume puts back what a restart of the service lost: the load balancer's members and the routes to pods.
func (s *Server) Resume(ctx context.Context) error {
	s.machines.Lock()
	defer s.machines.Unlock()
	list, err := s.containers(ctx)
	if err != nil {
		return err
	}
	for _, m := range list {
		if m.State == engine.StateRunning {
			if err := s.engine.AddRoute(ctx, m.PodCIDR, m.Address); err != nil {
				return err
			}
		}
	}
	members, err := s.endpoint()
	if err != nil {
		return err
	}
	return s.apply(ctx, members)
}

// reply is what a handler answers: JSON of Body, or Raw as it is, or nothing.
type reply struct {
	Status int
	Body   any
	Raw    []byte
}

// problem is an error that the caller can do something about.
type problem struct {
	Status int
	Text   string
	Body   any // answered instead of Text when set
}

func (p *problem) Error() string { return p.Text }

func problemf(status int, format string, args ...any) error {
	return &problem{Status: status, Text: fmt.Sprintf(format, args...)}
}

var validName = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$`)

// serve checks the name, runs the handler and writes its answer.
func (s *Server) serve(handle func(*http.Request) (reply, error)) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var answer reply
		var err error
		if name := r.PathValue("name"); r.Pattern != "" && name != "" && !validName.MatchString(name) {
			err = problemf(http.StatusBadRequest, "name %q: want 1-63 of a-z, 0-9 and -, not - at either end", name)
		} else {
			answer, err = handle(r)
		}
		var p *problem
		switch {
		case errors.As(err, &p) && p.Body != nil:
			answer = reply{Status: p.Status, Body: p.Body}
		case errors.As(err, &p):
			answer = reply{Status: p.Status, Body: map[string]string{"error": p.Text}}
		case err != nil:
			answer = reply{Status: http.StatusInternalServerError, Body: map[string]string{"error": err.Error()}}
		}
		s.log.InfoContext(r.Context(), "request", "method", r.Method, "path", r.URL.Path, "status", answer.Status, "error", err)
		answer.write(w)
	})
}

func (a reply) write(w http.ResponseWriter) {
	body := a.Raw
	if a.Body != nil {
		data, err := json.MarshalIndent(a.Body, "", "  ")
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		body = append(data, '\n')
	}
	if body != nil {
		w.Header().Set("Content-Type", "application/json")
	}
	w.WriteHeader(a.Status)
	_, _ = w.Write(body) // the caller has gone; nobody is left to tell
}

func (s *Server) health(*http.Request) (reply, error) {
	return reply{Status: http.StatusOK, Body: map[string]string{"lab": s.config.Lab}}, nil
}

// maxBody is far above any state or user data of a lab.
const maxBody = 16 << 20

func readBody(r *http.Request) ([]byte, error) {
	body, err := io.ReadAll(io.LimitReader(r.Body, maxBody+1))
	if err != nil {
		return nil, problemf(http.StatusBadRequest, "reading the request: %v", err)
	}
	if len(body) > maxBody {
		return nil, problemf(http.StatusRequestEntityTooLarge, "the request is larger than %d bytes", maxBody)
	}
	return body, nil
}
