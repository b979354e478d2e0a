// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/fluxcd/pkg/runtime/logger"
	"github.com/go-logr/logr"
	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/theseus-gitops/theseus/reconcile"
)

// logFlags are Flux's own, so that log pipelines made for Flux read ours.
type logFlags struct{ logger.Options }

func (l *logFlags) bind(c *cobra.Command) {
	l.BindFlags(c.Flags())
	// Lines for people unless asked otherwise: json is for the job in a cluster.
	encoding := c.Flags().Lookup("log-encoding")
	encoding.DefValue, l.LogEncoding = "console", "console"
}

// progress tells what happens while it happens: live in a terminal, as structured log lines everywhere else.
type progress struct {
	mu       sync.Mutex
	terminal *os.File // nil outside a terminal
	log      logr.Logger
	line     string
	begun    time.Time
	ticker   chan struct{}
	once     sync.Once
}

func (a *app) progress(l logFlags) *progress {
	p := &progress{ticker: make(chan struct{})}
	if f, ok := a.std.err.(*os.File); ok && term.IsTerminal(int(f.Fd())) { //nolint:gosec // a file descriptor is small
		p.terminal = f
		go p.tick()
		return p
	}
	p.log = logger.NewLogger(l.Options)
	return p
}

// Event implements reconcile.Progress.
func (p *progress) Event(e reconcile.Event) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.terminal == nil {
		p.logEvent(e)
		return
	}
	switch e.Kind {
	case reconcile.StepStarted:
		p.live(fmt.Sprintf("%s: %s %s", e.Cluster, e.Step.Name(), e.Step.Subject))
	case reconcile.StepDone:
		p.settle("✓", fmt.Sprintf("%s: %-22s %s (%s)", e.Cluster, e.Step.Name(), e.Step.Why, took(e.Took)))
	case reconcile.StepFailed:
		p.settle("✗", fmt.Sprintf("%s: %-22s %s", e.Cluster, e.Step.Name(), e.Text))
	case reconcile.WaitBegun:
		p.live(e.Cluster + ": " + e.Text)
	}
}

// took shows a duration as exactly as a person wants it: 40ms, 1.2s, 3m0s.
func took(d time.Duration) string {
	if d < time.Second {
		return d.Round(time.Millisecond).String()
	}
	return d.Round(100 * time.Millisecond).String()
}

// say tells what is about the run as a whole.
func (p *progress) say(text string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.terminal == nil {
		p.log.Info(text)
		return
	}
	_, _ = fmt.Fprintf(p.terminal, "\r\x1b[K%s\n", text)
	p.draw()
}

func (p *progress) logEvent(e reconcile.Event) {
	log := p.log.WithValues("cluster", e.Cluster)
	if e.Kind != reconcile.WaitBegun {
		log = log.WithValues("step", e.Step.Name(), "subject", e.Step.Subject)
	}
	switch e.Kind {
	case reconcile.StepStarted:
		log.Info("step started", "why", e.Step.Why)
	case reconcile.StepDone:
		log.Info("step done", "took", took(e.Took))
	case reconcile.StepFailed:
		log.Info("step failed", "took", took(e.Took), "reason", e.Text)
	case reconcile.WaitBegun:
		log.Info("waiting", "why", e.Text)
	}
}

// live shows a line that is rewritten until something is settled.
func (p *progress) live(line string) {
	p.line, p.begun = line, time.Now()
	p.draw()
}

func (p *progress) draw() {
	if p.line == "" {
		return
	}
	text := fmt.Sprintf("… %s (%ds)", p.line, int(time.Since(p.begun).Seconds()))
	if width, _, err := term.GetSize(int(p.terminal.Fd())); err == nil && width > 0 { //nolint:gosec // a file descriptor is small
		if r := []rune(text); len(r) >= width {
			text = string(r[:width-1])
		}
	}
	_, _ = fmt.Fprintf(p.terminal, "\r\x1b[K%s", text)
}

// settle replaces the live line by one that stays.
func (p *progress) settle(mark, line string) {
	p.line = ""
	_, _ = fmt.Fprintf(p.terminal, "\r\x1b[K%s %s\n", mark, strings.ReplaceAll(line, "\n", " "))
}

func (p *progress) tick() {
	every := time.NewTicker(time.Second)
	defer every.Stop()
	for {
		select {
		case <-every.C:
			p.mu.Lock()
			p.draw()
			p.mu.Unlock()
		case <-p.ticker:
			return
		}
	}
}

// end removes the live line. It may be called more than once.
func (p *progress) end() {
	p.once.Do(func() {
		close(p.ticker)
		p.mu.Lock()
		defer p.mu.Unlock()
		if p.terminal != nil && p.line != "" {
			p.line = ""
			_, _ = fmt.Fprint(p.terminal, "\r\x1b[K")
		}
	})
}
