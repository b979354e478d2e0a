// SPDX-License-Identifier: Apache-2.0

package kubeadm_test

import (
	"strings"
	"testing"

	"github.com/theseus-gitops/theseus/executors/kubeadm"
)

func TestUserDataTemplate(t *testing.T) {
	j := full()
	j.Spec.UserDataTemplate = `#cloud-config
hostname: {{.Machine}}
write_files:
{{- range .Files}}
- {path: {{json .Path}}, permissions: {{json .Mode}}, encoding: b64, content: {{base64 .Content}}}
{{- end}}
- path: /run/theseus/join.yaml
  permissions: "0600"
  content: {{json .JoinConfiguration}}
- path: /run/theseus/join.sh
  content: |
    {{indent 4 .JoinScript}}
runcmd:
- [sh, /run/theseus/join.sh, {{json .KubeadmPath}}] # {{.KubernetesVersion}}
`
	got, err := kubeadm.UserData(j)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(got, "hostname: seed-eu-1-cp-4\n") || !strings.Contains(got, "# v1.37.2\n") {
		t.Errorf("got:\n%s", got)
	}
	mine, commands := readCloudConfig(t, strings.Replace(got, "hostname: seed-eu-1-cp-4\n", "", 1))
	j.Spec.UserDataTemplate = ""
	text, err := kubeadm.UserData(j)
	if err != nil {
		t.Fatal(err)
	}
	builtIn, builtInCommands := readCloudConfig(t, text)
	for path, want := range builtIn {
		if mine[path].Content != want.Content {
			t.Errorf("%s:\n%s\nwant:\n%s", path, mine[path].Content, want.Content)
		}
	}
	if commands[0][2] != builtInCommands[0][2] {
		t.Errorf("commands %q, want %q", commands, builtInCommands)
	}
}

func TestUserDataTemplateRefuses(t *testing.T) {
	for name, tt := range map[string]struct{ template, want string }{
		"unknown field":       {"{{.JoinConfiguration}}{{.Node}}", "fields: Machine, KubernetesVersion"},
		"unknown file field":  {"{{.JoinConfiguration}}{{range .Files}}{{.Name}}{{end}}", "Files (each with Path, Mode, Content)"},
		"field of a text":     {"{{.JoinConfiguration.Token}}", "fields: Machine"},
		"unexported field":    {"{{.config}}", "fields: Machine"},
		"unknown function":    {"{{.JoinConfiguration | b64}}", "functions: json, base64, indent"},
		"not closed":          {"{{.JoinConfiguration", "userDataTemplate:1"},
		"wrong argument":      {"{{indent .JoinConfiguration 2}}", "fields: Machine"},
		"indent without end":  {"{{indent 1000000 .JoinConfiguration}}", "allowed are 0 to 100"},
		"never joins":         {"#!/bin/sh\necho hello\n", "could never join"},
		"makes a new cluster": {"{{.JoinConfiguration}}\nkubeadm init --config x", `"kubeadm init"`},
		"resets":              {"{{.JoinConfiguration}}\nkubeadm  reset -f", `"kubeadm  reset"`},
		"not YAML":            {"#cloud-config\na: |\n    x\n  {{.JoinConfiguration}}", "{{json .JoinConfiguration}}"},
		"calls itself":        {`{{define "a"}}x{{template "a"}}{{end}}{{template "a"}}`, "more than 16384 bytes"},
		"too long":            {`{{range 100000}}{{$.JoinConfiguration}}{{end}}`, "more than 16384 bytes"},
	} {
		t.Run(name, func(t *testing.T) {
			j := full()
			j.Spec.UserDataTemplate = tt.template
			got, err := kubeadm.UserData(j)
			if err == nil || got != "" || !strings.Contains(err.Error(), tt.want) {
				t.Fatalf("got %q, error %v; want an error with %q", got, err, tt.want)
			}
			noSecrets(t, err.Error())
		})
	}
}

// FuzzUserDataTemplate: no template makes an error with a secret in it, nor a text without the way to join.
func FuzzUserDataTemplate(f *testing.F) {
	f.Add("#cloud-config\na: {{json .JoinConfiguration}}\n")
	f.Add("{{index .Files .JoinConfiguration}}{{slice .JoinConfiguration 9 1}}")
	f.Add("{{printf \"%d\" .JoinConfiguration | js | len | eq 3}}{{template \"x\" .}}{{break}}")
	f.Fuzz(func(t *testing.T, template string) {
		j := full()
		j.Spec.UserDataTemplate = template
		if _, err := kubeadm.UserData(j); err != nil {
			noSecrets(t, err.Error())
		}
	})
}
