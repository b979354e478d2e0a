// SPDX-License-Identifier: Apache-2.0

package status

// Outcome is how a pass over one cluster ended.
type Outcome int

const (
	// Unknown is the outcome of a cluster that has no report yet.
	Unknown Outcome = iota
	// Converged means that the cluster is as wanted. A new spec, or drift, leaves it.
	Converged
	// Changes means that a change is under way or about to begin; the next pass goes on with it.
	Changes
	// Waiting means that nothing is to be done before something happens or a time comes.
	Waiting
	// Stalled means that a person or a new commit must act.
	Stalled
	// Invalid means that the spec can't be used. A new commit leaves it.
	Invalid
	// Unreachable means that the cluster could not be observed. The next pass tries again.
	Unreachable
	// Locked means that another runner holds the cluster's Lease and reports about it itself.
	Locked
	// Transient means that something failed that may work the next time.
	Transient
)

// outcomeTexts are an outcome's texts: for programs, as a condition's reason, and for people.
type outcomeTexts struct{ program, reason, symbol, word, one, many string }

func (o Outcome) texts() outcomeTexts {
	switch o {
	case Converged:
		return outcomeTexts{"converged", "Converged", "✅", "as wanted", "is as wanted", "are as wanted"}
	case Changes:
		return outcomeTexts{"changes", "Rolling", "🔄", "changing", "is changing", "are changing"}
	case Waiting:
		return outcomeTexts{"waiting", "Waiting", "⏳", "waiting", "is waiting", "are waiting"}
	case Stalled:
		return outcomeTexts{"stalled", "Stalled", "❌", "stalled", "is stalled", "are stalled"}
	case Invalid:
		return outcomeTexts{"invalid", "SpecInvalid", "❌", "spec invalid", "has an invalid spec", "have an invalid spec"}
	case Unreachable:
		return outcomeTexts{"unreachable", "Unreachable", "⚠️", "unreachable", "is unreachable", "are unreachable"}
	case Locked:
		return outcomeTexts{"locked", "Locked", "⏳", "held by another runner", "is held by another runner", "are held by other runners"}
	case Transient:
		return outcomeTexts{"transient", "Transient", "⚠️", "failed, trying again", "failed and is tried again", "failed and are tried again"}
	case Unknown:
	}
	return outcomeTexts{"unknown", "Unknown", "❔", "no report yet", "has no report yet", "have no report yet"}
}

// String is the outcome's word for programs, as in `plan -o json`.
func (o Outcome) String() string { return o.texts().program }

// Reason is the outcome as the reason of condition Ready, and as the outcome of a history entry.
// A stalled cluster's Ready has the failure's own reason instead.
func (o Outcome) Reason() string { return o.texts().reason }

// Symbol is one character for people that renders in terminals and on forges alike.
func (o Outcome) Symbol() string { return o.texts().symbol }

// Word is the outcome for people, "as wanted".
func (o Outcome) Word() string { return o.texts().word }

// Outcome is what the document's conditions say.
func (d Document) Outcome() Outcome { return d.Status.Outcome() }

// Outcome is what the conditions say.
func (s Status) Outcome() Outcome {
	ready := s.condition(Ready)
	switch {
	case ready.Type == "":
		return Unknown
	case ready.Status == conditionTrue:
		return Converged
	case s.condition(StalledType).Status != conditionTrue:
		if o := outcomeOfReason(ready.Reason); o != Unknown {
			return o
		}
		return Changes
	case ready.Reason == Invalid.Reason():
		return Invalid
	}
	return Stalled
}

func outcomeOfReason(reason string) Outcome {
	for o := Converged; o <= Transient; o++ {
		if o.Reason() == reason {
			return o
		}
	}
	return Unknown
}
