// SPDX-License-Identifier: Apache-2.0

package coredns

import (
	"fmt"
	"strings"

	"github.com/theseus-gitops/theseus/reconcile/rollout"
)

// worth is how good an answer is. A later constant is better than an earlier one.
type worth int

const (
	// silence: no connection, no reply in time, or a reply that is not DNS.
	silence worth = iota
	// errorReply: the server replied that it could not or would not answer, as SERVFAIL and REFUSED do.
	errorReply
	// negative: the server knows that there is nothing, NXDOMAIN or NOERROR without a record.
	negative
	// positive: NOERROR with a record.
	positive
)

// Codes that are no name of an rcode, or that have a worth of their own.
const (
	codeNoError  = "NOERROR"
	codeNoData   = "NODATA"
	codeNXDomain = "NXDOMAIN"
)

// answer is what a pod said to a question.
type answer struct {
	// code is the answer code: an rcode's name, NODATA for NOERROR without a record, "" for silence.
	code string
	// why says how the silence came about.
	why string
	// reached is that a connection was made: without one the way to the pod may be to blame.
	reached bool
}

// worthOf values a code as it stands in a run's Answers.
func worthOf(code string) worth {
	switch code {
	case "":
		return silence
	case codeNoError:
		return positive
	case codeNoData, codeNXDomain:
		return negative
	}
	return errorReply
}

func (a answer) worth() worth { return worthOf(a.code) }

func (a answer) String() string {
	if a.code == "" {
		return "nothing (" + a.why + ")"
	}
	return a.code
}

// said is an answer and who gave it.
type said struct {
	pod string
	answer
}

// asked is one question and what was said to it.
type asked struct {
	question rollout.Question
	// present are the answers of pods that serve now; empty when none could be asked.
	present []said
	canary  answer
}

// need is what the canary owes: no less than the best that is said now. Where nothing is said now, it must
// answer by itself. Where the present pods reply with an error (the upstream of a stub domain may be
// down), it may do the same: the upgrade makes nothing worse.
func (a asked) need() worth {
	best := silence
	for _, s := range a.present {
		best = max(best, s.worth())
	}
	if best == silence {
		return negative
	}
	return best
}

func (a asked) presently() string {
	if len(a.present) == 0 {
		return "no present pod is Ready to compare with"
	}
	var out []string
	for _, s := range a.present {
		out = append(out, s.pod+" says "+s.String())
	}
	return strings.Join(out, ", ")
}

// poor says that the canary answered worse than it owes, "" when it did not.
func (a asked) poor() string {
	if a.canary.worth() >= a.need() {
		return ""
	}
	return fmt.Sprintf("%s: %s, the canary says %s", a.question, a.presently(), a.canary)
}

// complaints are the questions that the canary answered worse than the present pods, nil when it did well.
// A canary without a single answer proves nothing and fails, even where the present pods do no better.
func complaints(all []asked) []string {
	var out []string
	best := silence
	for _, a := range all {
		best = max(best, a.canary.worth())
		if text := a.poor(); text != "" {
			out = append(out, text)
		}
	}
	if len(out) == 0 && len(all) > 0 && best < negative {
		for _, a := range all {
			out = append(out, fmt.Sprintf("%s: the canary says %s", a.question, a.canary))
		}
	}
	return out
}

// unreachable reports that no connection to any pod was made: then nothing was learnt about CoreDNS.
func unreachable(all []asked) bool {
	for _, a := range all {
		if a.canary.reached {
			return false
		}
		for _, s := range a.present {
			if s.reached {
				return false
			}
		}
	}
	return len(all) > 0
}

// owed is what a run's recorded answer asks of a pod: no less. A question that the canary was not asked needs a
// reply of any kind.
func owed(recorded map[string]string, q rollout.Question) worth {
	return max(worthOf(recorded[q.String()]), errorReply)
}

// several joins the first few of a list and counts the rest, for messages of bounded length.
func several(list []string) string {
	const most = 3
	if len(list) <= most {
		return strings.Join(list, "; ")
	}
	return fmt.Sprintf("%s; and %d more", strings.Join(list[:most], "; "), len(list)-most)
}
