// SPDX-License-Identifier: Apache-2.0

// Package engine runs the lab's containers, networks and disks through the docker, losetup and ip commands.
// It knows nothing of machines, clusters or faults, and it never lists or removes what lacks the lab's label.
// Start at Docker; Spec.createArgs shows how a container that boots systemd is made.
package engine

// Label marks everything that the lab makes; nothing without it is ever removed.
const Label = "theseus.lab"

// LabLabel holds the name of the lab that a container, network or volume belongs to.
const LabLabel = "theseus.lab.name"

// Labels are the two labels by which everything of one lab is found.
func Labels(lab string) map[string]string {
	return map[string]string{Label: "1", LabLabel: lab}
}
