// SPDX-License-Identifier: Apache-2.0

package kubeadm_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/theseus-gitops/theseus/executors/kubeadm"
)

// machine is a folder in the place of a machine's root, with a kubeadm that does what a test says.
type machine struct {
	root, script string
}

func boot(t *testing.T, kubeadmScript string) machine {
	t.Helper()
	m := machine{root: t.TempDir()}
	text, err := kubeadm.UserData(join())
	if err != nil {
		t.Fatal(err)
	}
	files, _ := readCloudConfig(t, text)
	for _, dir := range []string{"etc/kubernetes", "run/theseus", "var/log", "bin"} {
		if err := os.MkdirAll(filepath.Join(m.root, dir), 0o750); err != nil {
			t.Fatal(err)
		}
	}
	m.script = files["/run/theseus/join.sh"].Content
	for _, path := range []string{"/etc/kubernetes/", "/run/theseus/", "/var/log/"} {
		m.script = strings.ReplaceAll(m.script, path, m.root+path)
	}
	m.script = strings.ReplaceAll(m.script, "sleep 15", "sleep 0; echo slept >> "+m.root+"/slept")
	m.write(t, "run/theseus/join.yaml", files["/run/theseus/join.yaml"].Content, 0o600)
	if kubeadmScript != "" {
		m.write(t, "bin/kubeadm", "#!/bin/sh\nroot="+m.root+"\necho \"$@\" >> $root/calls\n"+kubeadmScript+"\n", 0o700)
	}
	return m
}

func (m machine) write(t *testing.T, name, content string, mode os.FileMode) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(m.root, name), []byte(content), mode); err != nil {
		t.Fatal(err)
	}
}

// read is a file's content, "" when there is none.
func (m machine) read(name string) string {
	content, _ := os.ReadFile(filepath.Join(m.root, name))
	return string(content)
}

// run is the script's exit code and what it says to cloud-init's own log.
func (m machine) run(t *testing.T) (int, string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "/bin/sh", "-s", m.root+"/bin/kubeadm")
	cmd.Stdin = strings.NewReader(m.script)
	out, err := cmd.CombinedOutput()
	if cmd.ProcessState == nil {
		t.Fatal(err)
	}
	return cmd.ProcessState.ExitCode(), string(out)
}

func (m machine) calls() int { return strings.Count(m.read("calls"), "\n") }

func TestJoinScript(t *testing.T) {
	tests := []struct {
		name, kubeadm string
		before        func(*testing.T, machine)
		code, calls   int
		says          string
	}{
		{"joins", `grep -q JoinConfiguration $root/run/theseus/join.yaml && echo kubelet > $root/etc/kubernetes/kubelet.conf`, nil, 0, 1, "joined"},
		{"a machine that has joined is left alone", "exit 1",
			func(t *testing.T, m machine) { t.Helper(); m.write(t, "etc/kubernetes/kubelet.conf", "old", 0o600) }, 0, 0, "nothing done"},
		{"an endpoint that is not up yet", `[ $(wc -l < $root/calls) -ge 3 ]`, nil, 0, 3, "joined"},
		{"never joins", "exit 1", nil, 1, 5, "failed: 5 attempts"},
		// kubernetes/kubeadm#3269: what a join left after it had added a member can't be joined over.
		{"fails with the kubelet started", "echo x > $root/etc/kubernetes/bootstrap-kubelet.conf; exit 1", nil, 1, 1, "can't be repeated"},
		{"fails when promoting the learner", "echo x > $root/etc/kubernetes/kubelet.conf; exit 1", nil, 1, 1, "can't be repeated"},
		{"no kubeadm", "", nil, 1, 0, "the image has no program"},
		{"killed", "kill $PPID; exit 1", nil, 143, 1, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			m := boot(t, tt.kubeadm)
			if tt.before != nil {
				tt.before(t, m)
			}
			code, out := m.run(t)
			if code != tt.code || m.calls() != tt.calls || !strings.Contains(out, tt.says) {
				t.Errorf("exit %d, %d calls, want %d and %d and %q:\n%s\nlog:\n%s", code, m.calls(), tt.code, tt.calls, tt.says, out, m.read("var/log/theseus-join.log"))
			}
			if m.read("run/theseus/join.yaml") != "" {
				t.Error("the credentials are still on the machine")
			}
			if strings.Contains(m.read("calls"), "reset") {
				t.Error("it reset")
			}
			if pauses := strings.Count(m.read("slept"), "\n"); pauses != max(tt.calls-1, 0) {
				t.Errorf("%d pauses between %d attempts", pauses, tt.calls)
			}
		})
	}
}

func TestJoinScriptRunAgainDoesNothing(t *testing.T) {
	m := boot(t, "echo kubelet > $root/etc/kubernetes/kubelet.conf")
	for range 2 {
		if code, out := m.run(t); code != 0 {
			t.Fatalf("exit %d: %s", code, out)
		}
	}
	if m.calls() != 1 {
		t.Errorf("kubeadm was called %d times", m.calls())
	}
}

// The log keeps what kubeadm said, for who looks at the machine; nobody else on it may read it.
func TestJoinScriptLogs(t *testing.T) {
	m := boot(t, "echo '[preflight] from kubeadm' >&2; echo x > $root/made; exit 1")
	_, out := m.run(t)
	log := m.read("var/log/theseus-join.log")
	if !strings.Contains(log, "[preflight] from kubeadm") || !strings.Contains(log, "attempt 5 of 5") || strings.Contains(out, "[preflight]") {
		t.Errorf("out:\n%s\nlog:\n%s", out, log)
	}
	for name, want := range map[string]os.FileMode{"var/log/theseus-join.log": 0o600, "made": 0o644} {
		info, err := os.Stat(filepath.Join(m.root, name))
		if err != nil || info.Mode().Perm() != want {
			t.Errorf("%s: mode %v, want %v: %v", name, info.Mode(), want, err)
		}
	}
}
