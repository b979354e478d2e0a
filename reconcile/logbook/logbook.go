// SPDX-License-Identifier: Apache-2.0

// Package logbook holds the little about a cluster that can't be observed, as kept in ConfigMap kube-system/theseus.
// It does not read or write the ConfigMap (executors/kube does) and does not decide (rollout does).
// Start at Book; Parse and Format are its JSON form.
package logbook

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// Where the logbook lives in the target cluster.
const (
	Namespace = "kube-system"
	Name      = "theseus"
	Key       = "logbook.json"
	// Version is the only version of the format so far.
	Version = 1
)

// Book is the logbook's content. Fields that this version of Theseus does not know survive a rewrite.
type Book struct {
	// Owner is the spec that upgrades this cluster; the zero value before the first roll.
	Owner Owner `json:"owner,omitzero"`
	// Roll is the change under way; nil between rolls.
	Roll *Roll `json:"roll,omitempty"`
	// Originals are the texts of what the roll changed, as they were before it.
	Originals *Originals `json:"originals,omitempty"`
	// FailedTarget is a target that was given up. It holds until the spec changes, its retry text included.
	FailedTarget *FailedTarget `json:"failedTarget,omitempty"`
	// ConvergedSince is when the newest roll ended well; zero when none did yet.
	ConvergedSince time.Time `json:"convergedSince,omitzero"`
	// Serial is the highest serial number that a machine's name ever had; names are never used again.
	Serial uint64 `json:"serial,omitempty"`
	// Attempts counts the machines that failed, by target.
	Attempts map[string]int `json:"attempts,omitempty"`
	// Pending is the machine that is being added; nil when none is.
	Pending *Pending `json:"pending,omitempty"`
	// Leaving is the machine that is being removed; nil when none is.
	Leaving *Leaving `json:"leaving,omitempty"`
	// Members are the etcd members of machines that Theseus made or adopted, by machine name.
	Members map[string]Member `json:"members,omitempty"`
	// LockHolders are the processes that may hold the lock of Terraform's state, oldest first. One that was killed can't release
	// it, and only by this it is proved to be ours.
	LockHolders []LockHolder `json:"lockHolders,omitempty"`
	// Fence is the Lease's transition count under which the newest write was made.
	Fence int32 `json:"fence,omitempty"`

	unknown map[string]json.RawMessage
}

// Owner names the one spec that may change a cluster: two specs for one cluster would undo each other's work.
type Owner struct {
	// Repository is the fleet repository, spelled the same however its URL is.
	Repository string `json:"repository"`
	// Branch and Path are where in it the specs are.
	Branch string `json:"branch,omitempty"`
	Path   string `json:"path,omitempty"`
	// Cluster is the name of the spec.
	Cluster string `json:"cluster"`
}

// Place is the owner without the spec's name: one set of specs.
func (o Owner) Place() Owner {
	o.Cluster = ""
	return o
}

// String names the place for people.
func (o Owner) String() string {
	text := "the fleet repository " + o.Repository
	if o.Path != "" {
		text += ", folder " + o.Path
	}
	if o.Branch != "" {
		text += ", branch " + o.Branch
	}
	return text
}

// Known reports whether there is an owner.
func (o Owner) Known() bool { return o.Cluster != "" }

// LockHolder is a process that ran Terraform.
type LockHolder struct {
	// User and Host are what Terraform writes into a lock, as USER@HOST.
	User string `json:"user,omitempty"`
	Host string `json:"host"`
	// Machine tells hosts of one name apart, Boot two starts of one host, and Namespaces the containers on it.
	Machine    string `json:"machine,omitempty"`
	Boot       string `json:"boot,omitempty"`
	Namespaces string `json:"namespaces,omitempty"`
	// Folder is its private folder, which is locked as long as it, or a Terraform that it started, lives.
	Folder string `json:"folder,omitempty"`
	// Pod is the pod that it ran in, as NAMESPACE/NAME/UID; empty elsewhere. PodCluster is the fingerprint of the certificate
	// authority of the cluster that this pod is in.
	Pod        string `json:"pod,omitempty"`
	PodCluster string `json:"podCluster,omitempty"`
	// Since and Until are when it began the calls of Terraform of which one may have left the lock: no lock of its is older or newer.
	Since time.Time `json:"since"`
	Until time.Time `json:"until"`
}

// mostHolders is how many are remembered. The lock can only be of one of the newest.
const mostHolders = 10

// Held is the list of holders with this one as the newest; what it had of that process before is replaced.
func (b Book) Held(h LockHolder) []LockHolder {
	out := slices.DeleteFunc(slices.Clone(b.LockHolders), h.same)
	out = append(out, h)
	return out[max(0, len(out)-mostHolders):]
}

func (h LockHolder) same(other LockHolder) bool {
	h.Since, h.Until = other.Since, other.Until
	return h == other
}

// Roll is a change under way.
type Roll struct {
	ID       string    `json:"id"`
	Started  time.Time `json:"started"`
	Revision string    `json:"revision"`
	// From says what the cluster ran when the roll began.
	From Versions `json:"from"`
	// Prepared is the target for which everything that a join needs was put in place.
	Prepared string `json:"prepared,omitempty"`
	// Snapshot names the verified etcd snapshot that was taken for this roll.
	Snapshot string `json:"snapshot,omitempty"`
	// Steps are those that were done, as far as they were written down.
	Steps []TakenStep `json:"steps,omitempty"`
}

// TakenStep is a step, or a wait between two, that is over.
type TakenStep struct {
	Step    string  `json:"step"`
	Subject string  `json:"subject,omitempty"`
	Seconds float64 `json:"seconds"`
}

