// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/theseus-gitops/theseus/executors/terraform"
	"github.com/theseus-gitops/theseus/reconcile/live"
	"github.com/theseus-gitops/theseus/reconcile/logbook"
	"github.com/theseus-gitops/theseus/reconcile/rollout"
	"github.com/theseus-gitops/theseus/reconcile/spec"
)

// openModule initialises the module that the spec names, from a commit's files as export writes them.
func openModule(ctx context.Context, cluster string, t spec.Terraform, secrets secretSource, export func(ctx context.Context, folder string) error) (*terraform.Module, error) {
	options, err := terraformOptions(ctx, cluster, t, secrets)
	if err != nil {
		return nil, err
	}
	options.Dir, options.Export = filepath.FromSlash(t.Dir), export
	return terraform.Open(ctx, options)
}

// machines are a cluster's machines behind what a roll asks of them. Terraform is slow, so the state is read once and after
// each change of ours; a plan is always made against the real state, and Terraform refuses to apply one that it outran.
type machines struct {
	open   func(ctx context.Context) (*terraform.Module, error)
	module *terraform.Module
	state  *terraform.State
	// idle is the state of which a plan was seen to change nothing.
	idle mark
	// kept is the destroy plan of a machine that was judged before its member went.
	kept *terraform.Plan
	// unlocked tells that no lock of a dead process can be left: there was none, and what was done since has worked.
	unlocked bool
	// interrupted tells that such a lock was broken.
	interrupted bool
}

// mark names one state.
type mark struct {
	lineage string
	serial  uint64
}

func markOf(s *terraform.State) mark { return mark{s.Lineage, s.Serial} }

// refresh forgets the state, so that the next look reads it again.
func (m *machines) refresh() { m.state = nil }

// close deletes the module's files.
func (m *machines) close() error {
	if m.module == nil {
		return nil
	}
	return m.module.Close()
}

// observe gives the machines as Terraform's state has them.
func (m *machines) observe(ctx context.Context) (*live.Machines, error) {
	if m.module == nil {
		module, err := m.open(ctx)
		if err != nil {
			return nil, moduleFailure(err)
		}
		m.module = module
	}
	if m.state == nil {
		state, err := m.module.State(ctx)
		if err != nil {
			return nil, moduleFailure(err)
		}
		m.state = state
	}
	out := liveMachines(m.state, m.idle == markOf(m.state))
	out.Interrupted = m.interrupted
	return out, nil
}

// holder is what is written down of this process before it takes a lock. The module was opened to observe.
func (m *machines) holder() logbook.LockHolder {
	h := m.module.Holder()
	if pod := ownPod(); pod.UID != "" {
		h.Pod, h.PodCluster = pod.Namespace+"/"+pod.Name+"/"+pod.UID, podCluster()
	}
	return h
}

// reclaim breaks the lock of an earlier process of ours that was killed, or of a Terraform of this one that was, before another is
// taken. As long as there is a lock that is not proved to be ours, it is looked at again before each step.
func (m *machines) reclaim(ctx context.Context, holders []logbook.LockHolder, tell func(string)) error {
	if m.unlocked {
		return nil
	}
	lock, err := m.module.Reclaim(ctx, holders, podGone)
	if err != nil {
		return moduleFailure(err)
	}
	m.unlocked = lock.Held == nil || lock.Broken
	if lock.Broken {
		m.interrupted = true
		m.refresh()
		tell(fmt.Sprintf("broke lock %s of Terraform's state: a run of ours (%s) took it at %s and was killed", lock.Held.ID, lock.Held.Who, lock.Held.Created.UTC().Format(time.RFC3339)))
		return fmt.Errorf("the lock of Terraform's state was of a killed run: %w", rollout.ErrConflict) // decided on what is seen now
	}
	return nil
}

// podCluster tells the cluster that this job runs in from others; empty outside of one.
func podCluster() string {
	config, err := rest.InClusterConfig()
	if err != nil {
		return ""
	}
	authority, err := os.ReadFile(config.CAFile)
	if err != nil {
		return ""
	}
	return fmt.Sprintf("sha256:%x", sha256.Sum256(authority))
}

// podGone asks the cluster that this job runs in. A pod of another cluster or namespace, or one that may not be read, is not
// proved gone.
func podGone(ctx context.Context, h logbook.LockHolder) bool {
	parts := strings.Split(h.Pod, "/")
	if len(parts) != 3 || parts[0] != ownPod().Namespace || h.PodCluster == "" || h.PodCluster != podCluster() {
		return false
	}
	config, err := rest.InClusterConfig()
	if err != nil {
		return false
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return false
	}
	found, err := client.CoreV1().Pods(parts[0]).Get(ctx, parts[1], metav1.GetOptions{})
	if err != nil {
		return apierrors.IsNotFound(err)
	}
	return string(found.UID) != parts[2] || podEnded(found.Status)
}

