// SPDX-License-Identifier: Apache-2.0

package parts

import (
	"fmt"
	"io"
	"sync"
	"time"
)

// progress writes whole lines, so that it reads as well in a log as on a screen.
// A line that can't be written stops no build.
type progress struct {
	beat time.Duration

	mu  sync.Mutex
	out io.Writer
}

func newProgress(out io.Writer, beat time.Duration) *progress {
	return &progress{out: out, beat: beat}
}

func (p *progress) line(format string, args ...any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	_, _ = fmt.Fprintf(p.out, "parts: "+format+"\n", args...)
}

// start tells that a build begins, then every beat that it goes on. The function
// returned tells how it ended, and returns the time it took.
func (p *progress) start(what, expect string) func(error) time.Duration {
	begin := time.Now()
	if expect != "" {
		expect = " (a first build takes " + expect + ")"
	}
	p.line("%s: building%s", what, expect)
	stop := make(chan struct{})
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		ticker := time.NewTicker(p.beat)
		defer ticker.Stop()
		for {
			select {
			case <-stop:
				return
			case <-ticker.C:
				p.line("%s: still building, %s so far", what, rounded(time.Since(begin)))
			}
		}
	}()
	return func(err error) time.Duration {
		close(stop)
		<-stopped
		took := time.Since(begin)
		if err != nil {
			p.line("%s: failed after %s", what, rounded(took))
		} else {
			p.line("%s: built in %s", what, rounded(took))
		}
		return took
	}
}

func rounded(d time.Duration) time.Duration {
	if d < time.Second {
		return d.Round(time.Millisecond)
	}
	return d.Round(time.Second)
}
