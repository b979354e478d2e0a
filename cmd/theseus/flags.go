// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"go.yaml.in/yaml/v3"
)

// fleetFlags say which fleet repository, and how to get at it and at its clusters.
type fleetFlags struct {
	repo, branch, path string
	clusters           []string
	secrets            string
	repoSecret         string
	insecureHTTP       bool
}

func (f *fleetFlags) bind(c *cobra.Command) {
	c.Flags().StringVar(&f.repo, "repo", "", "fleet repository: https://…, ssh://…, user@host:path, file://… or a local path")
	c.Flags().StringVar(&f.branch, "branch", "", "branch of the specs (default: the repository's default branch)")
	c.Flags().StringVar(&f.path, "path", "", "folder of fleet.yaml and the specs in the repository (default: its root)")
	c.Flags().StringVar(&f.secrets, "secrets", "", "folder with secrets as DIR/NAME/KEY; without it they are read from the cluster that the job runs in")
	c.Flags().StringVar(&f.repoSecret, "repo-secret", "", "name of the secret for the repository, with Flux's keys: username, password, bearerToken, identity, known_hosts, ca.crt")
	c.Flags().BoolVar(&f.insecureHTTP, "allow-insecure-http", false, "allow credentials and specs over plain http://, readable and changeable by anyone on the way")
}

func (f *fleetFlags) bindClusters(c *cobra.Command) {
	c.Flags().StringArrayVar(&f.clusters, "cluster", nil, "only this cluster; may be given again for more")
}

// output is the -o flag.
type output struct{ format string }

func (o *output) bind(c *cobra.Command) {
	c.Flags().StringVarP(&o.format, "output", "o", "text", "text, json or yaml")
}

func (o *output) check() error {
	if formats := []string{"text", "json", "yaml"}; !slices.Contains(formats, o.format) {
		return usage("-o %q: want one of %s", o.format, strings.Join(formats, ", "))
	}
	return nil
}

// text reports whether people read it.
func (o *output) text() bool { return o.format == "text" }

// write writes a value for programs.
func (o *output) write(w io.Writer, value any) error {
	data, err := json.MarshalIndent(value, "", "  ")
	if err != nil {
		return fmt.Errorf("output: %w", err)
	}
	data = append(data, '\n')
	if o.format == "yaml" {
		if data, err = yamlOf(data); err != nil {
			return fmt.Errorf("output: %w", err)
		}
	}
	_, err = w.Write(data)
	return err
}

// yamlOf writes JSON as YAML; texts of several lines, such as a Corefile, stay lines.
func yamlOf(data []byte) ([]byte, error) {
	var value any
	if err := yaml.Unmarshal(data, &value); err != nil { // JSON is YAML
		return nil, err
	}
	var b bytes.Buffer
	encoder := yaml.NewEncoder(&b)
	encoder.SetIndent(2)
	encoder.CompactSeqIndent()
	if err := encoder.Encode(value); err != nil {
		return nil, err
	}
	return b.Bytes(), encoder.Close()
}
