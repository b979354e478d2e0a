// SPDX-License-Identifier: Apache-2.0

package service_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/theseus-gitops/theseus/test/lab/service"
	"github.com/theseus-gitops/theseus/test/lab/service/engine"
)

func TestFaultsTakeEffectAndEnd(t *testing.T) {
	for kind, hit := range map[service.Fault]func(*fakeContainer) bool{
		service.FaultPause:      func(c *fakeContainer) bool { return c.State == engine.StatePaused },
		service.FaultPowerOff:   func(c *fakeContainer) bool { return c.State == engine.StateExited },
		service.FaultNetworkCut: func(c *fakeContainer) bool { return c.address == "" },
		service.FaultDiskFull:   func(c *fakeContainer) bool { return c.full },
	} {
		t.Run(string(kind), func(t *testing.T) {
			l := newLab(t)
			l.do(t, http.StatusCreated, "PUT", "/machines/a", "")
			l.do(t, http.StatusCreated, "PUT", "/faults/a?kind="+string(kind), "")
			l.do(t, http.StatusOK, "PUT", "/faults/a?kind="+string(kind), "")
			if c := l.engine.containers["lab.a"]; !hit(c) || l.machine(t, "a").Fault != kind {
				t.Errorf("no effect: %+v", c)
			}
			l.restart(t)
			l.do(t, http.StatusNoContent, "DELETE", "/faults/a", "")
			l.do(t, http.StatusNoContent, "DELETE", "/faults/a", "")
			c := l.engine.containers["lab.a"]
			if hit(c) || c.State != engine.StateRunning || c.address != "10.213.0.10" || l.machine(t, "a").Fault != "" {
				t.Errorf("not mended: %+v", c)
			}
		})
	}
}

func TestNeverBootIsSetBefore(t *testing.T) {
	l := newLab(t)
	l.do(t, http.StatusCreated, "PUT", "/faults/a?kind=never-boot", "")
	l.do(t, http.StatusCreated, "PUT", "/machines/a", "")
	l.do(t, http.StatusOK, "PUT", "/machines/a", "")
	if c := l.engine.containers["lab.a"]; c.boots != 0 || l.machine(t, "a").State != engine.StateCreated {
		t.Fatalf("booted: %+v", c)
	}
	l.do(t, http.StatusNoContent, "DELETE", "/faults/a", "")
	if c := l.engine.containers["lab.a"]; c.boots != 1 || l.machine(t, "a").State != engine.StateRunning {
		t.Errorf("not booted: %+v", c)
	}
	answer := l.do(t, http.StatusConflict, "PUT", "/faults/a?kind=never-boot", "")
	if !strings.Contains(answer, "poweroff") {
		t.Errorf("the refusal does not say what to use: %s", answer)
	}
}

func TestFaultsThatAreRefused(t *testing.T) {
	l := newLab(t)
	l.do(t, http.StatusBadRequest, "PUT", "/faults/a?kind=fire", "")
	l.do(t, http.StatusBadRequest, "PUT", "/faults/a", "")
	l.do(t, http.StatusNotFound, "PUT", "/faults/a?kind=pause", "")
	l.do(t, http.StatusCreated, "PUT", "/machines/a", "")
	l.do(t, http.StatusCreated, "PUT", "/faults/a?kind=pause", "")
	l.do(t, http.StatusConflict, "PUT", "/faults/a?kind=poweroff", "")
}

func TestFaultThatFailedHalfWayCanBeEnded(t *testing.T) {
	for kind, call := range map[service.Fault]string{
		service.FaultPause: "pause", service.FaultPowerOff: "kill", service.FaultNetworkCut: "disconnect",
	} {
		l := newLab(t)
		l.do(t, http.StatusCreated, "PUT", "/machines/a", "")
		l.engine.fail = call
		l.do(t, http.StatusInternalServerError, "PUT", "/faults/a?kind="+string(kind), "")
		l.do(t, http.StatusNoContent, "DELETE", "/faults/a", "")
		if c := l.engine.containers["lab.a"]; c.State != engine.StateRunning || c.address == "" {
			t.Errorf("%s: %+v", kind, c)
		}
	}
}

func TestEndpointFollowsMachines(t *testing.T) {
	l := newLab(t)
	l.do(t, http.StatusNotFound, "PUT", "/endpoint/a", "")
	l.do(t, http.StatusCreated, "PUT", "/machines/a", "")
	l.do(t, http.StatusCreated, "PUT", "/machines/b", "")
	for _, name := range []string{"a", "b", "a"} {
		l.do(t, http.StatusOK, "PUT", "/endpoint/"+name, "")
	}
	l.restart(t)
	if len(l.balancer.members) != 2 || l.engine.routes["10.230.0.0/16"] != "10.213.0.10" {
		t.Fatalf("after a restart: members %v, routes %v", l.balancer.members, l.engine.routes)
	}
	l.do(t, http.StatusNoContent, "DELETE", "/endpoint/a", "")
	l.do(t, http.StatusNoContent, "DELETE", "/endpoint/a", "")
	if _, left := l.balancer.members["a"]; left || l.engine.routes["10.230.0.0/16"] != "10.213.0.11" {
		t.Errorf("members %v, routes %v", l.balancer.members, l.engine.routes)
	}
}
