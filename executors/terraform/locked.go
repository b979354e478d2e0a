// SPDX-License-Identifier: Apache-2.0

package terraform

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
)

// LockedError says that somebody holds the state's lock, longer than LockTimeout.
type LockedError struct {
	// ID, Who (user@host), Operation and Created are what the holder said of itself. All but ID are empty when the
	// backend does not tell: then nobody can prove whose lock it is.
	ID, Who, Operation string
	Created            time.Time
	program            string
}

// Error implements error.
func (e *LockedError) Error() string {
	holder := "by somebody whom the backend does not name (lock " + e.ID + ")"
	if e.Who != "" {
		holder = fmt.Sprintf("by %s since %s (%s, lock %s)", e.Who, e.Created.UTC().Format(time.RFC3339), e.Operation, e.ID)
	}
	return fmt.Sprintf("the Terraform state is locked %s; if that run is gone, release it with `%s force-unlock %s` in the module's folder", holder, e.program, e.ID)
}

// asLocked makes a failed command a *LockedError when a held lock was the reason.
func (m *Module) asLocked(ctx context.Context, err error) error {
	p, ok := said(err, "Error acquiring the state lock")
	if !ok {
		return err
	}
	held, ok := parseLock(p.Detail)
	if !ok {
		return err
	}
	if held.Who == "" {
		m.askHolder(ctx, held)
	}
	held.program = m.name()
	return held
}

// httpHeld is how the http backend names the holder's lock. The Lock Info that it gives with it is, by mistake, that
// of the one who asks. askHolder finds out more.
const httpHeld = "HTTP remote state already locked: ID="

// parseLock reads the holder out of a diagnostic's detail, the only place where Terraform names it:
//
//	Error message: …
//	Lock Info:
//	  ID:        c5c4a42f-…
//	  Operation: OperationTypeApply
//	  Who:       root@theseus-29380
//	  Created:   2026-12-01 03:24:14.1 +0000 UTC
//
// Without an ID the lock could not be asked for at all, which is another failure.
func parseLock(detail string) (*LockedError, bool) {
	message, info, ok := strings.Cut(detail, "Lock Info:")
	if !ok {
		return nil, false
	}
	if _, id, ok := strings.Cut(message, httpHeld); ok {
		id, _, _ = strings.Cut(id, "\n")
		return &LockedError{ID: strings.TrimSpace(id)}, true
	}
	var held LockedError
	for line := range strings.Lines(info) {
		key, value, ok := strings.Cut(strings.TrimSpace(line), ":")
		if value = strings.TrimSpace(value); !ok || value == "" {
			continue
		}
		switch key {
		case "ID":
			held.ID = value
		case "Who":
			held.Who = value
		case "Operation":
			held.Operation = value
		case "Created":
			if t, err := time.Parse("2006-01-02 15:04:05.999999999 -0700 MST", value); err == nil {
				held.Created = t
			}
		}
	}
	return &held, held.ID != ""
}

// Locked gives the state's lock, nil when nobody holds it. It waits for nothing.
func (m *Module) Locked(ctx context.Context) (*LockedError, error) {
	// A plan asks for the lock before it asks for variables, and it gets none: it can't do more than look.
	_, err := m.run(ctx, "plan", "-json", "-input=false", "-refresh=false", "-lock-timeout=0s")
	if _, ok := said(err, "No value for required variable"); ok || err == nil {
		return nil, nil //nolint:nilnil // no lock and no error
	}
	var held *LockedError
	if err = m.asLocked(ctx, err); errors.As(err, &held) {
		return held, nil
	}
	return nil, err
}

// Unlock breaks the state's lock if it is still the one of that ID. The caller must have proved that the lock is its
// own and its holder is gone. The lock is looked at again first, because not every backend compares the ID (the http
// backend is not even told it); another holder's lock is a *LockedError, no lock at all is fine.
func (m *Module) Unlock(ctx context.Context, id string) error {
	held, err := m.Locked(ctx)
	if err != nil || held == nil {
		return err
	}
	if held.ID != id {
		return held
	}
	if _, err := m.run(ctx, "force-unlock", "-force", id); err != nil {
		return fmt.Errorf("releasing lock %s: %w", id, err)
	}
	return nil
}
