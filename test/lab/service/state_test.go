// SPDX-License-Identifier: Apache-2.0

package service_test

import (
	"net/http"
	"strings"
	"sync"
	"testing"
)

const (
	lockA = `{"ID":"a","Operation":"OperationTypeApply","Who":"me@here"}`
	lockB = `{"ID":"b","Operation":"OperationTypePlan","Who":"you@there"}`
)

func TestStateIsKept(t *testing.T) {
	l := newLab(t)
	if got := l.do(t, http.StatusNoContent, "GET", "/state/x", ""); got != "" {
		t.Errorf("a state that is not there: %q", got)
	}
	l.do(t, http.StatusOK, "POST", "/state/x", `{"serial": 1}`)
	l.restart(t)
	if got := l.do(t, http.StatusOK, "GET", "/state/x", ""); got != `{"serial": 1}` {
		t.Errorf("state %q", got)
	}
	l.do(t, http.StatusNoContent, "GET", "/state/y", "")
	l.do(t, http.StatusOK, "DELETE", "/state/x", "")
	l.do(t, http.StatusNoContent, "GET", "/state/x", "")
}

func TestLockHolderAloneWrites(t *testing.T) {
	l := newLab(t)
	l.do(t, http.StatusOK, "LOCK", "/state/x", lockA)
	l.do(t, http.StatusOK, "LOCK", "/state/x", lockA) // the same again: its answer was lost
	l.restart(t)
	for _, c := range []struct{ method, path, body string }{
		{"LOCK", "/state/x", lockB},
		{"POST", "/state/x?ID=b", `{}`},
		{"POST", "/state/x", `{}`},
		{"DELETE", "/state/x", ""},
		{"UNLOCK", "/state/x", lockB},
	} {
		if got := l.do(t, http.StatusLocked, c.method, c.path, c.body); !strings.Contains(got, "me@here") {
			t.Errorf("%s %s: the holder is not told: %s", c.method, c.path, got)
		}
	}
	l.do(t, http.StatusOK, "LOCK", "/state/other", lockB)
	l.do(t, http.StatusOK, "POST", "/state/x?ID=a", `{"serial": 2}`)
	l.do(t, http.StatusOK, "UNLOCK", "/state/x", lockA)
	l.do(t, http.StatusOK, "UNLOCK", "/state/x", lockA)
	l.do(t, http.StatusOK, "LOCK", "/state/x", lockB)
}

func TestBrokenLockStopsItsHolder(t *testing.T) {
	l := newLab(t)
	l.do(t, http.StatusOK, "LOCK", "/state/x", lockA)
	l.do(t, http.StatusOK, "UNLOCK", "/state/x", "") // terraform force-unlock
	if got := l.do(t, http.StatusConflict, "POST", "/state/x?ID=a", `{}`); !strings.Contains(got, "not held any more") {
		t.Errorf("answer %s", got)
	}
}

func TestOneOfManyGetsTheLock(t *testing.T) {
	l := newLab(t)
	var won sync.Map
	var wg sync.WaitGroup
	for _, id := range []string{"1", "2", "3", "4", "5", "6", "7", "8"} {
		wg.Go(func() {
			r, err := http.NewRequestWithContext(t.Context(), "LOCK", l.web.URL+"/state/x", strings.NewReader(`{"ID":"`+id+`"}`))
			if err != nil {
				t.Error(err)
				return
			}
			answer, err := http.DefaultClient.Do(r)
			if err != nil {
				t.Error(err)
				return
			}
			defer func() { _ = answer.Body.Close() }()
			if answer.StatusCode == http.StatusOK {
				won.Store(id, true)
			}
		})
	}
	wg.Wait()
	count := 0
	won.Range(func(any, any) bool { count++; return true })
	if count != 1 {
		t.Errorf("%d hold the lock", count)
	}
}

func TestBadStates(t *testing.T) {
	l := newLab(t)
	l.do(t, http.StatusBadRequest, "POST", "/state/x", "not JSON")
	l.do(t, http.StatusBadRequest, "LOCK", "/state/x", "")
	l.do(t, http.StatusBadRequest, "LOCK", "/state/x", `{"Who": "nobody"}`)
	l.do(t, http.StatusBadRequest, "GET", "/state/..%2Fsecret", "")
	l.do(t, http.StatusRequestEntityTooLarge, "POST", "/state/x", `"`+strings.Repeat("x", 17<<20)+`"`)
	l.do(t, http.StatusMethodNotAllowed, "PATCH", "/state/x", "")
}
