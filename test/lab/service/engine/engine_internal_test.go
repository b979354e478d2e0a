// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"archive/tar"
	"errors"
	"io"
	"net/netip"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

func TestCreateArgs(t *testing.T) {
	s := Spec{
		Name: "lab.a", Hostname: "a", Image: "node:1", Network: "theseus-lab", Address: "10.213.0.10", DNS: "10.213.0.1",
		Volume: "lab.a", Labels: map[string]string{Label: "1", LabLabel: "lab"},
	}
	common := "create --pull never --name lab.a --hostname a --network theseus-lab --ip 10.213.0.10 --dns 10.213.0.1 " +
		"--cgroupns private --stop-signal SIGRTMIN+3 --tmpfs /run:exec,mode=755 --tmpfs /tmp:exec --volume lab.a:/var "
	rest := " --label theseus.lab=1 --label theseus.lab.name=lab node:1"
	for name, c := range map[string]struct {
		mode Mode
		want string
	}{
		"privileged": {Mode{Privileged: true, Capabilities: []string{"CHOWN"}}, "--privileged"},
		"by name": {
			Mode{Capabilities: []string{"CHOWN", "SYS_ADMIN"}},
			"--security-opt seccomp=unconfined --security-opt apparmor=unconfined --device-cgroup-rule a *:* rwm " +
				"--cap-add CHOWN --cap-add SYS_ADMIN",
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := strings.Join(s.createArgs(c.mode), " ")
			if want := common + c.want + rest; got != want {
				t.Errorf("got  %s\nwant %s", got, want)
			}
		})
	}
}

func TestModeFromStatus(t *testing.T) {
	full, err := modeFromStatus("Name:\tx\nCapBnd:\t000001ffffffffff\n")
	if err != nil || !full.Privileged || len(full.Capabilities) != len(capabilities) {
		t.Errorf("all: %+v, %v", full, err)
	}
	most, err := modeFromStatus("CapBnd:\t000001fffeffffff\n")
	if err != nil || most.Privileged || slices.Contains(most.Capabilities, "SYS_RESOURCE") ||
		!slices.Contains(most.Capabilities, "SYS_TIME") || len(most.Capabilities) != len(capabilities)-1 {
		t.Errorf("without SYS_RESOURCE: %+v, %v", most, err)
	}
	for _, bad := range []string{"", "CapBnd:\tnope\n"} {
		if m, err := modeFromStatus(bad); err == nil {
			t.Errorf("%q gives %+v", bad, m)
		}
	}
}

func TestArchive(t *testing.T) {
	r, err := archiveOf([]File{
		{Path: "/etc/a b", Mode: 0o600, Data: []byte("data")},
		{Path: "/etc/link", Link: "/etc/a b"},
	})
	if err != nil {
		t.Fatal(err)
	}
	archive := tar.NewReader(r)
	first, err := archive.Next()
	if err != nil || first.Name != "etc/a b" || first.Mode != 0o600 {
		t.Errorf("first %+v, %v", first, err)
	}
	if data, err := io.ReadAll(archive); string(data) != "data" || err != nil {
		t.Errorf("data %q, %v", data, err)
	}
	second, err := archive.Next()
	if err != nil || second.Typeflag != tar.TypeSymlink || second.Linkname != "/etc/a b" {
		t.Errorf("second %+v, %v", second, err)
	}
}

func TestParse(t *testing.T) {
	list, err := parseContainers(`[{"Name": "/lab.a", "State": {"Status": "paused"}, "Config": {"Image": "node:1", "Labels": {"k": "v"}}}]`)
	if err != nil || len(list) != 1 || list[0].Name != "lab.a" || list[0].State != StatePaused || list[0].Labels["k"] != "v" {
		t.Errorf("containers %+v, %v", list, err)
	}
	networks, err := parseNetworks(`[{"Name": "n", "Labels": {"k": "v"}, "IPAM": {"Config": [{"Subnet": "10.1.0.0/16"}]}}, {"Name": "host", "IPAM": {}}]`)
	if err != nil || len(networks) != 2 || !slices.Equal(networks[0].Subnets, []netip.Prefix{netip.MustParsePrefix("10.1.0.0/16")}) {
		t.Errorf("networks %+v, %v", networks, err)
	}
	for _, bad := range []string{"", "{}", `[{"IPAM": {"Config": [{"Subnet": "x"}]}}]`} {
		if n, err := parseNetworks(bad); err == nil {
			t.Errorf("%q gives %+v", bad, n)
		}
	}
}

func TestRunErrorKeepsTheCauseAndTheWords(t *testing.T) {
	_, err := run(t.Context(), nil, "sh", "-c", "echo why >&2; exit 3")
	var failed *RunError
	var exit *exec.ExitError
	if !errors.As(err, &failed) || failed.Output != "why" || !errors.As(err, &exit) || exit.ExitCode() != 3 {
		t.Errorf("error %v", err)
	}
}
