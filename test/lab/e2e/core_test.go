// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"encoding/json"
	"maps"
	"os"
	"strings"
	"testing"
)

const (
	oldTag = "v1.14.2"
	newTag = "v1.14.6"
	// canaryOnlyTag has a canary that answers and pods that never become ready; brokenTag has not even that.
	canaryOnlyTag = "v1.14.7"
	brokenTag     = "v1.14.8"
	ancientTag    = "1.6.7"
	imagePrefix   = "registry.k8s.io/coredns/coredns:"
)

// commented is what people's Corefiles look like: comments, their own indentation, an extra server block.
const commented = `# cluster DNS, owned by the platform team
.:53 {
	errors
	health {
		lameduck 5s   # as kubeadm has it
	}
	ready
	kubernetes cluster.local in-addr.arpa ip6.arpa {
		pods insecure
		fallthrough in-addr.arpa ip6.arpa
		ttl 30
	}
	prometheus :9153
	cache 30
	loop
	reload
	loadbalance
}

# a stub zone of ours
corp.example:53 {
	hosts {
		192.0.2.10 gitea.corp.example
	}
}
`

// ancient lacks forward's max_concurrent, which leaving 1.6.7 adds as a new default.
const ancient = `.:53 {
    errors
    health {
        lameduck 5s
    }
    ready
    kubernetes cluster.local in-addr.arpa ip6.arpa {
        pods insecure
        fallthrough in-addr.arpa ip6.arpa
    }
    prometheus :9153
    forward . /etc/resolv.conf
    cache 30
    reload
    loadbalance
}
`

// The core scenario: plan, reconcile, status, and a second pass that touches nothing.
func TestUpgradeCoreDNS(t *testing.T) {
	reset(t, oldTag, commented)
	f := newFleet(t, lab.Kubeconfig)
	f.want(newTag)

	planned := f.run(10, "plan")
	mustContain(t, "plan", planned.out, "canary-coredns", "sync-dns-config", "update-coredns", "verify", "byte for byte")
	if got := observe(t).image; got != imagePrefix+oldTag {
		t.Fatalf("plan changed the image to %s", got)
	}
	if f.head() != "" {
		t.Fatal("plan committed something")
	}

	dns := probe(t)
	f.run(0, "reconcile")
	dns.stop(t)
	after := observe(t)
	if after.image != imagePrefix+newTag || after.data["Corefile"] != commented || after.mounted == "Corefile-backup" {
		t.Fatalf("after reconcile: %s", describe(after))
	}
	mustContain(t, "kubeadm-config", kubeadmConfig(t), "imageTag: "+newTag)
	if left := leftovers(t); left != nil {
		t.Errorf("the canary left %v", left)
	}
	mustContain(t, "status document", f.file("status/clusters/e2e.yaml"), "type: Ready", "status: \"True\"", "coreDNS: "+newTag, "outcome: Converged", "canary-coredns")
	mustContain(t, "status page", f.file("status/README.md"), "e2e", newTag)
	mustContain(t, "status", f.run(0, "status").out, "e2e", "as wanted", newTag)
	f.git(f.bare, "fsck", "--strict")

	head := f.head()
	f.run(0, "reconcile", "--detailed-exitcode")
	if f.head() != head {
		t.Error("the second pass committed something")
	}
	if again := observe(t); !maps.Equal(again.versions, after.versions) {
		t.Errorf("the second pass wrote to the cluster: %v, before %v", again.versions, after.versions)
	}
	f.run(0, "plan")
}

// A migration on real pods, DNS answering throughout, and the way back from our own backup.
func TestMigrateAndGoBack(t *testing.T) {
	reset(t, ancientTag, ancient)
	f := newFleet(t, lab.Kubeconfig)
	f.want(newTag)
	dns := probe(t)
	f.run(0, "reconcile")
	dns.stop(t)
	checkMigrated(t)

	f.want(ancientTag)
	mustContain(t, "plan back", f.run(10, "plan").out, "restore-coredns", "write-corefile")
	dns = probe(t)
	f.run(0, "reconcile")
	dns.stop(t)
	back := observe(t)
	if !strings.HasSuffix(back.image, ":"+ancientTag) || back.data["Corefile"] != ancient || back.mounted == "Corefile-backup" {
		t.Fatalf("after going back: %s", describe(back))
	}
}

