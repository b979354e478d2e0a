// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	"github.com/theseus-gitops/theseus/test/lab/parts"
)

// timings prints how long each part took: on a new machine, the cold build.
func timings(out io.Writer, reports []parts.Report) error {
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "PART\tTOOK")
	for _, r := range reports {
		took := "cached"
		if !r.Cached {
			took = r.Took.Round(100 * time.Millisecond).String()
		}
		fmt.Fprintf(table, "%s\t%s\n", r.Part, took)
	}
	return table.Flush()
}

func list(cache *parts.Cache, out io.Writer) error {
	entries, err := cache.List()
	if err != nil {
		return err
	}
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintf(table, "# %s\n", cache.Root())
	fmt.Fprintln(table, "KEY\tMB\tAGE\tTOOK TO BUILD")
	for _, e := range entries {
		age := time.Since(e.BuiltAt).Round(time.Minute)
		fmt.Fprintf(table, "%s\t%.1f\t%s\t%s\n", e.Key, float64(e.Bytes)/1e6, age, e.Took.Round(100*time.Millisecond))
	}
	return table.Flush()
}
