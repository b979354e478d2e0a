// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"

	"github.com/theseus-gitops/theseus/reconcile"
	"github.com/theseus-gitops/theseus/reconcile/status"
)

// Exit codes. Their meaning is a promise to CronJobs (podFailurePolicy) and to CI.
const (
	exitOK          = 0
	exitFailed      = 1
	exitUsage       = 2
	exitChanges     = 10
	exitWaiting     = 11
	exitInvalid     = 20
	exitPushRefused = 21
	exitStalled     = 22
	exitTransient   = 30
	exitLocked      = 40
	exitPanic       = 70
	exitInterrupted = 130
	exitTerminated  = 143
)

// exitError carries an exit code; a nil err prints nothing, because everything was said already.
type exitError struct {
	code int
	err  error
}

func (e *exitError) Error() string {
	if e.err == nil {
		return ""
	}
	return e.err.Error()
}

func (e *exitError) Unwrap() error { return e.err }

// exitWith is nil for 0.
func exitWith(code int) error {
	if code == exitOK {
		return nil
	}
	return &exitError{code: code}
}

// detailedCode is the first that applies, the one a person should hear of first.
func detailedCode(r reconcile.Result) int {
	codes := map[int]bool{}
	for _, c := range r.Clusters {
		codes[codeOf(c.Report.Outcome)] = true
	}
	if r.Problems.HasErrors() {
		codes[exitInvalid] = true
	}
	if r.PublishError != nil {
		if errors.Is(r.PublishError, reconcile.ErrPushRefused) {
			codes[exitPushRefused] = true
		} else {
			codes[exitTransient] = true
		}
	}
	for _, code := range []int{exitStalled, exitInvalid, exitPushRefused, exitTransient, exitLocked, exitWaiting, exitChanges} {
		if codes[code] {
			return code
		}
	}
	return exitOK
}

func codeOf(o status.Outcome) int {
	switch o {
	case status.Converged:
		return exitOK
	case status.Changes:
		return exitChanges
	case status.Waiting:
		return exitWaiting
	case status.Stalled:
		return exitStalled
	case status.Invalid:
		return exitInvalid
	case status.Locked:
		return exitLocked
	case status.Unreachable, status.Transient, status.Unknown:
		return exitTransient
	}
	return exitTransient
}

// plainCode is 0 when the pass worked, 1 when something needs attention.
func plainCode(r reconcile.Result) int {
	switch detailedCode(r) {
	case exitOK, exitChanges, exitWaiting, exitLocked:
		return exitOK
	default:
		return exitFailed
	}
}
