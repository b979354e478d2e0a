// SPDX-License-Identifier: Apache-2.0

package service_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/theseus-gitops/theseus/test/lab/service"
)

// TestScriptDoesWhatCloudInitWould runs the scripts for real: their text proves nothing.
func TestScriptDoesWhatCloudInitWould(t *testing.T) {
	dir := t.TempDir()
	script, err := service.Script(`#cloud-config
write_files:
- path: ` + dir + `/deep/secret file
  permissions: "0600"
  content: |
    it's "quoted" $HOME ` + "`date`" + `
    EOF
- path: ` + dir + `/decoded
  encoding: b64
  content: aGVs
    bG8=
- path: ` + dir + `/decoded
  append: true
  content: ", again"
runcmd:
- echo one > ` + dir + `/one
- [sh, -c, 'echo "$1" > ` + dir + `/two', name, "it's two"]
- "false"
- cd / && exit 7
- echo three > ` + dir + `/three
`)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "sh", "-s")
	cmd.Stdin = strings.NewReader(script)
	out, err := cmd.CombinedOutput()
	if cmd.ProcessState.ExitCode() != 7 {
		t.Errorf("want the last failure, 7: %v\n%s\n%s", err, out, script)
	}
	for name, want := range map[string]string{
		"deep/secret file": "it's \"quoted\" $HOME `date`\nEOF\n", "decoded": "hello, again",
		"one": "one\n", "two": "it's two\n", "three": "three\n",
	} {
		got, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil || string(got) != want {
			t.Errorf("%s: %q, %v; want %q", name, got, err, want)
		}
	}
	info, err := os.Stat(filepath.Join(dir, "deep/secret file"))
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
}

// TestScriptTakesWhatTheProductGives reads the user data that joining machines get.
func TestScriptTakesWhatTheProductGives(t *testing.T) {
	golden, err := filepath.Glob("../../../executors/kubeadm/testdata/userdata/*.yaml")
	if err != nil || len(golden) == 0 {
		t.Fatalf("no user data found: %v", err)
	}
	for _, name := range golden {
		data, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		script, err := service.Script(string(data))
		if err != nil || !strings.Contains(script, "'/bin/sh' '/run/theseus/join.sh' '/") {
			t.Errorf("%s: %v\n%s", name, err, script)
		}
	}
}

func TestScriptLeavesScriptsAlone(t *testing.T) {
	for _, script := range []string{"#!/bin/bash\nkubeadm join\n", ""} {
		if got, err := service.Script(script); got != script || err != nil {
			t.Errorf("%q became %q, %v", script, got, err)
		}
	}
}

func TestScriptRefusesWhatItWouldNotDo(t *testing.T) {
	for name, c := range map[string]struct{ data, want string }{
		"plain text":      {"kubeadm join", "want #!"},
		"unknown key":     {"#cloud-config\nusers: []\n", "users"},
		"unknown subkey":  {"#cloud-config\nwrite_files: [{path: /a, defer: true}]\n", "defer"},
		"relative path":   {"#cloud-config\nwrite_files: [{path: a}]\n", "not absolute"},
		"gzip":            {"#cloud-config\nwrite_files: [{path: /a, encoding: gz}]\n", `encoding "gz"`},
		"bad base64":      {"#cloud-config\nwrite_files: [{path: /a, encoding: b64, content: '%'}]\n", "illegal base64"},
		"bad permissions": {"#cloud-config\nwrite_files: [{path: /a, permissions: rw}]\n", "octal"},
		"command a map":   {"#cloud-config\nruncmd: [{a: b}]\n", "runcmd[0]"},
		"empty command":   {"#cloud-config\nruncmd: [[]]\n", "runcmd[0]"},
		"not YAML":        {"#cloud-config\nruncmd: [\n", "cloud-config"},
	} {
		if _, err := service.Script(c.data); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, want %q in it", name, err, c.want)
		}
	}
}
