// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
)

// call sends one request to the service, and reads the JSON answer into result unless that is nil or the answer empty.
func (c cloud) call(ctx context.Context, method, path string, body, result any) error {
	var payload io.Reader
	if body != nil {
		data, err := json.Marshal(body)
		if err != nil {
			return fmt.Errorf("packing a request to the lab service: %w", err)
		}
		payload = bytes.NewReader(data)
	}
	request, err := http.NewRequestWithContext(ctx, method, c.base+path, payload)
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
		return fmt.Errorf("lab service: %s %s: %s: %s", method, path, response.Status, strings.TrimSpace(string(data)))
	}
	if result == nil || len(data) == 0 {
		return nil
	}
	if err := json.Unmarshal(data, result); err != nil {
		return fmt.Errorf("reading the lab service's answer to %s %s: %w", method, path, err)
	}
	return nil
}
