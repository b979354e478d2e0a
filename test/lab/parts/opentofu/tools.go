// SPDX-License-Identifier: Apache-2.0

//go:build tools

// Package opentofu has no code: it keeps the requirement that the mod files of this folder pin.
package opentofu

import _ "github.com/opentofu/opentofu/cmd/tofu"
