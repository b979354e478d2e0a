// SPDX-License-Identifier: Apache-2.0

package terraform

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// locking says of a backend's type whether a state in it is locked, given its settings. Each line is from the
// backend's page below https://developer.hashicorp.com/terraform/language/backend, the same in OpenTofu's documentation.
// Types that are not here are refused.
func locking(kind string, set func(setting string) bool) (locks bool, remedy string) {
	switch kind {
	case "local", // "supports state locking via system APIs"
		"remote", "cloud", // a workspace's runs are queued
		"azurerm",    // by the blob's own lease
		"consul",     // unless switched off, below
		"cos",        // by a tag of Tencent's
		"gcs",        // by a lock object
		"kubernetes", // by a Lease
		"oci",        // by a lock object
		"pg":         // by advisory locks
		if kind == "consul" && !set("lock") {
			return false, "set lock = true"
		}
		return true, ""
	case "http": // "optionally supports state locking", when lock_address is given
		return set("lock_address"), "set lock_address and unlock_address"
	case "s3": // "State locking is an opt-in feature"
		return set("use_lockfile") || set("dynamodb_table"), "set use_lockfile = true"
	case "oss": // "supports state locking via TableStore"
		return set("tablestore_table") && set("tablestore_endpoint"), "set tablestore_endpoint and tablestore_table"
	}
	return false, "use a backend that locks"
}

// backend is what init chose, as it is written into Terraform's data folder. The type is "" without a backend block:
// the state is a local file then.
type backend struct {
	Type   string         `json:"type"`
	Config map[string]any `json:"config"`
}

func (m *Module) backend() (backend, error) {
	data, err := os.ReadFile(filepath.Join(m.folder.file(dataName), "terraform.tfstate"))
	if errors.Is(err, fs.ErrNotExist) {
		return backend{}, nil
	}
	var chosen struct {
		Backend backend `json:"backend"`
	}
	if err == nil {
		err = json.Unmarshal(data, &chosen)
	}
	if err != nil {
		return backend{}, fmt.Errorf("reading which backend init chose: %w", err)
	}
	return chosen.Backend, nil
}

func (m *Module) checkBackend() error {
	b, err := m.backend()
	if err != nil || b.Type == "" {
		return err
	}
	locks, remedy := locking(b.Type, func(setting string) bool {
		switch v := b.Config[setting].(type) {
		case bool:
			return v
		case string:
			return v != ""
		}
		// The http backend takes its settings from the environment too; consul's lock is true by default.
		return b.Type == "http" && m.variable(httpVariable(setting)) != "" || b.Type == "consul"
	})
	if !locks {
		return &UnfitError{
			Problem: fmt.Sprintf("the state's backend %q does not lock, so two runs could change machines at once", b.Type),
			Remedy:  remedy,
		}
	}
	return nil
}

// variable is an environment variable as Terraform sees it.
func (m *Module) variable(name string) string {
	for _, pair := range m.env {
		if value, ok := strings.CutPrefix(pair, name+"="); ok {
			return value
		}
	}
	return ""
}

// selectWorkspace makes sure that the workspace exists and then writes it down where Terraform keeps the selection.
// Not earlier, and not by TF_WORKSPACE: a missing workspace would be made, with an empty state.
func (m *Module) selectWorkspace(ctx context.Context) error {
	want := m.options.Workspace
	if want == "" || want == "default" {
		return nil
	}
	out, err := m.run(ctx, "workspace", "list")
	if err != nil {
		return &UnfitError{Problem: fmt.Sprintf("workspace %q can't be selected: %v", want, err), Remedy: "omit spec.terraform.workspace if the backend has none", cause: err}
	}
	for line := range strings.Lines(string(out)) {
		if strings.TrimSpace(strings.TrimPrefix(line, "*")) == want {
			_, err := m.folder.write(filepath.Join(dataName, "environment"), []byte(want))
			return err
		}
	}
	return &UnfitError{
		Problem: fmt.Sprintf("the state's backend has no workspace %q", want),
		Remedy:  fmt.Sprintf("set spec.terraform.workspace to the cluster's, or make it with `%s workspace new %s`", m.name(), want),
	}
}

// explainInit gives the failures of init that a person must mend their remedy. Anything else, a registry or a backend
// that does not answer, is worth another try.
func (m *Module) explainInit(err error) error {
	if _, ok := said(err, "Provider dependency changes detected", "Inconsistent dependency lock file"); ok {
		return &UnfitError{
			Problem: "the lock file .terraform.lock.hcl does not pin every provider of the module",
			Remedy:  fmt.Sprintf("run `%s providers lock` for the platforms that Theseus runs on and commit the file", m.name()),
			cause:   err,
		}
	}
	if _, ok := said(err, "Can't ask approval for state migration"); ok {
		return &UnfitError{
			Problem: "a terraform.tfstate lies in the module's folder although its backend keeps the state elsewhere",
			Remedy:  "move it away; it is never copied into the backend",
			cause:   err,
		}
	}
	return err
}