func checkMigrated(t *testing.T) {
	t.Helper()
	s := observe(t)
	switch {
	case s.image != imagePrefix+newTag, s.mounted == "Corefile-backup":
		t.Fatalf("after the migration: %s", describe(s))
	case !strings.Contains(s.data["Corefile"], "max_concurrent 1000"):
		t.Fatalf("the Corefile was not migrated:\n%s", s.data["Corefile"])
	case s.data["Corefile-backup"] != ancient:
		t.Fatalf("the backup is not the original:\n%s", s.data["Corefile-backup"])
	}
}

// A target that can't become ready: its canary refuses it before anything of CoreDNS is touched.
func TestCanaryRefuses(t *testing.T) {
	reset(t, oldTag, commented)
	f := newFleet(t, lab.Kubeconfig)
	f.want(brokenTag)
	before := observe(t)
	r := f.run(22, "reconcile", "--detailed-exitcode")
	mustContain(t, "output", r.out, "stalled", "what to do")
	after := observe(t)
	if after.image != before.image || after.versions["deployment/coredns"] != before.versions["deployment/coredns"] || after.data["Corefile"] != commented {
		t.Fatalf("a refused target changed something: %s", describe(after))
	}
	mustContain(t, "status document", f.file("status/clusters/e2e.yaml"), "reason: DNSCanaryFailed", "remedy:")
	if left := leftovers(t); left != nil {
		t.Errorf("the canary left %v", left)
	}
	noLoop(t, f, after)
}

// With a canary that sees nothing, the Deployment's own pods fail: everything is put back and serves. The way back to
// what ran before that is still known.
func TestRestoreAfterBlindCanary(t *testing.T) {
	reset(t, oldTag, commented)
	f := newFleet(t, lab.Kubeconfig)
	f.want(newTag)
	f.run(0, "reconcile")
	f.want(canaryOnlyTag)
	kubeadm := kubeadmConfig(t)
	dns := probe(t)
	f.run(22, "reconcile", "--detailed-exitcode")
	dns.stop(t)
	after := observe(t)
	if after.image != imagePrefix+newTag || after.data["Corefile"] != commented || after.ready != 2 {
		t.Fatalf("not as before: %s", describe(after))
	}
	if got := kubeadmConfig(t); dnsSection(got) != dnsSection(kubeadm) {
		t.Errorf("kubeadm-config's dns section was not put back:\n%s", got)
	}
	mustContain(t, "status document", f.file("status/clusters/e2e.yaml"), "reason: DNSRolloutFailed", "remedy:", "outcome: Stalled", newTag+" runs as before")
	noLoop(t, f, after)

	f.want(oldTag)
	f.run(0, "reconcile")
	if got := observe(t).image; got != imagePrefix+oldTag {
		t.Errorf("after going back to what ran before: %s", got)
	}
}

// noLoop: the next pass remembers, tries nothing, writes nothing.
func noLoop(t *testing.T, f *fleet, before dnsState) {
	t.Helper()
	head := f.head()
	f.run(22, "reconcile", "--detailed-exitcode")
	if f.head() != head {
		t.Error("a stalled pass committed again")
	}
	if again := observe(t); !maps.Equal(again.versions, before.versions) {
		t.Errorf("a stalled pass wrote to the cluster: %v, before %v", again.versions, before.versions)
	}
}

func dnsSection(config string) string {
	_, after, _ := strings.Cut(config, "dns:")
	first, _, _ := strings.Cut(strings.TrimSpace(after), "\n")
	return first
}

// An unreachable cluster has its own status, and the JSON for programs says so.
func TestUnreachableCluster(t *testing.T) {
	reset(t, oldTag, commented)
	f := newFleet(t, lab.Kubeconfig)
	data, err := os.ReadFile(lab.Kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	f.secret([]byte(strings.ReplaceAll(string(data), ":6443", ":1")))
	f.want(newTag)
	r := f.run(30, "plan", "-o", "json")
	var got struct {
		Clusters []struct{ Cluster, Outcome string }
	}
	if err := json.Unmarshal([]byte(r.out), &got); err != nil || len(got.Clusters) != 1 || got.Clusters[0].Outcome != "unreachable" {
		t.Fatalf("%v: %s", err, r.out)
	}
	f.run(1, "reconcile")
	head := f.head()
	mustContain(t, "status document", f.file("status/clusters/e2e.yaml"), "reason: Unreachable")
	f.run(1, "reconcile")
	if f.head() != head {
		t.Error("an unreachable cluster makes a commit at every pass")
	}
}
