// SPDX-License-Identifier: Apache-2.0

package coredns

import (
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/theseus-gitops/theseus/reconcile/rollout"
)

// call names one API request, for its error.
type call struct{ verb, resource, name string }

func (c call) object() string {
	if c.resource == "clusterroles" {
		return c.resource + "/" + c.name
	}
	return c.resource + "/" + c.name + " in " + namespace
}

// explain says what a failed request means: a conflict is rollout.ErrConflict, a refusal names the missing right.
// What the API server said stays in the chain.
func (c call) explain(err error) error {
	switch {
	case err == nil:
		return nil
	case apierrors.IsConflict(err):
		return fmt.Errorf("%s: %w: %w", c.object(), rollout.ErrConflict, err)
	case apierrors.IsNotFound(err):
		return fmt.Errorf("%s does not exist, and this step needs it: %w", c.object(), err)
	case apierrors.IsForbidden(err):
		return fmt.Errorf("%s: the API server refused to %s it; if the account lacks the right, grant verb %s on %s: %w", c.object(), c.verb, c.verb, c.resource, err)
	case apierrors.IsInvalid(err):
		return fmt.Errorf("%s: the API server found the change invalid: %w", c.object(), err)
	}
	return fmt.Errorf("%s: %s: %w", c.object(), c.verb, err)
}

// atVersion checks a precondition before anything is written. The write itself carries it too.
func (c call) atVersion(have, want string) error {
	if want == "" {
		return c.unconditional()
	}
	if have != want {
		return fmt.Errorf("%s: %w: it is at resourceVersion %s, the step was decided at %s", c.object(), rollout.ErrConflict, have, want)
	}
	return nil
}

func (c call) unconditional() error {
	return fmt.Errorf("%s: the step carries no resourceVersion, so it could overwrite what it has not seen", c.object())
}
