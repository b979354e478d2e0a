// SPDX-License-Identifier: Apache-2.0

package terraform_test

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/theseus-gitops/theseus/executors/terraform"
)

// Somebody else holds the lock: nothing is changed, the holder is named, and the lock stays. Terraform itself names
// the one who asks, with the http backend.
func TestForeignLock(t *testing.T) {
	withTerraform(t, func(y *yard) {
		t := y.t
		have := y.seed("c-cp-1")
		y.server.set(func(s *stateServer) { s.password = "correct horse" })
		m := y.open(func(o *terraform.Options) {
			o.LockTimeout = time.Second
			o.BackendConfig = map[string]terraform.Secret{"username": "theseus"}
			o.Env = map[string]terraform.Secret{"TF_HTTP_PASSWORD": "correct horse"}
		})
		p := y.plan(m, addStep(have, "c-cp-2"))
		const id = "1f0a77ad-aa64-1e0b-b2f0-3d3a3bbbd4ba"
		y.server.hold(t, id)
		release := "; if that run is gone, release it with `" + filepath.Base(y.binary) + " force-unlock " + id + "` in the module's folder"
		_, planned := m.Plan(t.Context(), addStep(have, "c-cp-2"))
		wantLocked(t, planned, "the Terraform state is locked by anna@laptop since 2026-12-01T08:00:00Z (OperationTypeApply, lock "+id+")"+release)
		y.server.set(func(s *stateServer) { s.silent = true })
		state, applied := m.Apply(t.Context(), p)
		wantLocked(t, applied, "the Terraform state is locked by somebody whom the backend does not name (lock "+id+")"+release)
		if state == nil || len(state.Registry) != 1 {
			t.Errorf("the state is read without a lock: %+v", state)
		}
		if !y.server.locked() {
			t.Error("somebody else's lock was released")
		}
	})
}

func wantLocked(t *testing.T, err error, want string) {
	t.Helper()
	var locked *terraform.LockedError
	if !errors.As(err, &locked) || locked.Error() != want {
		t.Errorf("got %v\nwant %s", err, want)
	}
}

// Without a map of machines in the folder, looking at the lock ends before a plan is made.
func TestUnlockWithoutVariables(t *testing.T) {
	withTerraform(t, func(y *yard) {
		t := y.t
		y.seed("c-cp-1")
		y.write("terraform.tfvars.json", "{}")
		m := y.open()
		if err := m.Unlock(t.Context(), "any"); err != nil {
			t.Error("no lock:", err)
		}
		y.server.hold(t, "1f0a77ad-aa64-1e0b-b2f0-3d3a3bbbd4ba")
		if err := m.Unlock(t.Context(), "1f0a77ad-aa64-1e0b-b2f0-3d3a3bbbd4ba"); err != nil || y.server.locked() {
			t.Error("held:", err)
		}
	})
}

// The lock of a local state ends with its process.
func TestLocalStateLocks(t *testing.T) {
	withTerraform(t, func(y *yard) {
		t := y.t
		y.write("backend.tf", "")
		y.slow()
		have := y.seed("c-cp-1")
		y.holdSlow()
		m, other := y.open(), y.open()
		p := y.plan(m, addStep(have, "c-cp-2"))
		done := make(chan error)
		go func() {
			_, err := m.Apply(t.Context(), p)
			done <- err
		}()
		eventually(t, "the apply is half-way", func() bool { return y.has("begun") })
		var locked *terraform.LockedError
		if _, err := other.Plan(t.Context(), addStep(have, "c-cp-2")); !errors.As(err, &locked) || !strings.Contains(locked.Who, "@") || locked.Operation != "OperationTypeApply" || time.Since(locked.Created) > time.Hour {
			t.Errorf("Plan: %v, %+v", err, locked)
		}
		y.write("go", "")
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}
