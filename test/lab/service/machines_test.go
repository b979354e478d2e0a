// SPDX-License-Identifier: Apache-2.0

package service_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/theseus-gitops/theseus/test/lab/service/engine"
)

func TestMachineIsMadeOnce(t *testing.T) {
	l := newLab(t)
	const body = `{"userData": "#!/bin/sh\necho hello\n"}`
	first := l.do(t, http.StatusCreated, "PUT", "/machines/a", body)
	if again := l.do(t, http.StatusOK, "PUT", "/machines/a", body); again != first {
		t.Errorf("the second PUT answers\n%s\nthe first answered\n%s", again, first)
	}
	l.restart(t)
	l.do(t, http.StatusOK, "PUT", "/machines/a", body)
	if c := l.engine.containers["lab.a"]; len(l.engine.containers) != 1 || c.boots != 1 {
		t.Errorf("%d containers, booted %d times; want one, once", len(l.engine.containers), c.boots)
	}
	m := l.machine(t, "a")
	if m.Address != "10.213.0.10" || m.PodCIDR != "10.214.10.0/24" || m.State != engine.StateRunning || m.Image != "theseus-lab/node:1" {
		t.Errorf("machine %+v", m)
	}
	if via := l.engine.routes["10.214.10.0/24"]; via != "10.213.0.10" {
		t.Errorf("the host routes the pods via %q", via)
	}
	if data := l.engine.containers["lab.a"].files["/etc/theseus-lab/user-data"]; !strings.Contains(string(data.Data), "echo hello") || data.Mode != 0o700 {
		t.Errorf("user data in the machine: %+v", data)
	}
}

func TestMachineNeverChanges(t *testing.T) {
	l := newLab(t)
	l.do(t, http.StatusCreated, "PUT", "/machines/a", `{"image": "theseus-lab/node:1"}`)
	answer := l.do(t, http.StatusConflict, "PUT", "/machines/a", `{"image": "theseus-lab/node:2"}`)
	if !strings.Contains(answer, "delete it first") {
		t.Errorf("the refusal does not say what to do: %s", answer)
	}
	if m := l.machine(t, "a"); m.Image != "theseus-lab/node:1" {
		t.Errorf("image %s", m.Image)
	}
}

func TestDeleteLeavesNothing(t *testing.T) {
	l := newLab(t)
	l.do(t, http.StatusCreated, "PUT", "/machines/a", "")
	l.do(t, http.StatusOK, "PUT", "/endpoint/a", "")
	l.do(t, http.StatusCreated, "PUT", "/faults/a?kind=pause", "")
	l.do(t, http.StatusNoContent, "DELETE", "/machines/a", "")
	l.do(t, http.StatusNoContent, "DELETE", "/machines/a", "")
	l.do(t, http.StatusNotFound, "GET", "/machines/a", "")
	if len(l.engine.containers)+len(l.engine.disks)+len(l.balancer.members) != 0 || l.engine.routes["10.214.10.0/24"] != "" {
		t.Errorf("left: %v %v %v %v", l.engine.containers, l.engine.disks, l.balancer.members, l.engine.routes)
	}
	l.do(t, http.StatusCreated, "PUT", "/machines/a", "")
	if m := l.machine(t, "a"); m.Fault != "" || m.State != engine.StateRunning {
		t.Errorf("the new machine inherits %+v", m)
	}
}

func TestBrokenAttemptIsMadeGood(t *testing.T) {
	for _, call := range []string{"create", "copy", "start"} {
		t.Run(call, func(t *testing.T) {
			l := newLab(t)
			l.engine.fail = call
			l.do(t, http.StatusInternalServerError, "PUT", "/machines/a", `{"userData": "#!/bin/sh\n"}`)
			l.restart(t)
			l.do(t, http.StatusCreated, "PUT", "/machines/a", `{"userData": "#!/bin/sh\n"}`)
			c := l.engine.containers["lab.a"]
			if c.State != engine.StateRunning || c.files["/etc/theseus-lab/user-data"].Path == "" {
				t.Errorf("container %+v", c)
			}
		})
	}
}

func TestAddressesAreUsedAgain(t *testing.T) {
	l := newLab(t)
	for _, name := range []string{"a", "b", "c"} {
		l.do(t, http.StatusCreated, "PUT", "/machines/"+name, "")
	}
	l.do(t, http.StatusNoContent, "DELETE", "/machines/b", "")
	l.do(t, http.StatusCreated, "PUT", "/machines/d", "")
	if got := []string{l.machine(t, "a").Address, l.machine(t, "c").Address, l.machine(t, "d").Address}; !slices.Equal(got, []string{"10.213.0.10", "10.213.0.12", "10.213.0.11"}) {
		t.Errorf("addresses %v", got)
	}
}

func TestOtherContainersAreNotMachines(t *testing.T) {
	l := newLab(t)
	l.engine.containers["stranger"] = &fakeContainer{Container: engine.Container{Name: "stranger", State: engine.StateRunning}}
	l.engine.containers["other.a"] = &fakeContainer{Container: engine.Container{
		Name: "other.a", State: engine.StateRunning,
		Labels: map[string]string{engine.Label: "1", engine.LabLabel: "other", "theseus.lab.machine": "a"},
	}}
	l.do(t, http.StatusNotFound, "GET", "/machines/a", "")
	l.do(t, http.StatusNoContent, "DELETE", "/machines/a", "")
	l.do(t, http.StatusNotFound, "PUT", "/faults/a?kind=poweroff", "")
	if len(l.engine.containers) != 2 {
		t.Errorf("left %v", l.engine.containers)
	}
}

func TestBadMachineRequests(t *testing.T) {
	for name, c := range map[string]struct{ path, body, want string }{
		"upper case":        {"/machines/Lab", "", "want 1-63 of a-z"},
		"dot":               {"/machines/a.b", "", "want 1-63 of a-z"},
		"ends with dash":    {"/machines/a-", "", "want 1-63 of a-z"},
		"not JSON":          {"/machines/a", "image: x", "reading the machine"},
		"unknown key":       {"/machines/a", `{"images": "x"}`, `unknown field \"images\"`},
		"two values":        {"/machines/a", `{} {}`, "more than one JSON value"},
		"image is a flag":   {"/machines/a", `{"image": "--privileged"}`, "not an image name"},
		"user data unclear": {"/machines/a", `{"userData": "kubeadm join"}`, "#cloud-config"},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLab(t)
			if answer := l.do(t, http.StatusBadRequest, "PUT", c.path, c.body); !strings.Contains(answer, c.want) {
				t.Errorf("answer %s\nlacks %s", answer, c.want)
			}
			if len(l.engine.calls) > 0 {
				t.Errorf("the engine was called: %v", l.engine.calls)
			}
		})
	}
}
