// SPDX-License-Identifier: Apache-2.0

package live_test

import (
	"testing"
	"time"

	"github.com/theseus-gitops/theseus/reconcile/live"
)

func TestManagerOf(t *testing.T) {
	t.Parallel()
	type m = map[string]string
	for name, c := range map[string]struct {
		labels, annotations m
		fields              []string
		want                string
	}{
		"kubeadm's own":          {m{"k8s-app": "kube-dns"}, nil, []string{"kubeadm", "kube-controller-manager", "kubectl-edit"}, ""},
		"Helm by label":          {m{"app.kubernetes.io/managed-by": "Helm"}, nil, nil, "Helm"},
		"Helm by annotation":     {nil, m{"meta.helm.sh/release-name": "coredns"}, nil, "Helm"},
		"Helm by field manager":  {nil, nil, []string{"helm"}, "Helm"},
		"Flux kustomization":     {m{"kustomize.toolkit.fluxcd.io/name": "dns"}, nil, nil, "Flux"},
		"Flux Helm release wins": {m{"app.kubernetes.io/managed-by": "Helm", "helm.toolkit.fluxcd.io/name": "dns"}, nil, nil, "Flux"},
		"Flux by field manager":  {nil, nil, []string{"kustomize-controller"}, "Flux"},
		"Argo CD by label":       {m{"argocd.argoproj.io/instance": "dns"}, nil, nil, "Argo CD"},
		"Argo CD by annotation":  {nil, m{"argocd.argoproj.io/tracking-id": "dns:apps/Deployment:kube-system/coredns"}, nil, "Argo CD"},
		"Argo CD by field":       {nil, nil, []string{"argocd-controller"}, "Argo CD"},
		"any other tool":         {m{"app.kubernetes.io/managed-by": "kapp"}, nil, nil, "kapp"},
		"kubeadm by label":       {m{"app.kubernetes.io/managed-by": "kubeadm"}, nil, nil, ""},
		"empty label":            {m{"app.kubernetes.io/managed-by": ""}, nil, nil, ""},
		"ourselves, as a writer": {nil, nil, []string{"theseus"}, ""},
	} {
		got := live.ManagerOf(c.labels, c.annotations, c.fields)
		if got.Name != c.want || got.Known() != (c.want != "") || got.Known() && got.Evidence == "" {
			t.Errorf("%s: %+v, want %q with evidence", name, got, c.want)
		}
	}
}

func TestReadsEndpointSlices(t *testing.T) {
	t.Parallel()
	rule := func(group, resource string, verbs ...string) live.PolicyRule {
		return live.PolicyRule{APIGroups: []string{group}, Resources: []string{resource}, Verbs: verbs}
	}
	const group, slices = "discovery.k8s.io", "endpointslices"
	for name, c := range map[string]struct {
		rules []live.PolicyRule
		want  bool
	}{
		"none":                  {nil, false},
		"list and watch":        {[]live.PolicyRule{rule(group, slices, "list", "watch")}, true},
		"in two rules":          {[]live.PolicyRule{rule(group, slices, "list"), rule(group, slices, "watch")}, true},
		"list alone":            {[]live.PolicyRule{rule(group, slices, "list")}, false},
		"of the core group":     {[]live.PolicyRule{rule("", slices, "list", "watch")}, false},
		"everything":            {[]live.PolicyRule{rule("*", "*", "*")}, true},
		"endpoints are no help": {[]live.PolicyRule{rule("", "endpoints", "list", "watch")}, false},
	} {
		if got := (live.DNSRole{Rules: c.rules}).ReadsEndpointSlices(); got != c.want {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}

func TestRolloutComplete(t *testing.T) {
	t.Parallel()
	done := live.Rollout{Generation: 3, ObservedGeneration: 3, Wanted: 2, Total: 2, Updated: 2}
	for name, c := range map[string]struct {
		change func(*live.Rollout)
		want   bool
	}{
		"all pods new and available":       {func(*live.Rollout) {}, true},
		"the controller has not looked":    {func(r *live.Rollout) { r.ObservedGeneration = 2 }, false},
		"one pod is old":                   {func(r *live.Rollout) { r.Updated = 1 }, false},
		"an old pod is still there":        {func(r *live.Rollout) { r.Total = 3 }, false},
		"one pod is unavailable":           {func(r *live.Rollout) { r.Unavailable = 1 }, false},
		"scaled to zero is complete":       {func(r *live.Rollout) { r.Wanted, r.Total, r.Updated = 0, 0, 0 }, true},
		"observed later than what we read": {func(r *live.Rollout) { r.ObservedGeneration = 4 }, true},
	} {
		r := done
		c.change(&r)
		if got := r.Complete(); got != c.want {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}

func TestVolumeKey(t *testing.T) {
	t.Parallel()
	item := func(key string) []live.VolumeItem { return []live.VolumeItem{{Key: key, Path: "Corefile"}} }
	for name, c := range map[string]struct {
		volume live.ConfigVolume
		want   string
	}{
		"no items show every key": {live.ConfigVolume{}, live.CorefileKey},
		"the Corefile":            {live.ConfigVolume{Items: item("Corefile")}, live.CorefileKey},
		"the backup":              {live.ConfigVolume{Items: item("Corefile-backup")}, live.CorefileBackupKey},
		"something else":          {live.ConfigVolume{Items: item("dns.conf")}, ""},
	} {
		if got := c.volume.Key(); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

func TestRunOpen(t *testing.T) {
	t.Parallel()
	var none *live.DNSRun
	if none.Open() {
		t.Error("no run is open")
	}
	if !(&live.DNSRun{}).Open() {
		t.Error("a run without a closing time is not open")
	}
	if (&live.DNSRun{Closed: time.Unix(1, 0)}).Open() {
		t.Error("a closed run is open")
	}
}
