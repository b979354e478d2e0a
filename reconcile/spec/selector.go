// SPDX-License-Identifier: Apache-2.0

package spec

import "slices"

// LabelSelector has the form and meaning of Kubernetes' metav1.LabelSelector: everything in it must hold, and an empty
// selector matches everything.
type LabelSelector struct {
	MatchLabels      map[string]string     `json:"matchLabels,omitempty" keys:"label-key" format:"label-value" empty:"true" desc:"Labels that must be there with exactly these values."`
	MatchExpressions []SelectorRequirement `json:"matchExpressions,omitempty" desc:"Further conditions on labels."`
}

// SelectorRequirement is one condition on one label.
type SelectorRequirement struct {
	Key      string   `json:"key" required:"true" format:"label-key" desc:"The label."`
	Operator string   `json:"operator" required:"true" enum:"In,NotIn,Exists,DoesNotExist" desc:"How the label's value and the listed values relate. NotIn also matches when the label is absent."`
	Values   []string `json:"values,omitempty" format:"label-value" empty:"true" unique:"true" desc:"The values; needed for In and NotIn, refused for the others."`
}

// Matches tells whether labels satisfy the selector.
func (s LabelSelector) Matches(labels map[string]string) bool {
	for key, want := range s.MatchLabels {
		if have, ok := labels[key]; !ok || have != want {
			return false
		}
	}
	for _, r := range s.MatchExpressions {
		if !r.matches(labels) {
			return false
		}
	}
	return true
}

func (r SelectorRequirement) matches(labels map[string]string) bool {
	have, ok := labels[r.Key]
	switch r.Operator {
	case "In":
		return ok && slices.Contains(r.Values, have)
	case "NotIn":
		return !ok || !slices.Contains(r.Values, have)
	case "Exists":
		return ok
	case "DoesNotExist":
		return !ok
	default:
		return false
	}
}