// Pending is a machine that was begun to be added. It is written before anything of it exists.
type Pending struct {
	Name   string `json:"name"`
	Serial uint64 `json:"serial"`
	// Target is what it was made for; when the spec wants another one meanwhile, it is given up.
	Target string    `json:"target"`
	Since  time.Time `json:"since"`
	// FailureDomain is where it goes, "" when none is asked for.
	FailureDomain string `json:"failureDomain,omitempty"`
	// Made is when Terraform had made it, Joined when it was first seen whole; zero before.
	Made   time.Time `json:"made,omitzero"`
	Joined time.Time `json:"joined,omitzero"`
	// GivenUp is why it is taken back, "" while it is wanted.
	GivenUp string `json:"givenUp,omitempty"`
	// Placeholder is the peer URL of the learner that keeps its member from coming back while it is taken back.
	Placeholder string `json:"placeholder,omitempty"`
}

// Leaving is a machine that was begun to be removed. It is written before the first act of the removal.
type Leaving struct {
	Name string `json:"name"`
	// Node and MemberID are its Node's name and its member's id in hexadecimal, "" when it has none.
	Node     string    `json:"node,omitempty"`
	MemberID string    `json:"memberID,omitempty"`
	Since    time.Time `json:"since"`
	// Draining is since when its pods are evicted, anew after each time that this took too long; Drained is when they were
	// gone, Left when its API server was stopped; zero before.
	Draining time.Time `json:"draining,omitzero"`
	Drained  time.Time `json:"drained,omitzero"`
	Left     time.Time `json:"left,omitzero"`
}

// Member is an etcd member as it was recorded.
type Member struct {
	ID       string   `json:"id"`
	PeerURLs []string `json:"peerURLs"`
}

// Versions names what a cluster runs or ran.
type Versions struct {
	KubernetesVersion string `json:"kubernetesVersion,omitempty"`
	BaseImage         string `json:"baseImage,omitempty"`
	CoreDNS           string `json:"coreDNS,omitempty"`
}

// Originals are whole texts kept so that they can be put back.
type Originals struct {
	KubeadmConfig string `json:"kubeadmConfig,omitempty"`
	KubeletConfig string `json:"kubeletConfig,omitempty"`
	KubeProxy     string `json:"kubeProxy,omitempty"`
}

// FailedTarget is a target that was tried and given up, and why.
type FailedTarget struct {
	// Target names it, "coredns registry.k8s.io/coredns/coredns:v1.14.6".
	Target string `json:"target"`
	// Revision is that of the spec that asked for it.
	Revision string    `json:"revision"`
	Since    time.Time `json:"since"`
	Reason   string    `json:"reason"`
	Message  string    `json:"message"`
	Remedy   string    `json:"remedy,omitempty"`
}

// Parse reads a logbook. It refuses a format newer than it knows, and what no Theseus ever wrote, because acting on half of
// it is worse than waiting.
func Parse(text string) (Book, error) {
	var head struct {
		Version int `json:"version"`
	}
	if err := json.Unmarshal([]byte(text), &head); err != nil {
		return Book{}, fmt.Errorf("logbook: %w", err)
	}
	if head.Version != Version {
		return Book{}, fmt.Errorf("logbook: format version %d; this Theseus knows version %d only: use the release that wrote it, or a newer one", head.Version, Version)
	}
	var b Book
	if err := json.Unmarshal([]byte(text), &b); err != nil {
		return Book{}, fmt.Errorf("logbook: %w", err)
	}
	if err := b.check(); err != nil {
		return Book{}, fmt.Errorf("logbook: %w", err)
	}
	if err := json.Unmarshal([]byte(text), &b.unknown); err != nil {
		return Book{}, fmt.Errorf("logbook: %w", err)
	}
	for _, k := range knownKeys() {
		delete(b.unknown, k)
	}
	return b, nil
}

// check refuses contents that only a hand or an accident can have made.
func (b Book) check() error {
	const most = 1 << 30 // far more than any Lease changes hands, and room to count on
	if b.Fence < 0 || b.Fence > most {
		return fmt.Errorf("fence is %d, and it is never below 0 nor above %d", b.Fence, most)
	}
	if b.Roll == nil {
		return nil
	}
	var missing []string
	for _, f := range []struct {
		name  string
		there bool
	}{
		{"id", b.Roll.ID != ""}, {"started", !b.Roll.Started.IsZero()}, {"revision", b.Roll.Revision != ""},
	} {
		if !f.there {
			missing = append(missing, f.name)
		}
	}
	if len(missing) > 0 {
		return fmt.Errorf("roll lacks %s", strings.Join(missing, ", "))
	}
	return nil
}

// Format writes the logbook as JSON with sorted keys, so that equal books are equal texts.
func (b Book) Format() (string, error) {
	own, err := json.Marshal(b)
	if err != nil {
		return "", fmt.Errorf("logbook: %w", err)
	}
	all := maps.Clone(b.unknown)
	if all == nil {
		all = map[string]json.RawMessage{}
	}
	if err := json.Unmarshal(own, &all); err != nil {
		return "", fmt.Errorf("logbook: %w", err)
	}
	all["version"] = json.RawMessage(fmt.Sprint(Version))
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(all); err != nil {
		return "", fmt.Errorf("logbook: %w", err)
	}
	return out.String(), nil
}

func knownKeys() []string {
	return []string{"version", "owner", "roll", "originals", "failedTarget", "convergedSince", "fence",
		"serial", "attempts", "pending", "leaving", "members", "lockHolders"}
}
