// SPDX-License-Identifier: Apache-2.0

package kubeadm

import (
	"log/slog"
	"regexp"
)

// Secret is a text that is never printed: not by fmt, not by slog, not as JSON. Its content is string(secret).
type Secret string

const hidden = "(secret)"

// String hides the content.
func (Secret) String() string { return hidden }

// GoString hides the content.
func (Secret) GoString() string { return hidden }

// MarshalText hides the content.
func (Secret) MarshalText() ([]byte, error) { return []byte(hidden), nil }

// LogValue hides the content.
func (Secret) LogValue() slog.Value { return slog.StringValue(hidden) }

// Token is a bootstrap token: who knows it may join a machine. Its id is no secret, it is part of the Secret's name.
type Token struct {
	ID     string
	Secret Secret
}

// tokenPattern is that of kubeadm's tokens, k8s.io/cluster-bootstrap token/api BootstrapTokenPattern.
var tokenPattern = regexp.MustCompile(`^[a-z0-9]{6}\.[a-z0-9]{16}$`)

func (t Token) text() string { return t.ID + "." + string(t.Secret) }

func (t Token) valid() bool { return tokenPattern.MatchString(t.text()) }
