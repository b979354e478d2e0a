// SPDX-License-Identifier: Apache-2.0

package main

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

func TestRepositoryThatAsksForCredentials(t *testing.T) {
	t.Parallel()
	for answer, want := range map[int]int{http.StatusUnauthorized: 2, http.StatusNotFound: 2, http.StatusServiceUnavailable: 30} {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(answer) }))
		defer s.Close()
		var errs strings.Builder
		code := run(t.Context(), []string{"plan", "--allow-insecure-http", "--repo", s.URL}, stream{nil, io.Discard, &errs}, nil)
		if code != want || (want == 2) != strings.Contains(errs.String(), "--repo-secret") {
			t.Errorf("answer %d: exit code %d, want %d: %s", answer, code, want, errs.String())
		}
	}
}
