// SPDX-License-Identifier: Apache-2.0

package terraform

// UnfitError says that the module, its backend or its state can't be used as it is: a person has to change it.
type UnfitError struct {
	Problem, Remedy string
	cause           error
}

// Error implements error.
func (e *UnfitError) Error() string { return e.Problem + "; " + e.Remedy }

// Unwrap is what Terraform said, if it said something.
func (e *UnfitError) Unwrap() error { return e.cause }
