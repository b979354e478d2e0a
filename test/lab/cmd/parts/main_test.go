// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"strings"
	"testing"

	"github.com/theseus-gitops/theseus/test/lab/parts"
)

func TestRunRefusesWhatItDoesNotKnow(t *testing.T) {
	t.Setenv(parts.CacheEnv, t.TempDir())
	for name, test := range map[string]struct {
		args []string
		want string
	}{
		"no command": {nil, "want all, node, envtest, tofu or list"},
		"command":    {[]string{"everything"}, `"everything"`},
		"kubernetes": {[]string{"-kubernetes=v1.2.3", "list"}, `"v1.2.3"`},
		"debian":     {[]string{"-debian=debian-3", "list"}, `"debian-3"`},
	} {
		t.Run(name, func(t *testing.T) {
			var stdout, stderr bytes.Buffer
			err := run(t.Context(), test.args, &stdout, &stderr)
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("error %v, want %s in it", err, test.want)
			}
			if stdout.Len() > 0 {
				t.Errorf("standard output %q is for results alone", stdout.String())
			}
		})
	}
}

func TestListOfAnEmptyCache(t *testing.T) {
	dir := t.TempDir()
	t.Setenv(parts.CacheEnv, dir)
	var stdout, stderr bytes.Buffer
	if err := run(t.Context(), []string{"list"}, &stdout, &stderr); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(stdout.String(), dir) {
		t.Errorf("list %q does not name the folder", stdout.String())
	}
}