// podEnded reports whether nothing of a pod runs any more. The phase alone does not tell: it may be set for a pod whose node is lost.
func podEnded(s corev1.PodStatus) bool {
	runs := slices.ContainsFunc(s.ContainerStatuses, func(c corev1.ContainerStatus) bool { return c.State.Terminated == nil })
	return !runs && (s.Phase == corev1.PodSucceeded || s.Phase == corev1.PodFailed)
}

// liveMachines turns a state into values.
func liveMachines(s *terraform.State, idle bool) *live.Machines {
	out := &live.Machines{Endpoint: s.Output.Endpoint, ActsOnServing: s.Output.ActsOnServing, Idle: idle}
	for _, name := range slices.Sorted(maps.Keys(s.Registry)) {
		asked, host := s.Registry[name], s.Output.Machines[name]
		created, _ := time.Parse(time.RFC3339, asked.Created) // an unreadable one counts as very old
		out.All = append(out.All, live.Machine{
			Name: name, Role: asked.Role, Pool: asked.Pool, KubernetesVersion: asked.KubernetesVersion, Image: asked.Image,
			FailureDomain: asked.FailureDomain, Created: created, Serving: asked.Serving, Values: asked.Values,
			Missing: s.Missing(name), Broken: s.Broken(name),
			Hostname: host.Hostname, Addresses: host.Addresses, ProviderID: host.ProviderID,
		})
	}
	return out
}

// check makes sure that the module plans no change of its own.
func (m *machines) check(ctx context.Context) error {
	if _, err := m.module.Idle(ctx, m.state.Registry); err != nil {
		return m.failed(err)
	}
	m.idle = markOf(m.state)
	return nil
}

// add has Terraform make a machine.
func (m *machines) add(ctx context.Context, wanted live.Machine, userData terraform.Secret) error {
	return m.step(ctx, terraform.Step{
		Kind: terraform.Add, Machine: wanted.Name, UserData: userData,
		New: terraform.Machine{
			Role: wanted.Role, Pool: wanted.Pool, KubernetesVersion: wanted.KubernetesVersion, Image: wanted.Image,
			FailureDomain: wanted.FailureDomain, Created: wanted.Created.Format(time.RFC3339), Serving: wanted.Serving, Values: valuesOf(wanted.Values),
		},
	})
}

// valuesOf is never null in Terraform: a null differs from an empty map there.
func valuesOf(values map[string]string) map[string]string {
	if values == nil {
		return map[string]string{}
	}
	return values
}

// change has Terraform take a machine out of the endpoint, destroy it, or drop its entry.
func (m *machines) change(ctx context.Context, kind terraform.Kind, machine string) error {
	return m.step(ctx, terraform.Step{Kind: kind, Machine: machine})
}

// rehearseDestroy plans a destruction and judges the plan, before something happens that no way leads back from.
func (m *machines) rehearseDestroy(ctx context.Context, machine string) error {
	plan, err := m.module.Plan(ctx, terraform.Step{Kind: terraform.Destroy, Machine: machine, Have: m.state.Registry})
	if err != nil {
		return m.failed(err)
	}
	if len(plan.Offences) > 0 {
		return errors.Join(moduleFailure(&terraform.RefusedError{Step: plan.Step, Offences: plan.Offences}), plan.Discard())
	}
	m.kept = plan
	return nil
}

// step plans, judges and applies one change of the map of machines, and takes over the state that it leaves.
func (m *machines) step(ctx context.Context, s terraform.Step) error {
	s.Have = m.state.Registry
	plan := m.kept
	m.kept = nil
	if plan == nil || plan.Step.Kind != s.Kind || plan.Step.Machine != s.Machine {
		made, err := m.module.Plan(ctx, s)
		if err != nil {
			return m.failed(err)
		}
		plan = made
	}
	idle := m.idle == markOf(m.state)
	state, err := m.module.Apply(ctx, plan)
	m.state = state // nil after an error that hides it: the next look reads it
	if state != nil && idle && err == nil {
		m.idle = markOf(state)
	}
	if err != nil {
		return m.failed(err)
	}
	return nil
}

// failed is the failure of a call that takes the state's lock: a Terraform that was killed leaves it.
func (m *machines) failed(err error) error {
	m.unlocked = false
	return moduleFailure(err)
}

// moduleFailure makes stalls of what only a person can change in a module or its state.
func moduleFailure(err error) error {
	var unfit *terraform.UnfitError
	var refused *terraform.RefusedError
	switch {
	case errors.As(err, &refused):
		return fmt.Errorf("%w", &rollout.Failure{
			Reason: "TerraformPlanRefused", Message: refused.Error(), Elsewhere: true,
			Remedy: "run `theseus module check` on the module with --plan; plan it yourself with the map that `theseus machines` prints, and apply or remove what is not of the machines",
		})
	case errors.As(err, &unfit):
		return fmt.Errorf("%w", &rollout.Failure{Reason: "TerraformModuleUnfit", Message: unfit.Problem, Remedy: unfit.Remedy, Elsewhere: true})
	}
	return err
}
