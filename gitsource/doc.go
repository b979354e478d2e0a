// SPDX-License-Identifier: Apache-2.0

// Package gitsource reads a fleet's files from one Git repository and commits status files back to it.
// It does not know what the files mean, keeps no checkout, and decides nothing about clusters.
// Start at Open; Repo.Files reads, Repo.Commit writes.
package gitsource
