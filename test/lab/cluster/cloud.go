// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
)

// get sends one request to the service, and reads the JSON answer into result unless the answer is empty.
func (c cloud) get(ctx context.Context, path string, result any) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, c.base+path, nil)
	if err != nil {
		return fmt.Errorf("asking the lab service: %w", err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return fmt.Errorf("asking the lab service: %w", err)
	}
	defer func() { _ = response.Body.Close() }()
	data, err := io.ReadAll(response.Body)
	if err != nil {
		return fmt.Errorf("hearing the lab service: %w", err)
	}
	if response.StatusCode >= http.StatusBadRequest {
		return fmt.Errorf("lab service: %s: %s: %s", path, response.Status, strings.TrimSpace(string(data)))
	}
	if len(data) == 0 {
		return nil
	}
	if err := json.Unmarshal(data, result); err != nil {
		return fmt.Errorf("reading the lab service's answer to %s: %w", path, err)
	}
	return nil
}
