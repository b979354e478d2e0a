// SPDX-License-Identifier: Apache-2.0

// Package kubeadmconfig edits the documents that kubeadm keeps in a cluster, as texts: what it is not asked to change stays
// byte for byte. It does not read or write the cluster (executors/kubeadm does) and does not decide when (rollout does).
// Start at EditConfig, PruneKubelet and EditDNS.
package kubeadmconfig

// Group is the API group of kubeadm's documents.
const Group = "kubeadm.k8s.io"
