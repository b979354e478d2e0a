// SPDX-License-Identifier: Apache-2.0

package service

import (
	"bytes"
	"crypto/md5" //nolint:gosec // the header that Terraform's http backend sends is MD5
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
)

// This file is Terraform's "http" backend (https://developer.hashicorp.com/terraform/language/backend/http), set up with
//
//	address = lock_address = unlock_address = "http://GATEWAY:7070/state/NAME"
//
// and the default methods. A state that is locked takes writes of the lock's holder only.

func statePath(name string) string { return filepath.Join("state", name+".tfstate") }
func lockPath(name string) string  { return filepath.Join("state", name+".lock") }

// lock returns the info that the holder of a state's lock gave; nil when nobody holds it.
func (s *Server) lock(name string) (json.RawMessage, error) {
	var info json.RawMessage
	err := s.load(lockPath(name), &info)
	return info, err
}

// lockID is the ID field of a lock's info.
func lockID(info json.RawMessage) (string, error) {
	var lock struct{ ID string }
	if err := json.Unmarshal(info, &lock); err != nil {
		return "", problemf(http.StatusBadRequest, "reading the lock's info: %v", err)
	}
	if lock.ID == "" {
		return "", problemf(http.StatusBadRequest, "the lock's info has no ID")
	}
	return lock.ID, nil
}

// held is the answer to those who do not hold the lock: 423 with the holder's info, which Terraform shows.
func held(info json.RawMessage) error {
	return &problem{Status: http.StatusLocked, Text: "the state is locked", Body: info}
}

func (s *Server) getState(r *http.Request) (reply, error) {
	s.states.Lock()
	defer s.states.Unlock()
	data, err := os.ReadFile(filepath.Join(s.dir, statePath(r.PathValue("name"))))
	if errors.Is(err, fs.ErrNotExist) {
		return reply{Status: http.StatusNoContent}, nil
	}
	if err != nil {
		return reply{}, fmt.Errorf("reading a state: %w", err)
	}
	return reply{Status: http.StatusOK, Raw: data}, nil
}

// mayWrite tells whether a request may change the state: the holder may, and anybody when there is no lock and the
// request does not claim one (terraform -lock=false). Claiming a lock that is gone means it was broken meanwhile.
func (s *Server) mayWrite(r *http.Request) error {
	info, err := s.lock(r.PathValue("name"))
	if err != nil {
		return err
	}
	claimed := r.URL.Query().Get("ID")
	if info == nil {
		if claimed != "" {
			return problemf(http.StatusConflict, "lock %q is not held any more", claimed)
		}
		return nil
	}
	id, err := lockID(info)
	if err != nil {
		return err
	}
	if id != claimed {
		return held(info)
	}
	return nil
}

func (s *Server) postState(r *http.Request) (reply, error) {
	body, err := readBody(r)
	if err != nil {
		return reply{}, err
	}
	sum := md5.Sum(body) //nolint:gosec // see the import
	if want := r.Header.Get("Content-MD5"); want != "" && want != base64.StdEncoding.EncodeToString(sum[:]) {
		return reply{}, problemf(http.StatusBadRequest, "the state does not match its Content-MD5")
	}
	if !json.Valid(body) {
		return reply{}, problemf(http.StatusBadRequest, "the state is not JSON")
	}
	s.states.Lock()
	defer s.states.Unlock()
	if err := s.mayWrite(r); err != nil {
		return reply{}, err
	}
	return reply{Status: http.StatusOK}, s.saveRaw(statePath(r.PathValue("name")), body)
}

func (s *Server) deleteState(r *http.Request) (reply, error) {
	s.states.Lock()
	defer s.states.Unlock()
	if err := s.mayWrite(r); err != nil {
		return reply{}, err
	}
	return reply{Status: http.StatusOK}, s.remove(statePath(r.PathValue("name")))
}

func (s *Server) lockState(r *http.Request) (reply, error) {
	body, err := readBody(r)
	if err != nil {
		return reply{}, err
	}
	id, err := lockID(body)
	if err != nil {
		return reply{}, err
	}
	s.states.Lock()
	defer s.states.Unlock()
	info, err := s.lock(r.PathValue("name"))
	if err != nil {
		return reply{}, err
	}
	if info != nil {
		holder, err := lockID(info)
		if err != nil {
			return reply{}, err
		}
		if holder != id { // the same lock again: its first answer was lost
			return reply{}, held(info)
		}
	}
	return reply{Status: http.StatusOK}, s.saveRaw(lockPath(r.PathValue("name")), body)
}

// unlockState ends a lock. An empty body is terraform force-unlock, which sends none.
func (s *Server) unlockState(r *http.Request) (reply, error) {
	body, err := readBody(r)
	if err != nil {
		return reply{}, err
	}
	s.states.Lock()
	defer s.states.Unlock()
	info, err := s.lock(r.PathValue("name"))
	if err != nil {
		return reply{}, err
	}
	if info != nil && len(bytes.TrimSpace(body)) > 0 {
		if err := sameLock(info, body); err != nil {
			return reply{}, err
		}
	}
	return reply{Status: http.StatusOK}, s.remove(lockPath(r.PathValue("name")))
}

func sameLock(info, claimed json.RawMessage) error {
	id, err := lockID(claimed)
	if err != nil {
		return err
	}
	holder, err := lockID(info)
	if err != nil {
		return err
	}
	if holder != id {
		return held(info)
	}
	return nil
}

func (s *Server) remove(name string) error {
	err := os.Remove(filepath.Join(s.dir, name))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("removing %s: %w", name, err)
	}
	return nil
}
