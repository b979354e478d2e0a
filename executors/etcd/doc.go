// SPDX-License-Identifier: Apache-2.0

// Package etcd reads and changes the membership of a cluster's stacked etcd, and takes snapshots of it.
// It decides nothing, promotes no learner, disarms no alarm and writes nothing to etcd's keys or, but for snapshots, to disk.
// Start at Connect, then Observe; each act observes again before it acts.
package etcd
