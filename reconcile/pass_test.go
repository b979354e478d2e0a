// SPDX-License-Identifier: Apache-2.0

package reconcile_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/theseus-gitops/theseus/reconcile"
	"github.com/theseus-gitops/theseus/reconcile/live"
	"github.com/theseus-gitops/theseus/reconcile/rollout"
	"github.com/theseus-gitops/theseus/reconcile/status"
)

func TestPassUpgradesAndThenTouchesNothing(t *testing.T) {
	t.Parallel()
	f := newFleet("a", "b")
	wantOutcomes(t, run(t, f), map[string]string{"a": "converged", "b": "converged"})
	for name, c := range f.clusters {
		if c.world.Image != repo+"v1.14.6" || c.held || c.world.Book.Roll != nil || c.world.Book.ConvergedSince.IsZero() {
			t.Errorf("%s: image %s, lock held %v, logbook %+v", name, c.world.Image, c.held, c.world.Book)
		}
	}
	doc := string(f.branch["status/clusters/a.yaml"])
	for _, want := range []string{"outcome: Converged", "canary-coredns", "coreDNS: v1.14.2", "coreDNS: v1.14.6"} {
		if !strings.Contains(doc, want) {
			t.Errorf("status lacks %q:\n%s", want, doc)
		}
	}
	commits, writes := len(f.commits), f.clusters["a"].writes
	f.sleep(3600e9)
	wantOutcomes(t, run(t, f), map[string]string{"a": "converged", "b": "converged"})
	if len(f.commits) != commits || f.clusters["a"].writes != writes {
		t.Errorf("a converged pass made %d commits and %d writes", len(f.commits)-commits, f.clusters["a"].writes-writes)
	}
}

func TestRollIsAnnouncedBeforeItBegins(t *testing.T) {
	t.Parallel()
	f := newFleet("a")
	f.refuse = true
	r := run(t, f)
	wantOutcomes(t, r, map[string]string{"a": "transient"})
	if got := f.clusters["a"].world.Image; got != repo+"v1.14.2" || f.clusters["a"].bookVersion != 0 {
		t.Errorf("a roll whose start could not be committed was begun: image %s", got)
	}
	if !errors.Is(r.PublishError, reconcile.ErrPushRefused) {
		t.Errorf("PublishError = %v, want the refusal", r.PublishError)
	}
}

func TestRefusedPushInTheMiddleDoesNotStopTheRoll(t *testing.T) {
	t.Parallel()
	f := newFleet("a")
	f.stopAt = "canary-coredns"
	wantOutcomes(t, run(t, f), map[string]string{"a": "changes"})
	f.stop, f.stopAt, f.refuse = make(chan struct{}), "", true
	wantOutcomes(t, run(t, f), map[string]string{"a": "converged"})
	f.refuse = false
	wantOutcomes(t, run(t, f), map[string]string{"a": "converged"})
	if doc := string(f.branch["status/clusters/a.yaml"]); !strings.Contains(doc, "status: \"True\"") {
		t.Errorf("the next pass did not report what happened:\n%s", doc)
	}
}

func TestOneClusterDoesNotHoldUpOthers(t *testing.T) {
	t.Parallel()
	f := newFleet("broken", "gone", "good", "locked", "nosecret")
	f.specs["broken.yaml"] = strings.Replace(f.specs["broken.yaml"], "baseImage", "baseImages", 1)
	f.clusters["gone"].unreachable = true
	f.clusters["locked"].holder = "other-pod"
	delete(f.clusters, "nosecret")
	wantOutcomes(t, run(t, f), map[string]string{"broken": "invalid", "gone": "unreachable", "good": "converged", "locked": "locked", "nosecret": "transient"})
	commits := len(f.commits)
	run(t, f)
	if len(f.commits) != commits {
		t.Errorf("the second pass committed again: %v", f.commits[commits:])
	}
}

