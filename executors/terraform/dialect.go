// SPDX-License-Identifier: Apache-2.0

package terraform

import (
	"context"
	"strings"
)

// tofu reports whether the program is OpenTofu, whatever it is called. It is asked once, and only where the two differ:
//
//   - OpenTofu wants every variable again when a saved plan is applied, because a backend or a module's source may depend on
//     them, and compares them with the plan's (https://opentofu.org/docs/cli/commands/apply/). Terraform refuses them there.
//   - OpenTofu takes texts in a backend's settings for templates. Terraform does not.
func (m *Module) tofu(ctx context.Context) (bool, error) {
	if m.dialect == "" {
		// It is over at once, and an apply that is cancelled says so itself.
		out, err := m.run(context.WithoutCancel(ctx), "version")
		if err != nil {
			return false, err
		}
		m.dialect, _, _ = strings.Cut(string(out)+" ", " ")
	}
	return m.dialect == "OpenTofu", nil
}

// literally gives backend settings as the program reads them.
func (m *Module) literally(ctx context.Context, settings map[string]string) (map[string]string, error) {
	escape := strings.NewReplacer("${", "$${", "%{", "%%{")
	out := map[string]string{}
	for name, text := range settings {
		out[name] = text
		if escaped := escape.Replace(text); escaped != text {
			tofu, err := m.tofu(ctx)
			if err != nil {
				return nil, err
			}
			if tofu {
				out[name] = escaped
			}
		}
	}
	return out, nil
}
