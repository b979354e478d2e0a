// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"runtime"

	"github.com/spf13/cobra"
)

func (a *app) versionCommand() *cobra.Command {
	return &cobra.Command{
		Use: "version", Short: "Print the version", Args: none,
		RunE: func(*cobra.Command, []string) error {
			_, err := fmt.Fprintln(a.std.out, versionText())
			return err
		},
	}
}

func versionText() string {
	return fmt.Sprintf("theseus %s %s %s/%s", version, runtime.Version(), runtime.GOOS, runtime.GOARCH)
}
