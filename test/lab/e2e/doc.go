// SPDX-License-Identifier: Apache-2.0

// Package e2e has only tests: they run the theseus binary against a real kubeadm cluster and a real Git repository.
// It looks at the outside alone: exit codes, objects in the cluster, commits in the repository.
// Start at core_test.go; they are behind the build tag e2e, because they need root and Docker (make e2e).
package e2e
