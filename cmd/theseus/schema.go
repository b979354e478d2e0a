// SPDX-License-Identifier: Apache-2.0

package main

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/theseus-gitops/theseus/reconcile/spec"
)

func (a *app) schemaCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "schema cluster|fleet|release",
		Short: "Print the JSON Schema of a document, for editors and CI",
		Long: `Schema prints the JSON Schema of one kind of document, with a description of every field. An editor with a YAML
language server completes and checks specs with it when the first line of a spec is

  # yaml-language-server: $schema=./cluster.schema.json`,
		Example:   "  theseus schema cluster > cluster.schema.json",
		ValidArgs: []string{"cluster", "fleet", "release"},
		Args: func(c *cobra.Command, args []string) error {
			if len(args) == 1 && slices.Contains(c.ValidArgs, args[0]) {
				return nil
			}
			return usage("schema: want the kind of document, one of %s; for example theseus schema cluster", strings.Join(c.ValidArgs, ", "))
		},
		RunE: func(_ *cobra.Command, args []string) error {
			text, err := spec.Schema(args[0])
			if err != nil {
				return usage("%w", err)
			}
			_, err = a.std.out.Write(text)
			return err
		},
	}
}