func TestStopEndsAtAStepBoundary(t *testing.T) {
	t.Parallel()
	f := newFleet("a")
	f.stopAt = "sync-dns-config"
	wantOutcomes(t, run(t, f), map[string]string{"a": "changes"})
	c := f.clusters["a"]
	if c.world.Image != repo+"v1.14.2" || c.world.Book.Roll == nil || c.held {
		t.Errorf("image %s, roll %v, lock held %v: want the step finished, no other begun, the lock released", c.world.Image, c.world.Book.Roll, c.held)
	}
	if doc := string(f.branch["status/clusters/a.yaml"]); !strings.Contains(doc, "reason: Rolling") {
		t.Errorf("status was not committed:\n%s", doc)
	}
	f.stop, f.stopAt = make(chan struct{}), ""
	wantOutcomes(t, run(t, f), map[string]string{"a": "converged"})
}

func TestFailedTargetIsRememberedAndUndone(t *testing.T) {
	t.Parallel()
	f := newFleet("a")
	w := f.clusters["a"].world
	w.BadAnswer[repo+"v1.14.6"] = true
	wantOutcomes(t, run(t, f), map[string]string{"a": "stalled"})
	if w.Image != repo+"v1.14.2" || w.Book.FailedTarget == nil || w.Book.Roll != nil {
		t.Fatalf("image %s, logbook %+v: want everything put back, the failure remembered, the roll over", w.Image, w.Book)
	}
	doc := string(f.branch["status/clusters/a.yaml"])
	for _, want := range []string{"reason: DNSVerifyFailed", "outcome: Stalled", "remedy:"} {
		if !strings.Contains(doc, want) {
			t.Errorf("status lacks %q:\n%s", want, doc)
		}
	}
	commits, writes := len(f.commits), f.clusters["a"].writes
	wantOutcomes(t, run(t, f), map[string]string{"a": "stalled"})
	if len(f.commits) != commits || f.clusters["a"].writes != writes {
		t.Error("the next pass loops: it wrote something")
	}
	w.BadAnswer = map[string]bool{}
	f.specs["a.yaml"] += "  retry: again\n"
	wantOutcomes(t, run(t, f), map[string]string{"a": "converged"})
}

func TestPassingErrors(t *testing.T) {
	t.Parallel()
	t.Run("a conflict is decided again", func(t *testing.T) {
		t.Parallel()
		f := newFleet("a")
		f.clusters["a"].conflict["update-coredns"] = 3
		wantOutcomes(t, run(t, f), map[string]string{"a": "converged"})
	})
	t.Run("one error is tried again", func(t *testing.T) {
		t.Parallel()
		f := newFleet("a")
		f.clusters["a"].fail["update-coredns"] = 1
		wantOutcomes(t, run(t, f), map[string]string{"a": "converged"})
	})
	t.Run("an error that stays is left to the next pass", func(t *testing.T) {
		t.Parallel()
		f := newFleet("a")
		f.clusters["a"].fail["update-coredns"] = 5
		wantOutcomes(t, run(t, f), map[string]string{"a": "transient"})
		wantOutcomes(t, run(t, f), map[string]string{"a": "converged"})
	})
}

func TestForeignHolderStopsBeforeTheNextStep(t *testing.T) {
	t.Parallel()
	f := newFleet("a")
	c := f.clusters["a"]
	f.stopAt = "canary-coredns"
	run(t, f)
	f.stop, f.stopAt = make(chan struct{}), ""
	c.holder = "other-pod"
	writes := c.writes
	wantOutcomes(t, run(t, f), map[string]string{"a": "locked"})
	if c.writes != writes {
		t.Error("wrote without the lock")
	}
}

