// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"os"
	"slices"
	"testing"

	"github.com/theseus-gitops/theseus/test/lab/cluster"
)

// Three machines get a new base image; then a new Kubernetes, etcd and CoreDNS in one commit. From specs in Git alone,
// while somebody writes through the endpoint.
func TestRollThreeMachines(t *testing.T) {
	p := newPlane(t, cluster.Options{Name: "e2e-three", Machines: 3})
	p.rolls(wanted{kubernetes: oldVersion, image: p.image("debian-12", oldVersion), etcd: oldEtcd, coreDNS: oldTag, replicas: 3})
}

// The same with one machine, which is added to before it is taken from; behind a load balancer that finds machines by itself.
func TestRollOneMachine(t *testing.T) {
	p := newPlane(t, cluster.Options{Name: "e2e-one", HealthChecked: true})
	p.rolls(wanted{kubernetes: oldVersion, image: p.image("debian-12", oldVersion), etcd: oldEtcd, coreDNS: oldTag, replicas: 1})
}

// rolls takes a plane from what it is through the two upgrades.
func (p *plane) rolls(w wanted) {
	p.t.Helper()
	p.asks(w, "as it is")
	p.run(0, "reconcile")
	p.is(w, "Linux 12")

	for _, upgrade := range []struct {
		message, debian string
		change          func()
	}{
		{"new base image", "Linux 13", func() { w.image = p.image("debian-13", oldVersion) }},
		{"new Kubernetes, etcd and CoreDNS", "Linux 13", func() {
			w.kubernetes, w.image, w.etcd, w.coreDNS = newVersion, p.image("debian-13", newVersion), newEtcd, newTag
		}},
	} {
		upgrade.change()
		p.asks(w, upgrade.message)
		before := p.machines()
		planned := p.planned("add-machine", "remove-member", "destroy-machine")
		p.roll(w, upgrade.debian, upgrade.message)
		for _, name := range p.machines() {
			if slices.Contains(before, name) {
				p.t.Errorf("machine %s is still there", name)
			}
			mustContain(p.t, "plan", planned, name)
		}
	}
}

// roll reconciles under load until the cluster is as wanted.
func (p *plane) roll(w wanted, debian, what string) {
	p.t.Helper()
	load := write(p.t, p.Kubeconfig)
	if err := os.RemoveAll(p.calls); err != nil {
		p.t.Fatal(err)
	}
	r, spent := p.measured(p.calls)
	if r.code != 0 {
		p.t.Fatalf("reconcile: exit %d, want 0", r.code)
	}
	p.t.Logf("%s: %d failed writes; %s", what, load.stop(p.t), spent)
	// Plan, show, apply and a look at the state for each change of a machine, of which there are three; a look before the first, and
	// room for a step or two that is tried again. More would be minutes where providers are slow.
	if most := 15*w.replicas + 12; spent.sum() > most {
		p.t.Errorf("%d calls of Terraform for %d machines: %v", spent.sum(), w.replicas, spent.calls)
	}
	noSecret(p.t, "output", r.out+r.err)
	p.is(w, debian)
	document := p.file("status/clusters/" + p.Name + ".yaml")
	mustContain(p.t, "status document", document, `status: "True"`, "outcome: Converged", "kubernetesVersion: "+w.kubernetes)
	head := p.head()
	p.run(0, "reconcile", "--detailed-exitcode")
	if p.head() != head {
		p.t.Error("the pass after the roll committed something")
	}
}
