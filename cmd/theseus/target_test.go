// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/theseus-gitops/theseus/executors/kube"
	"github.com/theseus-gitops/theseus/reconcile"
	"github.com/theseus-gitops/theseus/reconcile/rollout"
	"github.com/theseus-gitops/theseus/reconcile/spec"
)

// grant gives the account exactly these rights.
func (u *upgrade) grant(rights []kube.Right) {
	u.t.Helper()
	var whole, inSystem []rbacv1.PolicyRule
	for _, r := range rights {
		rule := rbacv1.PolicyRule{Verbs: []string{r.Verb}, APIGroups: []string{r.Group}, Resources: []string{r.Resource}}
		if r.Name != "" {
			rule.ResourceNames = []string{r.Name}
		}
		if r.Namespace == "" {
			whole = append(whole, rule)
		} else {
			inSystem = append(inSystem, rule)
		}
	}
	name := metav1.ObjectMeta{Name: "upgrader"}
	subjects := []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "User", Name: "upgrader"}}
	ref := func(kind string) rbacv1.RoleRef {
		return rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: kind, Name: "upgrader"}
	}
	rbac := u.admin.RbacV1()
	created(u, &rbacv1.ClusterRole{ObjectMeta: name, Rules: whole}, rbac.ClusterRoles().Create)
	created(u, &rbacv1.ClusterRoleBinding{ObjectMeta: name, Subjects: subjects, RoleRef: ref("ClusterRole")}, rbac.ClusterRoleBindings().Create)
	created(u, &rbacv1.Role{ObjectMeta: name, Rules: inSystem}, rbac.Roles(system).Create)
	created(u, &rbacv1.RoleBinding{ObjectMeta: name, Subjects: subjects, RoleRef: ref("Role")}, rbac.RoleBindings(system).Create)
}

// awaitMissing waits until exactly these rights are told to be missing: roles take effect a moment after they are written.
func (u *upgrade) awaitMissing(want ...kube.Right) {
	u.t.Helper()
	var got []kube.Right
	for deadline := time.Now().Add(20 * time.Second); time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
		var err error
		if got, err = u.client.MissingRights(u.t.Context()); err != nil {
			u.t.Fatal(err)
		}
		if slices.Equal(got, want) {
			return
		}
	}
	u.t.Fatalf("missing are %v, want %v", got, want)
}

func required() []kube.Right {
	return slices.DeleteFunc(kube.Rights(), func(r kube.Right) bool { return r.Need == kube.ForQuotes })
}

// The table is complete: with it, every write of an upgrade is allowed.
func TestRightsAreEnoughForAnUpgrade(t *testing.T) {
	u := newUpgrade(t)
	u.grant(required())
	u.awaitMissing()
	if err := u.run(); err != nil {
		t.Error(err)
	}
}

// And it has nothing that is not needed: without any one of its rights that one is told to be missing, and an upgrade fails.
func TestEachRightIsNeededAndAskedFor(t *testing.T) {
	for i, right := range required() {
		t.Run(right.String(), func(t *testing.T) {
			u := newUpgrade(t)
			u.grant(slices.Delete(required(), i, i+1))
			u.awaitMissing(right)
			err := u.run()
			if err == nil {
				t.Fatal("the upgrade works without it")
			}
			if !strings.Contains(err.Error(), "forbidden") && !strings.Contains(err.Error(), "not allowed") {
				t.Errorf("the upgrade fails for another reason: %v", err)
			}
		})
	}
}

// What a missing right would stop half way is not begun: the lock is the first write of all.
func TestLockWithoutRightsWritesNothing(t *testing.T) {
	u := newUpgrade(t)
	u.grant(slices.DeleteFunc(required(), func(r kube.Right) bool {
		return r.Resource == "pods/portforward" || r.Verb == "patch" && r.Resource == "deployments"
	}))
	const want = "nothing is changed, because the account lacks rights that an upgrade of CoreDNS needs: " +
		"patch deployments.apps coredns in kube-system (to change the image of CoreDNS); " +
		"create pods/portforward in kube-system (to ask the canary and the pods of CoreDNS)"
	var failure *rollout.Failure
	for deadline := time.Now().Add(20 * time.Second); time.Now().Before(deadline) && (failure == nil || failure.Message != want); {
		_, err := u.Lock(t.Context(), 0)
		if !errors.As(err, &failure) {
			t.Fatalf("got %v, want a failure", err)
		}
	}
	if failure.Message != want || failure.Reason != "RightsMissing" || !strings.Contains(failure.Remedy, "docs/rights.md") || !failure.Elsewhere {
		t.Errorf("got %+v\nwant RightsMissing, elsewhere, with a remedy and\n%s", failure, want)
	}
	_, err := u.admin.CoordinationV1().Leases(system).Get(t.Context(), "theseus", metav1.GetOptions{})
	if !apierrors.IsNotFound(err) {
		t.Errorf("the Lease was written: %v", err)
	}
}

// listener is a reconcile.Progress that hands on what it hears.
type listener func(reconcile.Event)

func (l listener) Event(e reconcile.Event) { l(e) }

func TestStepTellsWhatItWaitsFor(t *testing.T) {
	newUpgrade(t)
	file := filepath.Join(t.TempDir(), "kubeconfig")
	if err := os.WriteFile(file, server.Kubeconfig(t), 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	events := make(chan reconcile.Event, 10)
	c := connector{progress: listener(func(e reconcile.Event) { events <- e; cancel() })}
	to, err := c.Connect(ctx, spec.EffectiveCluster{Name: "seed-eu-1", Spec: spec.ClusterSpec{Access: spec.Access{Kubeconfig: &spec.Kubeconfig{Path: file}}}})
	if err != nil {
		t.Fatal(err)
	}
	have, err := to.Observer.Observe(ctx)
	if err != nil {
		t.Fatal(err)
	}
	act := acts()[1](*have.Kube)
	if err := to.Executor.Execute(ctx, rollout.Step{Act: act}); !errors.Is(err, context.Canceled) {
		t.Fatalf("got %v, want a canary that was cancelled while it waited", err)
	}
	want := reconcile.Event{Cluster: "seed-eu-1", Kind: reconcile.WaitBegun, Text: "canary: the scheduler has not looked at it"}
	if got := <-events; got.Cluster != want.Cluster || got.Kind != want.Kind || got.Text != want.Text {
		t.Errorf("got %+v, want %+v", got, want)
	}
}
