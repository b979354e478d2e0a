// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/theseus-gitops/theseus/internal/apiserver"
)

func TestMain(m *testing.M) {
	testscript.Main(served{m}, map[string]func(){"theseus": func() {
		stop := make(chan os.Signal, 2)
		signal.Notify(stop, os.Interrupt, syscall.SIGTERM)
		os.Exit(run(context.Background(), os.Args[1:], stream{os.Stdin, os.Stdout, os.Stderr}, stop))
	}})
}

// server is for tests that need an API server; others don't start it.
var server apiserver.Server

// served are the tests, with the end of that server after them.
type served struct{ m *testing.M }

func (s served) Run() int { return server.Run(s.m) }

// Each script tells one thing that a user does: commands, what they print, how they exit.
func TestScripts(t *testing.T) {
	t.Parallel()
	testscript.Run(t, testscript.Params{
		Dir: "testdata/script",
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			// exits CODE COMMAND…: the command's exit code is exactly that.
			"exits": exits,
		},
		Setup: func(e *testscript.Env) error {
			e.Setenv("GIT_CONFIG_GLOBAL", "/dev/null")
			e.Setenv("GIT_AUTHOR_NAME", "Test")
			e.Setenv("GIT_AUTHOR_EMAIL", "test@example.com")
			e.Setenv("GIT_COMMITTER_NAME", "Test")
			e.Setenv("GIT_COMMITTER_EMAIL", "test@example.com")
			return nil
		},
	})
}

func exits(ts *testscript.TestScript, _ bool, args []string) {
	if len(args) < 2 {
		ts.Fatalf("usage: exits CODE COMMAND [ARG…]")
	}
	err := ts.Exec(args[1], args[2:]...)
	code := "0"
	if err != nil {
		code = err.Error()
	}
	if want := args[0]; code != want && code != "exit status "+want {
		ts.Fatalf("%v: %s, want exit status %s", args[1:], code, want)
	}
}
