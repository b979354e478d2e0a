// SPDX-License-Identifier: Apache-2.0

package service

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// load reads a JSON file of the service's folder; a missing file leaves v as it is.
func (s *Server) load(name string, v any) error {
	data, err := os.ReadFile(filepath.Join(s.dir, name))
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("reading what the service remembers: %w", err)
	}
	if err := json.Unmarshal(data, v); err != nil {
		return fmt.Errorf("reading %s: %w", name, err)
	}
	return nil
}

// save writes a JSON file of the service's folder, whole or not at all.
func (s *Server) save(name string, v any) error {
	data, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return fmt.Errorf("packing %s: %w", name, err)
	}
	return s.saveRaw(name, data)
}

func (s *Server) saveRaw(name string, data []byte) error {
	path := filepath.Join(s.dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return fmt.Errorf("writing %s: %w", name, err)
	}
	if err := os.WriteFile(path+".new", data, 0o600); err != nil {
		return fmt.Errorf("writing %s: %w", name, err)
	}
	if err := os.Rename(path+".new", path); err != nil {
		return fmt.Errorf("writing %s: %w", name, err)
	}
	return nil
}
