// SPDX-License-Identifier: Apache-2.0

package module_test

import (
	"bytes"
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
)

// labService behaves as the lab's service does towards Terraform: machines, places behind the endpoint, a state with a lock.
type labService struct {
	*httptest.Server
	mu       sync.Mutex
	machines map[string]string // name to what it was made with
	endpoint map[string]bool
	state    []byte
	lock     []byte
	locked   int // how often
}

func startLabService(t *testing.T) *labService {
	t.Helper()
	s := &labService{machines: map[string]string{}, endpoint: map[string]bool{}}
	mux := http.NewServeMux()
	mux.HandleFunc("/machines/{name}", s.serveMachine)
	mux.HandleFunc("/endpoint/{name}", s.serveEndpoint)
	mux.HandleFunc("/state/{name}", s.serveState)
	s.Server = httptest.NewServer(mux)
	t.Cleanup(s.Close)
	return s
}

func (s *labService) serveMachine(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	name, body := r.PathValue("name"), read(r)
	switch {
	case r.Method == http.MethodDelete:
		delete(s.machines, name)
		delete(s.endpoint, name)
		w.WriteHeader(http.StatusNoContent)
	case s.machines[name] != "" && s.machines[name] != string(body):
		http.Error(w, "made by another request", http.StatusConflict)
	case !json.Valid(body):
		http.Error(w, "not JSON", http.StatusBadRequest)
	default:
		s.machines[name] = string(body)
		w.WriteHeader(http.StatusCreated)
	}
}

func (s *labService) serveEndpoint(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	name := r.PathValue("name")
	switch {
	case r.Method == http.MethodDelete:
		delete(s.endpoint, name)
	case s.machines[name] == "":
		http.Error(w, "no such machine", http.StatusNotFound)
	default:
		s.endpoint[name] = true
	}
}

func (s *labService) serveState(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	body := read(r)
	switch r.Method {
	case http.MethodGet:
		if s.state == nil {
			w.WriteHeader(http.StatusNoContent)
		}
		_, _ = w.Write(s.state)
	case "LOCK":
		if s.lock != nil {
			w.WriteHeader(http.StatusLocked)
			_, _ = w.Write(s.lock)
			return
		}
		s.lock = body
		s.locked++
	case "UNLOCK":
		s.lock = nil
	case http.MethodPost:
		if !bytes.Contains(s.lock, []byte(r.URL.Query().Get("ID"))) {
			w.WriteHeader(http.StatusConflict)
			return
		}
		s.state = body
	}
}

func read(r *http.Request) []byte {
	data, _ := io.ReadAll(r.Body) // a short body fails what is done with it
	return data
}

// world is what there is, on one line: machines, and those behind the endpoint.
func (s *labService) world() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return strings.Join(slices.Sorted(maps.Keys(s.machines)), " ") + " | " + strings.Join(slices.Sorted(maps.Keys(s.endpoint)), " ")
}

func (s *labService) madeWith(name string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.machines[name]
}
