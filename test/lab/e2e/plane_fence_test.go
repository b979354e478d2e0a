// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/theseus-gitops/theseus/test/lab/cluster"
)

// A plane of one machine, to which a second is being added that freezes while its member of etcd is a learner: it is taken
// back. In the second case it thaws, and is promoted, between the decision to remove its member and the removal.
func TestOneMachineFence(t *testing.T) {
	full(t)
	for name, promoted := range map[string]bool{"never promoted": false, "promoted after the check": true} {
		t.Run(name, func(t *testing.T) {
			p := newPlane(t, cluster.Options{Name: "e2e-fence"})
			w := wanted{kubernetes: oldVersion, image: p.image("debian-12", oldVersion), etcd: oldEtcd, coreDNS: oldTag, replicas: 1}
			p.asks(w, "as it is")
			p.run(0, "reconcile")
			first := p.machines()[0]

			w.more = "    values: {roll: again}\n    attempts: 1\n    timeouts: {join: 40s}\n"
			p.asks(w, "other values")
			second := p.nextName(first)
			frozen := p.freezesAsLearner(first, second)
			if promoted {
				p.thawsBeforeRemoval(first, second)
			}
			r := p.theseus("reconcile")
			if err := <-frozen; err != nil {
				t.Fatalf("%v\n%s", err, r.err)
			}
			noSecret(t, "output", r.out+r.err)
			if promoted {
				mustContain(t, "output", r.out+r.err, "voter")
			}
			w.more = ""
			if p.machines()[0] != first {
				w.more = "    values: {roll: again}\n"
			}
			p.asks(w, "as it is now")
			p.converges()
			p.is(w, "Linux 12")
		})
	}
}

// The spec is put back while a machine is being added to a plane of one: at different moments, the same end.
func TestRevertedWhileRolling(t *testing.T) {
	full(t)
	p := newPlane(t, cluster.Options{Name: "e2e-revert"})
	w := wanted{kubernetes: oldVersion, image: p.image("debian-12", oldVersion), etcd: oldEtcd, coreDNS: oldTag, replicas: 1}
	p.asks(w, "as it is")
	p.run(0, "reconcile")
	for _, after := range []time.Duration{time.Second, 10 * time.Second, time.Minute} {
		t.Run(after.String(), func(t *testing.T) {
			old := w
			w.more = "    values: {roll: " + strings.ReplaceAll(after.String(), "1m0s", "60s") + "}\n"
			p.asks(w, "other values")
			load := write(t, p.Kubeconfig)
			ended := make(chan error, 1)
			cmd := p.command("reconcile")
			var out bytes.Buffer
			cmd.Stdout, cmd.Stderr = &out, &out
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			go func() { ended <- cmd.Wait() }()
			time.Sleep(after)
			p.asks(old, "as before")
			w = old
			var exit *exec.ExitError
			if err := <-ended; err != nil && !errors.As(err, &exit) {
				t.Fatal(err)
			}
			t.Logf("the run under way:\n%s", out.String())
			p.converges()
			t.Logf("%d failed writes", load.stop(t))
			p.is(w, "Linux 12")
		})
	}
}

// nextName is the machine that a plan adds.
func (p *plane) nextName(have string) string {
	p.t.Helper()
	for _, word := range strings.Fields(p.planned("add-machine")) {
		if strings.HasPrefix(word, p.Name+"-cp-") && word != have {
			return word
		}
	}
	p.t.Fatal("the plan adds no machine")
	return ""
}

// freezesAsLearner freezes a machine as soon as its member of etcd is there.
func (p *plane) freezesAsLearner(first, second string) <-chan error {
	frozen := make(chan error, 1)
	ctx, cancel := context.WithTimeout(p.t.Context(), 5*time.Minute)
	p.t.Cleanup(cancel)
	go func() {
		for ctx.Err() == nil {
			members, err := p.Members(ctx, first)
			if err == nil && slices.ContainsFunc(members, func(m cluster.Member) bool { return m.Learner }) {
				frozen <- p.fault(ctx, http.MethodPut, second, "pause")
				return
			}
			time.Sleep(20 * time.Millisecond)
		}
		frozen <- ctx.Err()
	}()
	return frozen
}

// thawsBeforeRemoval lets the machine go on once it is written down that it is given up, and holds that write's answer back
// until its member is a voter.
func (p *plane) thawsBeforeRemoval(first, second string) {
	proxy := newProxyFor(p.t, p.Kubeconfig)
	p.secret(proxy.kubeconfig)
	proxy.when(func(r *http.Request, body []byte) bool {
		return strings.HasSuffix(r.URL.Path, "/configmaps/theseus") && bytes.Contains(body, []byte("givenUp"))
	}, func() {
		ctx := p.t.Context()
		if err := p.fault(ctx, http.MethodDelete, second, ""); err != nil {
			p.t.Error(err)
			return
		}
		for range 300 {
			members, err := p.Members(ctx, first)
			if err == nil && len(members) == 2 && !slices.ContainsFunc(members, func(m cluster.Member) bool { return m.Learner }) {
				return
			}
			time.Sleep(100 * time.Millisecond)
		}
		p.t.Error("the member was never promoted")
	})
}

// fault begins or ends a fault of a machine.
func (p *plane) fault(ctx context.Context, method, machine, kind string) error {
	request, err := http.NewRequestWithContext(ctx, method, p.Service()+"/faults/"+machine+"?kind="+kind, nil)
	if err != nil {
		return err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode >= http.StatusBadRequest {
		return errors.New(response.Status)
	}
	return nil
}
