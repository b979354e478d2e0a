// SPDX-License-Identifier: Apache-2.0

package service

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"path"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Script turns user data into the script that a machine runs once, at its first boot: one with a #! line is taken as it
// is; of a #cloud-config, write_files and runcmd are understood, in the order in which cloud-init does them, and every
// other key is refused by name rather than passed over. Empty user data gives an empty script.
func Script(userData string) (string, error) {
	first, rest, _ := strings.Cut(userData, "\n")
	switch first = strings.TrimSpace(first); {
	case strings.TrimSpace(userData) == "":
		return "", nil
	case strings.HasPrefix(first, "#!"):
		return userData, nil
	case first == "#cloud-config":
		return cloudConfig(rest)
	}
	return "", fmt.Errorf("first line %.40q: want #! with an interpreter, or #cloud-config", first)
}

type cloudFile struct {
	Path        string `yaml:"path"`
	Content     string `yaml:"content"`
	Encoding    string `yaml:"encoding"`
	Permissions string `yaml:"permissions"`
	Owner       string `yaml:"owner"`
	Append      bool   `yaml:"append"`
}

type cloud struct {
	WriteFiles []cloudFile `yaml:"write_files"`
	RunCmd     []yaml.Node `yaml:"runcmd"`
}

func cloudConfig(document string) (string, error) {
	var c cloud
	d := yaml.NewDecoder(strings.NewReader(document))
	d.KnownFields(true)
	if err := d.Decode(&c); err != nil {
		return "", fmt.Errorf("cloud-config: %w: write_files and runcmd are understood", err)
	}
	var out bytes.Buffer
	out.WriteString("#!/bin/sh\nset -eu\n")
	for i, f := range c.WriteFiles {
		if err := f.script(&out); err != nil {
			return "", fmt.Errorf("cloud-config: write_files[%d]: %w", i, err)
		}
	}
	// As with cloud-init, a command that fails does not stop the next; the script's own result is the last failure.
	out.WriteString("set +eu\nfailed=0\n")
	for i, n := range c.RunCmd {
		line, err := command(n)
		if err != nil {
			return "", fmt.Errorf("cloud-config: runcmd[%d], line %d: %w", i, n.Line+1, err)
		}
		fmt.Fprintf(&out, "( %s\n) || failed=$?\n", line)
	}
	out.WriteString("exit $failed\n")
	return out.String(), nil
}

func (f cloudFile) script(out *bytes.Buffer) error {
	if !path.IsAbs(f.Path) {
		return fmt.Errorf("path %q is not absolute", f.Path)
	}
	content := []byte(f.Content)
	switch f.Encoding {
	case "", "text/plain":
	case "b64", "base64":
		var err error
		if content, err = base64.StdEncoding.DecodeString(strings.Join(strings.Fields(f.Content), "")); err != nil {
			return fmt.Errorf("content of %s: %w", f.Path, err)
		}
	default:
		return fmt.Errorf("encoding %q of %s: want b64, base64 or text/plain", f.Encoding, f.Path)
	}
	mode := f.Permissions
	if mode == "" {
		mode = "0644"
	}
	if _, err := strconv.ParseUint(mode, 8, 12); err != nil {
		return fmt.Errorf("permissions %q of %s: want an octal text like '0600'", f.Permissions, f.Path)
	}
	redirect := ">"
	if f.Append {
		redirect = ">>"
	}
	target := quote(f.Path)
	fmt.Fprintf(out, "mkdir -p %s\n", quote(path.Dir(f.Path)))
	if !f.Append {
		// Made with its mode before the content is there: it may be a secret.
		fmt.Fprintf(out, "rm -f %s && install -m %s /dev/null %s\n", target, mode, target)
	}
	fmt.Fprintf(out, "base64 -d %s %s <<'EOF'\n%s\nEOF\n", redirect, target, base64.StdEncoding.EncodeToString(content))
	fmt.Fprintf(out, "chmod %s %s\n", mode, target)
	if f.Owner != "" {
		fmt.Fprintf(out, "chown %s %s\n", quote(f.Owner), target)
	}
	return nil
}

// command is one entry of runcmd: a text is a line for the shell, a list is a command with its arguments.
func command(n yaml.Node) (string, error) {
	if n.Kind == yaml.ScalarNode {
		return n.Value, nil
	}
	var args []string
	if err := n.Decode(&args); err != nil || len(args) == 0 {
		return "", errors.New("want a text, or a list of texts")
	}
	for i := range args {
		args[i] = quote(args[i])
	}
	return strings.Join(args, " "), nil
}

// quote makes a text one word of a shell command.
func quote(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }
