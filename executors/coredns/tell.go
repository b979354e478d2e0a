// SPDX-License-Identifier: Apache-2.0

package coredns

import "sync"

// onChange hands on a text unless it is the one before it, so that a wait of minutes is told in a few lines.
func onChange(tell func(string)) func(string) {
	var mu sync.Mutex
	last := ""
	return func(text string) {
		mu.Lock()
		defer mu.Unlock()
		if tell != nil && text != last {
			last = text
			tell(text)
		}
	}
}

// tellWait tells what the canary waits for; err is why it could not be looked at.
func (e *Executor) tellWait(v verdict, err error) {
	switch {
	case err != nil:
		e.Tell("canary: it can't be looked at: " + brief(err.Error(), 200))
	case v.why != "":
		e.Tell("canary: " + brief(v.why, 200))
	}
}
