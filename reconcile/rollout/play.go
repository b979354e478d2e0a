// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"time"

	"github.com/theseus-gitops/theseus/reconcile/live"
)

// Plan is the steps from what was observed to the end, and how it ends.
type Plan struct {
	Steps []Step
	// End is Done, Stalled, or a Wait past which no model can see.
	End Decision
	// Hash names the plan: equal plans for equal specs have equal hashes.
	Hash string
}

// longest is more steps than any plan has; a plan that long is a defect in Next.
const longest = 10_000

// settleTime is what the plan assumes for the things it waits for.
const settleTime = 30 * time.Second

// Play plays Next forward over the steps' models. The plan is thereby what the job will do, as long as the
// world behaves as the models say.
func Play(want Want, have live.Cluster, now time.Time) Plan {
	var plan Plan
	for range longest {
		switch d := Next(want, have, now).(type) {
		case Do:
			plan.Steps = append(plan.Steps, d.Step)
			have = Apply(d.Step, have, now)
			now = now.Add(time.Second)
		case Wait:
			switch d.ResumedBy { //nolint:exhaustive // all others have a model
			case AwaitedNothing, AwaitedHealth:
				return plan.ended(want, d)
			case AwaitedTime:
				now = d.Until
			default:
				have, now = Await(d.ResumedBy, have), now.Add(settleTime)
			}
		case Stalled:
			return plan.ended(want, d)
		case Done:
			return plan.ended(want, d)
		}
	}
	return plan.ended(want, Stalled{Failure: Failure{
		Reason: "PlanEndless", Message: fmt.Sprintf("the plan does not end within %d steps; this is a defect of Theseus", longest),
		Remedy: "nothing was done; report it with the output of `theseus plan -o json`",
	}})
}

func (p Plan) ended(want Want, end Decision) Plan {
	p.End = end
	sum := sha256.New()
	_, _ = fmt.Fprintf(sum, "%q\n", want.Revision)
	for _, s := range p.Steps {
		_, _ = fmt.Fprintf(sum, "%q %q\n", s.Name(), s.Subject)
	}
	p.Hash = hex.EncodeToString(sum.Sum(nil))
	return p
}
