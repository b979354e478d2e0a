// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/theseus-gitops/theseus/test/lab/parts"
)

// timings prints how long each part took: on a new machine, the cold build.
func timings(out io.Writer, reports []parts.Report) error {
	rows := []string{"PART\tTOOK"}
	for _, r := range reports {
		took := "cached"
		if !r.Cached {
			took = r.Took.Round(100 * time.Millisecond).String()
		}
		rows = append(rows, r.Part+"\t"+took)
	}
	return printTable(out, rows)
}

func list(cache *parts.Cache, out io.Writer) error {
	entries, err := cache.List()
	if err != nil {
		return err
	}
	rows := []string{"# " + cache.Root(), "KEY\tMB\tAGE\tTOOK TO BUILD"}
	for _, e := range entries {
		rows = append(rows, fmt.Sprintf("%s\t%.1f\t%s\t%s", e.Key, float64(e.Bytes)/1e6,
			time.Since(e.BuiltAt).Round(time.Minute), e.Took.Round(100*time.Millisecond)))
	}
	return printTable(out, rows)
}

func printTable(out io.Writer, rows []string) error {
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	if _, err := io.WriteString(table, strings.Join(rows, "\n")+"\n"); err != nil {
		return err
	}
	return table.Flush()
}
