// SPDX-License-Identifier: Apache-2.0

package terraform_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
)

// stateServer is Terraform's http backend (https://developer.hashicorp.com/terraform/language/backend/http) in memory.
type stateServer struct {
	*httptest.Server
	mu    sync.Mutex
	state []byte
	lock  []byte
	// silent servers do not tell who holds the lock, but for its ID. password is what a request must carry, if anything.
	silent   bool
	password string
	// refuse is how many writes of the state are answered with an error.
	refuse int
}

func serveState(t *testing.T) *stateServer {
	t.Helper()
	s := &stateServer{}
	s.Server = httptest.NewServer(s)
	t.Cleanup(s.Close)
	return s
}

func (s *stateServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	body, err := io.ReadAll(r.Body)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	if _, password, _ := r.BasicAuth(); password != s.password {
		w.WriteHeader(http.StatusUnauthorized)
		return
	}
	switch r.Method {
	case http.MethodGet:
		if s.state == nil {
			w.WriteHeader(http.StatusNoContent)
		}
		_, _ = w.Write(s.state)
	case http.MethodPost:
		if s.refuse > 0 {
			s.refuse--
			http.Error(w, "full", http.StatusInsufficientStorage)
			return
		}
		s.state = body
	case "LOCK":
		if s.lock != nil {
			w.WriteHeader(http.StatusLocked)
			_, _ = w.Write(s.told())
			return
		}
		s.lock = body
	case "UNLOCK": // force-unlock sends no ID, as in real servers
		s.lock = nil
	}
}

// told is what the server tells of the lock's holder.
func (s *stateServer) told() []byte {
	if !s.silent {
		return s.lock
	}
	var info struct{ ID string }
	_ = json.Unmarshal(s.lock, &info)
	told, _ := json.Marshal(info)
	return told
}

// set changes how the server answers.
func (s *stateServer) set(change func(*stateServer)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change(s)
}

func (s *stateServer) locked() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.lock != nil
}

// hold takes the lock for somebody else.
func (s *stateServer) hold(t *testing.T, id string) {
	t.Helper()
	info, err := json.Marshal(map[string]string{"ID": id, "Operation": "OperationTypeApply", "Who": "anna@laptop", "Version": "1.11.4", "Created": "2026-12-01T08:00:00.5Z"})
	if err != nil {
		t.Fatal(err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lock = info
}

// backend is the module's file that chooses the server.
func (s *stateServer) backend() string {
	return fmt.Sprintf("terraform {\n  backend \"http\" {\n    address        = %[1]q\n    lock_address   = %[1]q\n    unlock_address = %[1]q\n    retry_max      = 0\n  }\n}\n", s.URL)
}
