// SPDX-License-Identifier: Apache-2.0

package parts

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func TestProgressTellsStartBeatsAndEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		p := newProgress(&out, 30*time.Second)
		done := p.start("etcd v3", "1 min")
		time.Sleep(70 * time.Second)
		if took := done(nil); took != 70*time.Second {
			t.Errorf("took %s", took)
		}
		done = p.start("cni", "")
		time.Sleep(400 * time.Millisecond)
		done(errors.New("no"))
		want := strings.Join([]string{
			"parts: etcd v3: building (a first build takes 1 min)",
			"parts: etcd v3: still building, 30s so far",
			"parts: etcd v3: still building, 1m0s so far",
			"parts: etcd v3: built in 1m10s",
			"parts: cni: building",
			"parts: cni: failed after 400ms",
			"",
		}, "\n")
		if out.String() != want {
			t.Errorf("said\n%s\nwant\n%s", out.String(), want)
		}
	})
}

func TestShellLineCanBePasted(t *testing.T) {
	got := shellLine("go", []string{"build", "-ldflags=-s -w", "it's", ""})
	if want := `go build '-ldflags=-s -w' 'it'\''s' ''`; got != want {
		t.Errorf("got %s\nwant %s", got, want)
	}
}

func TestCommandErrorHoldsWhatTheToolSaid(t *testing.T) {
	_, err := command{}.run(t.Context(), "sh", "-c", "echo half; echo broken >&2; exit 3")
	if err == nil {
		t.Fatal("no error")
	}
	for _, want := range []string{"half\n", "broken\n", "exit status 3", "sh -c"} {
		if !strings.Contains(err.Error()+"\n", want) {
			t.Errorf("error %v has no %q", err, want)
		}
	}
}
