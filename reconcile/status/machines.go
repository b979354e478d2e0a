// SPDX-License-Identifier: Apache-2.0

package status

import (
	"slices"
	"strings"

	"github.com/theseus-gitops/theseus/reconcile/live"
)

// Machine is one machine of the cluster, as Terraform's state has it.
type Machine struct {
	Name              string `yaml:"name" json:"name"`
	Role              string `yaml:"role" json:"role"`
	Image             string `yaml:"image,omitempty" json:"image,omitempty"`
	KubernetesVersion string `yaml:"kubernetesVersion,omitempty" json:"kubernetesVersion,omitempty"`
	// State is present, joining, leaving, missing (asked for, and nothing of it exists) or broken (half made).
	State string `yaml:"state" json:"state"`
}

// machinesOf are the document's machines; nil when they were not observed.
func machinesOf(r Report) []Machine {
	if r.Machines == nil || r.Live == nil {
		return nil
	}
	var out []Machine
	for _, m := range r.Machines.All {
		out = append(out, Machine{
			Name: line(m.Name), Role: line(m.Role), Image: line(m.Image), KubernetesVersion: line(m.KubernetesVersion), State: stateOf(m, *r.Live),
		})
	}
	return out
}

func stateOf(m live.Machine, kube live.Kube) string {
	book := kube.Book
	switch {
	case book.Leaving != nil && book.Leaving.Name == m.Name:
		return "leaving"
	case book.Pending != nil && book.Pending.Name == m.Name && book.Pending.GivenUp != "":
		return "leaving"
	case book.Pending != nil && book.Pending.Name == m.Name:
		return "joining"
	case m.Broken:
		return "broken"
	case m.Missing:
		return "missing"
	}
	return "present"
}

// baseImages are the images of all machines, each once.
func baseImages(machines *live.Machines) []string {
	if machines == nil {
		return nil
	}
	var out []string
	for _, m := range machines.All {
		if image := line(m.Image); image != "" && !slices.Contains(out, image) {
			out = append(out, image)
		}
	}
	slices.Sort(out)
	return out
}

// etcdVersions are those of the control plane's static pods, each once, lowest first. They are seen without etcd's credentials.
func etcdVersions(plane *live.Plane) []string {
	if plane == nil {
		return nil
	}
	var out []string
	for _, parts := range plane.Parts {
		if parts.Etcd.Image == "" {
			continue
		}
		version, _, _ := strings.Cut(tagOf(parts.Etcd.Image), "-")
		if !slices.Contains(out, version) {
			out = append(out, version)
		}
	}
	slices.SortFunc(out, func(a, b string) int { return compareVersions("v"+a, "v"+b) })
	return out
}