func TestPlanWritesNothing(t *testing.T) {
	t.Parallel()
	f := newFleet("a")
	r, err := f.pass().Plan(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	wantOutcomes(t, r, map[string]string{"a": "changes"})
	if len(r.Clusters[0].Plan.Steps) != 4 || f.clusters["a"].writes != 0 || len(f.commits) != 0 {
		t.Errorf("%d steps, %d writes, %d commits; want 4, 0, 0", len(r.Clusters[0].Plan.Steps), f.clusters["a"].writes, len(f.commits))
	}
}

func TestUnknownClusterIsNamed(t *testing.T) {
	t.Parallel()
	f := newFleet("a")
	p := f.pass()
	p.Only = []string{"b"}
	_, err := p.Run(t.Context())
	if !errors.Is(err, reconcile.ErrUnknownCluster) || !strings.Contains(err.Error(), "there are: a") {
		t.Errorf("error %v, want one that names the clusters there are", err)
	}
}

func TestMissingKnowledgeIsNoClusterWithoutDNS(t *testing.T) {
	t.Parallel()
	f := newFleet("a")
	f.clusters["a"].world.Data = map[string]string{}
	r := run(t, f)
	wantOutcomes(t, r, map[string]string{"a": "stalled"})
	if got := r.Clusters[0].Report.Failure.Reason; got != "CorefileMissing" {
		t.Errorf("reason %s, want CorefileMissing (key %s is gone)", got, live.CorefileKey)
	}
}

// A run that slept while another took over must not write: the logbook carries the newer run's fence.
func TestNewerFenceStopsASleeper(t *testing.T) {
	t.Parallel()
	f := newFleet("a")
	c := f.clusters["a"]
	c.onExecute = func(step string) {
		if step == "canary-coredns" {
			c.world.Book.Fence = 99
		}
	}
	wantOutcomes(t, run(t, f), map[string]string{"a": "locked"})
	if got := c.world.KubeadmDNS.ImageTag; got != "" {
		t.Errorf("the sleeper went on and wrote tag %s to kubeadm-config", got)
	}
}

// Two specs with one cluster's kubeconfig: the first roll makes the cluster its own, the other spec changes nothing.
func TestTwoSpecsForOneCluster(t *testing.T) {
	t.Parallel()
	f := newFleet("a", "b")
	f.specs["b.yaml"] = clusterDoc("b", "v1.14.7")
	f.clusters["b"] = f.clusters["a"]
	for range 3 {
		wantOutcomes(t, run(t, f), map[string]string{"a": "converged", "b": "stalled"})
	}
	if got := f.clusters["a"].world.Image; got != repo+"v1.14.6" {
		t.Errorf("image %s: the second spec's tag was taken", got)
	}
	if doc := string(f.branch["status/clusters/b.yaml"]); !strings.Contains(doc, "ClusterOwnedElsewhere") {
		t.Errorf("status of the second spec:\n%s", doc)
	}
}

// Whatever somebody put where a document belongs, the fleet's roll and its report go on.
func TestWhatStandsInTheWayOfStatusStopsNothing(t *testing.T) {
	t.Parallel()
	f := newFleet("a", "b")
	f.odd = map[string]status.Thing{"status/clusters/a.yaml": status.Directory}
	f.branch["status/clusters/b.yaml"] = []byte("<<<<<<< ours\n")
	wantOutcomes(t, run(t, f), map[string]string{"a": "converged", "b": "converged"})
	if !strings.Contains(f.commits[0], "Replaced what was in the way:\n- status/clusters/a.yaml (a directory)\n") {
		t.Errorf("the commit does not say what it replaced:\n%s", f.commits[0])
	}
}

// A spec that was deleted leaves no "as wanted" behind; a folder that is not the fleet's deletes nobody's status.
func TestStatusOfClustersThatAreGone(t *testing.T) {
	t.Parallel()
	f := newFleet("a")
	run(t, f)
	delete(f.specs, "a.yaml")
	fleetFile := f.specs["fleet.yaml"]
	delete(f.specs, "fleet.yaml")
	f.specs["values.yaml"] = "replicas: 3\n"
	if r := run(t, f); len(r.Clusters) != 0 || !r.Problems.HasErrors() || r.OtherFiles != 1 {
		t.Errorf("%d clusters, %d other files, problems: %s", len(r.Clusters), r.OtherFiles, r.Problems)
	}
	if f.branch["status/clusters/a.yaml"] == nil {
		t.Fatal("without a fleet.yaml the cluster's status was removed")
	}
	f.specs["fleet.yaml"] = fleetFile
	run(t, f)
	if page := string(f.branch["status/README.md"]); f.branch["status/clusters/a.yaml"] != nil || strings.Contains(page, "as wanted") {
		t.Errorf("the cluster that is gone is still reported:\n%s", page)
	}
	commits := len(f.commits)
	run(t, f)
	if len(f.commits) != commits {
		t.Errorf("the next pass committed again: %v", f.commits[commits:])
	}
}

func TestAccessThatNeedsAPersonIsStalled(t *testing.T) {
	t.Parallel()
	f := newFleet("a")
	failure := &rollout.Failure{Reason: "AccessInvalid", Message: "secret a has no key kubeconfig", Remedy: "there are: config"}
	f.connectError = fmt.Errorf("access: %w", failure)
	for what, look := range map[string]func(*reconcile.Pass) (reconcile.Result, error){
		"plan": func(p *reconcile.Pass) (reconcile.Result, error) { return p.Plan(t.Context()) },
		"run":  func(p *reconcile.Pass) (reconcile.Result, error) { return p.Run(t.Context()) },
	} {
		r, err := look(f.pass())
		if err != nil {
			t.Fatal(err)
		}
		wantOutcomes(t, r, map[string]string{"a": "stalled"})
		if got := r.Clusters[0].Report; got.Failure == nil || *got.Failure != *failure || got.Why != failure.Message {
			t.Errorf("%s: why %q, failure %v; want those of the connector", what, got.Why, got.Failure)
		}
	}
	if doc := string(f.branch["status/clusters/a.yaml"]); !strings.Contains(doc, "reason: AccessInvalid") {
		t.Errorf("status lacks the reason:\n%s", doc)
	}
}

// Asked to end, a pass looks at no further cluster, and says nothing about those.
func TestStopLooksAtNoFurtherCluster(t *testing.T) {
	t.Parallel()
	f := newFleet("a", "b")
	f.stopAt = "canary-coredns"
	wantOutcomes(t, run(t, f), map[string]string{"a": "changes"})
	if f.branch["status/clusters/b.yaml"] != nil {
		t.Error("a cluster that was not looked at has a status")
	}
}

// A defect in one cluster's part reaches whoever called, after the other clusters' parts.
func TestPanicIsTheCallers(t *testing.T) {
	t.Parallel()
	f := newFleet("a", "b")
	f.clusters["a"].onExecute = func(string) { panic("a defect") }
	defer func() {
		cause := recover()
		if text, ok := cause.(string); !ok || !strings.Contains(text, "cluster a: a defect") {
			t.Errorf("recovered %v", cause)
		}
		if got := f.clusters["b"].world.Image; got != repo+"v1.14.6" {
			t.Errorf("the other cluster was not brought to its end: %s", got)
		}
	}()
	run(t, f)
	t.Error("no panic")
}

// A plan tells of a roll under way: what it shows is what is left of it.
func TestPlanTellsOfARollUnderWay(t *testing.T) {
	t.Parallel()
	f := newFleet("a")
	f.stopAt = "canary-coredns"
	run(t, f)
	r, err := f.pass().Plan(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if notices := strings.Join(r.Clusters[0].Report.Notices, "\n"); !strings.Contains(notices, "a roll that began at 2026-11-30T12:00:00Z is not over") {
		t.Errorf("notices %q", notices)
	}
}

// Another folder or another branch of the same repository is another set of specs. A branch may be planned for, as a
// proposal is, but not rolled.
func TestOneSpecPerClusterWithinARepository(t *testing.T) {
	t.Parallel()
	first := newFleet("a")
	first.branchName = "main"
	wantOutcomes(t, run(t, first), map[string]string{"a": "converged"})
	for name, c := range map[string]struct {
		branch, path, cluster string
		planned               string
	}{
		"another folder": {"main", "prod", "b", "stalled"},
		"another branch": {"proposal", "", "a", "changes"},
	} {
		f := newFleet(c.cluster)
		f.branchName, f.path = c.branch, c.path
		f.specs[c.cluster+".yaml"] = clusterDoc(c.cluster, "v1.14.8")
		f.clusters[c.cluster] = first.clusters["a"]
		planned, err := f.pass().Plan(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		wantOutcomes(t, planned, map[string]string{c.cluster: c.planned})
		if told := strings.Join(planned.Clusters[0].Report.Notices, ""); c.planned == "changes" && !strings.Contains(told, "upgraded from branch main") {
			t.Errorf("%s: notices %q", name, told)
		}
		wantOutcomes(t, run(t, f), map[string]string{c.cluster: "stalled"})
	}
	if got := first.clusters["a"].world.Image; got != repo+"v1.14.6" {
		t.Errorf("image %s", got)
	}
}
