// SPDX-License-Identifier: Apache-2.0

package spec_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/theseus-gitops/theseus/reconcile/spec"
)

// parseOne reads a cluster with more lines in its spec and returns it, if good, and its errors.
func parseOne(text string) (spec.ClusterSpec, string) {
	repo, problems := spec.Parse(withFleet(file("a.yaml", plain+text)))
	var errs []string
	for _, p := range problems {
		if p.Severity == spec.Error {
			errs = append(errs, p.Message)
		}
	}
	if len(repo.Clusters) == 1 {
		return repo.Clusters[0].Spec, ""
	}
	return spec.ClusterSpec{}, strings.Join(errs, "\n")
}

func TestDurations(t *testing.T) {
	for text, want := range map[string]time.Duration{
		"90s": 90 * time.Second, "1h30m": 90 * time.Minute, "1.5h": 90 * time.Minute, "14d": 14 * 24 * time.Hour, "1d12h": 36 * time.Hour,
		"12h1d": 36 * time.Hour, "0.5d": 12 * time.Hour, "1d1d": 48 * time.Hour, "\"2m\"": 2 * time.Minute, "250ms": 250 * time.Millisecond,
		"106751d": 106751 * 24 * time.Hour,
	} {
		got, errs := parseOne("  controlPlane: {maxMachineAge: " + text + "}\n")
		if errs != "" || got.ControlPlane.MaxMachineAge.Std() != want {
			t.Errorf("%s: got %+v, want %s; %s", text, got.ControlPlane, want, errs)
		}
	}
	for _, text := range []string{"1", "d", "1w", "1 d", "-1d", "+1d", "1d-1h", "1e3s", "106752d", "106751d25h", "99999999999999999999h", ".5d", "1.d", "0", "[]"} {
		if _, errs := parseOne("  controlPlane: {maxMachineAge: " + text + "}\n"); !strings.Contains(errs, "spec.controlPlane.maxMachineAge") {
			t.Errorf("%s: accepted; %s", text, errs)
		}
	}
	if got, errs := parseOne("  controlPlane: {rollout: {stableFor: 0}}\n"); errs != "" || got.ControlPlane.Rollout.StableFor != 0 {
		t.Errorf("stableFor 0: %s", errs)
	}
}

func TestDefaults(t *testing.T) {
	s, errs := parseOne("  baseImage: img-1\n  controlPlane: {replicas: 3}\n  workers: [{name: a, kind: terraform, replicas: 2}]\n  terraform: {dir: infra}\n")
	if errs != "" {
		t.Fatal(errs)
	}
	cp, w := s.ControlPlane, s.Workers[0]
	for name, pair := range map[string][2]any{
		"rollout":         {cp.Rollout, spec.ControlPlaneRollout{MaxSurge: 1, StableFor: spec.Duration(time.Minute)}},
		"attempts":        {cp.Attempts, 2},
		"create":          {cp.Timeouts.Create.Std(), 20 * time.Minute},
		"join":            {cp.Timeouts.Join.Std(), 15 * time.Minute},
		"drain":           {w.Timeouts.Drain.Std(), 10 * time.Minute},
		"detach":          {w.Timeouts.Detach.Std(), 10 * time.Minute},
		"destroy":         {w.Timeouts.Destroy.Std(), 20 * time.Minute},
		"bindPort":        {cp.Join.BindPort, 6443},
		"kubeadmPath":     {cp.Join.KubeadmPath, "/usr/bin/kubeadm"},
		"taints":          {cp.Join.NodeRegistration.Taints == nil, true},
		"worker rollout":  {w.Rollout, spec.WorkerRollout{MaxSurge: spec.IntOrPercent{Value: 1}}},
		"worker replicas": {*w.Replicas, 2},
		"endpoint":        {s.Endpoint.Mode, "loadBalancer"},
		"binary":          {s.Terraform.Binary, "terraform"},
		"lockTimeout":     {s.Terraform.LockTimeout.Std(), 2 * time.Minute},
	} {
		if pair[0] != pair[1] {
			t.Errorf("%s: got %v, want %v", name, pair[0], pair[1])
		}
	}
	if s, _ := parseOne("  controlPlane: {join: {nodeRegistration: {taints: []}}}\n"); s.ControlPlane.Join.NodeRegistration.Taints == nil {
		t.Error("an empty list of taints became an absent one")
	}
}

func TestCoreDNSTags(t *testing.T) {
	for tag, good := range map[string]bool{
		"v1.14.6": true, "1.14.6": true, "v1.14.6-eksbuild.1": true, "v1.8.6_vmware.1_b2": true, "v1.14.6_build.1": true,
		"v1.14.6+build.1": false, "latest": false, "v1X6.2": false, "-v1.14.6": false, "v1.14.6@sha256:ab": false,
	} {
		if _, errs := parseOne("  coreDNS: {imageTag: \"" + tag + "\"}\n"); (errs == "") != good {
			t.Errorf("%s: good %t, errors: %s", tag, errs == "", errs)
		}
	}
	if _, errs := parseOne("  coreDNS: {imageTag: nightly, skipCorefileMigration: true}\n"); errs != "" {
		t.Errorf("without a migration any tag will do: %s", errs)
	}
}

