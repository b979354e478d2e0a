// SPDX-License-Identifier: Apache-2.0

// Package terraform reads and changes machines through the user's own Terraform or OpenTofu root module, by the
// contract in docs/terraform-contract.md: one plan per step, guarded, and only that saved plan applied.
// It does not decide which step comes next, holds no Lease, and logs nothing. Start at Open, then State, Plan and
// Apply; Guard is its pure part.
//
// It starts the program itself instead of using hashicorp/terraform-exec, which (v0.26.0) has no option for
// `init -lockfile=readonly`, puts Terraform's raw stderr into its errors, and has the kernel kill Terraform together
// with us (Pdeathsig), which leaves locks and machines that the state does not know. What its users reported is a test here.
package terraform
