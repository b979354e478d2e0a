// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/theseus-gitops/theseus/reconcile/live"
	"github.com/theseus-gitops/theseus/reconcile/rollout"
)

const (
	// drainRound is how long one round of a drain waits for pods to end.
	drainRound = 20 * time.Second
	// evictAgain is when a refused eviction is asked for again, unless the server names a time; evictPatience is the longest
	// that the server's word is taken for.
	evictAgain, evictPatience = 4 * time.Second, 15 * time.Second
	// The node's pods are looked at again after drainLook, then less and less often, up to drainLookMost.
	drainLook, drainLookMost = 250 * time.Millisecond, time.Second
)

// Drain is one round: it evicts each pod of the act that is still on the node, a few at once, tries again those that are
// refused, and waits about 20 s for them to end; a later round goes on. That pods are left is no error: the next look tells.
// tell may be nil; it hears what changes. A node that is gone, or no longer cordoned, is rollout.ErrConflict; other errors are
// those of Observe.
func (c *Client) Drain(ctx context.Context, act rollout.Drain, tell func(text string)) error {
	if tell == nil {
		tell = func(string) {}
	}
	node, err := c.cordoned(ctx, act.Node)
	if err != nil {
		return err
	}
	d := drain{client: c, node: act.Node, wanted: map[string]bool{}, refused: map[string]refusal{}, tell: tell}
	if !node.Ready || unreachable(node) {
		tell(fmt.Sprintf("drain of %s: its kubelet is silent, so pods that are evicted can't end before its machine is gone and its Node deleted", act.Node))
	}
	for _, p := range act.Pods {
		d.wanted[p.String()] = true
	}
	return d.round(ctx)
}

// cordoned is the node, if it is still closed to new pods: otherwise what is evicted may come back to it.
func (c *Client) cordoned(ctx context.Context, name string) (live.Node, error) {
	var node *corev1.Node
	if err := named(c, operation{"get", "", "nodes", "", name}, &node, c.kube.CoreV1().Nodes().Get)(ctx); err != nil {
		return live.Node{}, err
	}
	switch {
	case node == nil:
		return live.Node{}, fmt.Errorf("node %s is gone: %w", name, rollout.ErrConflict)
	case !node.Spec.Unschedulable:
		return live.Node{}, fmt.Errorf("node %s was uncordoned by somebody: %w", name, rollout.ErrConflict)
	}
	return nodesOf([]corev1.Node{*node})[0], nil
}

// drain is a round under way.
type drain struct {
	client  *Client
	node    string
	wanted  map[string]bool
	refused map[string]refusal
	tell    func(string)
	told    string
}

// refusal is why a pod was not evicted, and when to ask again.
type refusal struct {
	why   string
	again time.Time
}

func (d *drain) round(ctx context.Context) error {
	end := time.Now().Add(d.client.round)
	for look := drainLook; ; look = min(look*3/2, drainLookMost) {
		left, err := d.left(ctx)
		if err != nil {
			return err
		}
		now := time.Now()
		if err := d.evict(ctx, left, now); err != nil {
			return err
		}
		d.report(left)
		if len(left) == 0 || now.Add(look).After(end) {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("drain of node %s: %w", d.node, ctx.Err())
		case <-time.After(look):
		}
	}
}

// left are the wanted pods that are still on the node.
func (d *drain) left(ctx context.Context) ([]corev1.Pod, error) {
	var pods []corev1.Pod
	if err := d.client.podsOn(d.node, &pods)(ctx); err != nil {
		return nil, err
	}
	return slices.DeleteFunc(pods, func(p corev1.Pod) bool { return !d.wanted[podName(p)] || !leavesByDrain(p) }), nil
}

// evict asks for the eviction of those pods that nobody has deleted yet and whose turn it is. Rights that lack, and a server
// that can't be reached, end the round.
func (d *drain) evict(ctx context.Context, left []corev1.Pod, now time.Time) error {
	var asked []corev1.Pod
	for _, p := range left {
		if p.DeletionTimestamp == nil && !d.refused[podName(p)].again.After(now) {
			asked = append(asked, p)
		}
	}
	answers := make([]eviction, len(asked))
	var questions []question
	for i, p := range asked {
		questions = append(questions, func(ctx context.Context) error {
			var err error
			answers[i], err = d.client.evict(ctx, p)
			return err
		})
	}
	if err := d.client.together(ctx, questions); err != nil {
		return fmt.Errorf("drain of node %s: %w", d.node, err)
	}
	for i, p := range asked {
		if answers[i].refused == "" {
			delete(d.refused, podName(p))
			continue
		}
		after := evictAgain
		if answers[i].after > 0 {
			after = min(answers[i].after, evictPatience)
		}
		d.refused[podName(p)] = refusal{answers[i].refused, now.Add(after)}
	}
	return nil
}

// report tells the state when it is another than before: "2 gone; waiting for shop/api to end; blocked: shop/db: …".
func (d *drain) report(left []corev1.Pod) {
	var ending, blocked []string
	for _, p := range left {
		name := podName(p)
		if r, ok := d.refused[name]; ok && p.DeletionTimestamp == nil {
			blocked = append(blocked, name+": "+r.why)
		} else {
			ending = append(ending, name)
		}
	}
	slices.Sort(ending)
	slices.Sort(blocked)
	parts := []string{fmt.Sprintf("%d gone", len(d.wanted)-len(left))}
	if len(ending) > 0 {
		parts = append(parts, "waiting for "+shortList(ending)+" to end")
	}
	if len(blocked) > 0 {
		parts = append(parts, "blocked: "+shortList(blocked))
	}
	if text := "drain of " + d.node + ": " + strings.Join(parts, "; "); text != d.told {
		d.told = text
		d.tell(text)
	}
}

func shortList(names []string) string {
	const some = 3
	if len(names) > some {
		return strings.Join(names[:some], ", ") + fmt.Sprintf(" and %d more", len(names)-some)
	}
	return strings.Join(names, ", ")
}

func podName(p corev1.Pod) string { return p.Namespace + "/" + p.Name }
