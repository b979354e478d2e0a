// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"os"
	"sync"
	"syscall"
	"time"
)

// ending is how a signal ends the program. Most commands end at once, because they have nothing to save. One that works
// on clusters finishes the step under way first, and ends at once at the second signal.
type ending struct {
	mu sync.Mutex
	// code is the exit code of the first signal, 0 before it.
	code int
	// stop is closed by the first signal, when a command has asked to finish.
	stop chan struct{}
	// say tells the user what a signal does, when a command has asked to finish.
	say func(text string)
}

const (
	stopping = "stopping after the step under way; press Ctrl-C again to stop at once"
	stopped  = "stopped at once; the step under way may be done or not, and status is not committed. A cluster that was worked on " +
		"stays locked until its Lease frees itself, 5 minutes after its last renewal; then the next run looks again and goes on from here"
	// tidyTime is what a command that is ended at once gets to remove a live line or end a program it started.
	tidyTime = 300 * time.Millisecond
)

// finishFirst makes the first signal a wish: the channel is closed then, and the command ends when it is done.
func (e *ending) finishFirst(say func(text string)) <-chan struct{} {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.stop, e.say = make(chan struct{}), say
	if e.code != 0 {
		close(e.stop)
	}
	return e.stop
}

// signalled is the exit code of the first signal, 0 when there was none.
func (e *ending) signalled() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.code
}

// begin takes the first signal. It reports whether the command finishes first.
func (e *ending) begin(s os.Signal) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.code = signalCode(s)
	if e.stop == nil {
		return false
	}
	e.say(stopping)
	close(e.stop)
	return true
}

// await waits for the command's own exit code, or for a signal that ends it.
func (e *ending) await(done <-chan int, signals <-chan os.Signal, cancel context.CancelFunc) int {
	select {
	case code := <-done:
		return code
	case s := <-signals:
		if !e.begin(s) {
			cancel()
			select {
			case <-done:
			case <-time.After(tidyTime):
			}
			return e.signalled()
		}
	}
	select {
	case code := <-done:
		return code
	case s := <-signals:
		e.say(stopped)
		return signalCode(s)
	}
}

// signalCode is what a shell reports of a program that a signal has ended.
func signalCode(s os.Signal) int {
	if s == syscall.SIGTERM {
		return exitTerminated
	}
	return exitInterrupted
}

// until is ctx, ended as well when stop is closed.
func until(ctx context.Context, stop <-chan struct{}) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	go func() {
		select {
		case <-stop:
			cancel()
		case <-ctx.Done():
		}
	}()
	return ctx, cancel
}
