// SPDX-License-Identifier: Apache-2.0

package terraform

import (
	"cmp"
	"encoding/base64"
	"encoding/json"
	"maps"
	"net/url"
	"slices"
	"strings"
)

// Secret is text that goes to Terraform by a private file or the environment, and nowhere else: it does not print.
type Secret string

const concealed = "(sensitive)"

// String conceals the text.
func (Secret) String() string { return concealed }

// GoString conceals the text.
func (Secret) GoString() string { return concealed }

// MarshalText conceals the text, in JSON and in logs.
func (Secret) MarshalText() ([]byte, error) { return []byte(concealed), nil }

// revealed is for the files that Terraform reads.
func revealed(given map[string]Secret) map[string]string {
	plain := make(map[string]string, len(given))
	for name, value := range given {
		plain[name] = string(value)
	}
	return plain
}

// shortest is the length below which text is not taken for a secret, nor a line of one: "true" and "eu-1" would blot
// out half of every message.
const (
	shortest     = 5
	shortestLine = 8
)

// secrets knows the texts that must not be shown, in the forms in which programs repeat them.
type secrets struct {
	forms    map[string]bool
	replacer *strings.Replacer
}

func (s *secrets) add(values ...string) {
	if s.forms == nil {
		s.forms = map[string]bool{}
	}
	for _, v := range values {
		if len(strings.TrimSpace(v)) < shortest {
			continue
		}
		s.addForms(v)
		// A key or a cloud-config is repeated by lines, indented or not.
		if lines := strings.Split(v, "\n"); len(lines) > 1 {
			for _, line := range lines {
				if line = strings.TrimSpace(line); len(line) >= shortestLine {
					s.addForms(line)
				}
			}
		}
	}
	s.replacer = nil
}

func (s *secrets) addForms(v string) {
	s.forms[v] = true
	s.forms[strings.TrimSpace(v)] = true
	s.forms[base64.StdEncoding.EncodeToString([]byte(v))] = true
	s.forms[url.QueryEscape(v)] = true
	if quoted, err := json.Marshal(v); err == nil {
		s.forms[string(quoted[1:len(quoted)-1])] = true
	}
}

// scrub conceals all that is known to be secret.
func (s *secrets) scrub(text string) string {
	if s.replacer == nil {
		// The longest first: of a key and a line of it, the key goes.
		longestFirst := slices.SortedFunc(maps.Keys(s.forms), func(a, b string) int {
			return cmp.Or(cmp.Compare(len(b), len(a)), cmp.Compare(a, b))
		})
		pairs := make([]string, 0, 2*len(longestFirst))
		for _, form := range longestFirst {
			pairs = append(pairs, form, concealed)
		}
		s.replacer = strings.NewReplacer(pairs...)
	}
	return s.replacer.Replace(text)
}

// addMarked adds the texts in value that mask marks: Terraform's masks are true for a whole value, or have its shape.
func (s *secrets) addMarked(value, mask any) {
	switch m := mask.(type) {
	case bool:
		if m {
			s.addAll(value)
		}
	case map[string]any:
		if v, ok := value.(map[string]any); ok {
			for key := range m {
				s.addMarked(v[key], m[key])
			}
		}
	case []any:
		if v, ok := value.([]any); ok {
			for i := range min(len(m), len(v)) {
				s.addMarked(v[i], m[i])
			}
		}
	}
}

func (s *secrets) addAll(value any) {
	switch v := value.(type) {
	case string:
		s.add(v)
	case json.Number:
		s.add(v.String())
	case map[string]any:
		for _, inner := range v {
			s.addAll(inner)
		}
	case []any:
		for _, inner := range v {
			s.addAll(inner)
		}
	}
}