func TestSelector(t *testing.T) {
	labels := map[string]string{"stage": "dev", "empty": ""}
	requirement := func(key, operator string, values ...string) spec.LabelSelector {
		return spec.LabelSelector{MatchExpressions: []spec.SelectorRequirement{{Key: key, Operator: operator, Values: values}}}
	}
	for i, c := range []struct {
		selector spec.LabelSelector
		want     bool
	}{
		{spec.LabelSelector{}, true},
		{spec.LabelSelector{MatchLabels: map[string]string{"stage": "dev"}}, true},
		{spec.LabelSelector{MatchLabels: map[string]string{"stage": "prod"}}, false},
		{spec.LabelSelector{MatchLabels: map[string]string{"empty": ""}}, true},
		{spec.LabelSelector{MatchLabels: map[string]string{"gone": ""}}, false},
		{requirement("stage", "In", "dev", "prod"), true},
		{requirement("stage", "In", "prod"), false},
		{requirement("gone", "In", ""), false},
		{requirement("stage", "NotIn", "dev"), false},
		{requirement("stage", "NotIn", "prod"), true},
		{requirement("gone", "NotIn", "dev"), true},
		{requirement("empty", "Exists"), true},
		{requirement("gone", "Exists"), false},
		{requirement("gone", "DoesNotExist"), true},
		{requirement("stage", "DoesNotExist"), false},
		{requirement("stage", "Equals", "dev"), false},
	} {
		if got := c.selector.Matches(labels); got != c.want {
			t.Errorf("%d: %+v: got %t", i, c.selector, got)
		}
	}
}

func TestWindows(t *testing.T) {
	window := func(w string) string {
		return "apiVersion: theseus.dev/v1alpha1\nkind: Fleet\nspec: {stages: [{name: a, selector: {}, windows: [" + w + "]}]}\n"
	}
	for text, good := range map[string]bool{
		"{allow: 0 9 * * MON-THU, duration: 6h}":                                   true,
		"{deny: \"*/5 0 29 2 ?\", duration: 1d, timeZone: America/New_York}":       true,
		"{allow: 0 9 31 2 *, duration: 6h}":                                        false,
		"{allow: 60 9 * * *, duration: 6h}":                                        false,
		"{allow: 0 0 9 * * *, duration: 6h}":                                       false,
		"{allow: TZ=, duration: 6h}":                                               false,
		"{allow: \"@every 1h\", duration: 6h}":                                     false,
		"{allow: 0 9 * * *, duration: 6h, timeZone: ../../etc/passwd}":             false,
		"{allow: 0 9 * * *, duration: 6h, timeZone: Local}":                        false,
		"{allow: 0-9223372036854775807/9223372036854775807 * * * *, duration: 6h}": false,
	} {
		repo, problems := spec.Parse([]spec.File{file(spec.FleetFile, window(text))})
		if (repo.Fleet != nil) != good {
			t.Errorf("%s: good %t\n%s", text, repo.Fleet != nil, problems)
		}
	}
}

func TestSeverityText(t *testing.T) {
	for _, want := range []spec.Severity{spec.Error, spec.Warning} {
		data, err := json.Marshal(want)
		var got spec.Severity
		if err != nil || json.Unmarshal(data, &got) != nil || got != want {
			t.Errorf("%s became %s, %v", want, got, err)
		}
	}
	if json.Unmarshal([]byte(`"fatal"`), new(spec.Severity)) == nil {
		t.Error("accepted a severity that does not exist")
	}
}

// TestMessageStaysOnOneLine: keys of a file appear in messages and must not steer a terminal.
func TestMessageStaysOnOneLine(t *testing.T) {
	_, errs := parseOne("  controlPlane: {values: {\"a\\nb\\e[31m\": 1}}\n")
	if strings.ContainsAny(errs, "\n\x1b") || !strings.Contains(errs, "so quote it") {
		t.Errorf("got %q", errs)
	}
}

func ExampleParse() {
	_, problems := spec.Parse([]spec.File{
		{Path: "fleet.yaml", Data: []byte("apiVersion: theseus.dev/v1alpha1\nkind: Fleet\nspec: {}\n")},
		{Path: "clusters/seed.yaml", Data: []byte("apiVersion: theseus.dev/v1alpha1\nkind: Cluster\nmetadata: {name: seed}\n" +
			"spec:\n  kubernetesVersion: v1.37.2\n  access: {inCluster: yes}\n")},
	})
	fmt.Print(problems)
	// Output:
	// clusters/seed.yaml:6:23: error: spec.access.inCluster: found the text "yes"; allowed: true or false
}
