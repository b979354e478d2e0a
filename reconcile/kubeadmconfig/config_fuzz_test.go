// SPDX-License-Identifier: Apache-2.0

package kubeadmconfig_test

import (
	"fmt"
	"reflect"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/theseus-gitops/theseus/reconcile/kubeadmconfig"
	"github.com/theseus-gitops/theseus/reconcile/skew"
)

// holds checks an edit that was accepted: it reads as wanted, changes nothing else, and is stable.
// It returns the edited text, and whether the edit was accepted.
func holds(t *testing.T, text string, to kubeadmconfig.Target) (string, bool) {
	t.Helper()
	got, _, err := kubeadmconfig.EditConfig(text, to)
	if err != nil {
		return "", false
	}
	var before, after map[string]any
	if err := yaml.Unmarshal([]byte(text), &before); err != nil {
		return got, true // kubeadm's library takes more than this one
	}
	if err := yaml.Unmarshal([]byte(got), &after); err != nil {
		t.Fatalf("the result is not YAML: %v\n%s", err, got)
	}
	want(before, to)
	drop(before)
	drop(after)
	if !reflect.DeepEqual(before, after) {
		t.Errorf("want %v\ngot %v\nfrom:\n%s\n→\n%s", before, after, text, got)
	}
	if again, _, err := kubeadmconfig.EditConfig(got, to); err != nil || again != got {
		t.Errorf("not stable: %v\n%s\n→\n%s", err, got, again)
	}
	return got, true
}

func section(parent map[string]any, key string) map[string]any {
	out, _ := parent[key].(map[string]any)
	if out == nil {
		out = map[string]any{}
		parent[key] = out
	}
	return out
}

// want changes the values of a document as EditConfig should change its text.
func want(doc map[string]any, to kubeadmconfig.Target) {
	doc["kubernetesVersion"] = to.Kubernetes.String()
	if to.ImageRepository != "" {
		doc["imageRepository"] = to.ImageRepository
	}
	local, gates := section(section(doc, "etcd"), "local"), section(doc, "featureGates")
	if to.EtcdImageTag != "" {
		local["imageTag"] = to.EtcdImageTag
	}
	ecdsa, set := gates["PublicKeysECDSA"].(bool)
	if set && to.Kubernetes.Minor >= 37 && (ecdsa || doc["encryptionAlgorithm"] != nil) {
		doc["encryptionAlgorithm"] = map[bool]string{true: "ECDSA-P256", false: "RSA-2048"}[ecdsa]
	}
	for name, value := range gates {
		on, _ := value.(bool)
		if skew.KubeadmGate(to.Kubernetes, name, on) != skew.GateTaken {
			delete(gates, name)
		}
	}
	if _, set := gates["ControlPlaneKubeletLocalMode"].(bool); !set && to.Kubernetes.Minor <= 32 {
		gates["ControlPlaneKubeletLocalMode"] = true
	}
	if doc["apiVersion"] != "kubeadm.k8s.io/v1beta3" || to.Kubernetes.Minor < 37 {
		return
	}
	doc["apiVersion"] = "kubeadm.k8s.io/v1beta4"
	delete(section(doc, "apiServer"), "timeoutForControlPlane")
}

// drop removes what says nothing, and turns lists of arguments back into maps.
func drop(doc map[string]any) {
	for _, parent := range []map[string]any{section(doc, "apiServer"), section(doc, "controllerManager"), section(doc, "scheduler"), section(section(doc, "etcd"), "local")} {
		args, _ := parent["extraArgs"].([]any)
		if args == nil {
			continue
		}
		back := map[string]any{}
		for _, arg := range args {
			if pair, ok := arg.(map[string]any); ok {
				back[fmt.Sprint(pair["name"])] = pair["value"]
			}
		}
		parent["extraArgs"] = back
	}
	for _, key := range []string{"featureGates", "etcd", "apiServer", "controllerManager", "scheduler"} {
		empty(doc, key)
	}
}

func empty(doc map[string]any, key string) {
	inner, isMap := doc[key].(map[string]any)
	if isMap && key == "etcd" {
		empty(inner, "local")
	}
	if isMap && len(inner) == 0 {
		delete(doc, key)
	}
}

// TestEditConfigOnAnyLayout changes documents line by line in ways in which people write them.
func TestEditConfigOnAnyLayout(t *testing.T) {
	changes := map[string]func(line string) string{
		"gone":            func(string) string { return "" },
		"twice":           func(line string) string { return line + line },
		"commented out":   func(line string) string { return "# " + line },
		"with comment":    func(line string) string { return strings.TrimSuffix(line, "\n") + " # why\n" },
		"comment above":   func(line string) string { return "# above\n" + line },
		"comment below":   func(line string) string { return line + "    # below\n" },
		"blank line":      func(line string) string { return "\n" + line },
		"deeper":          func(line string) string { return "  " + line },
		"quoted key":      func(line string) string { return quoteKey(line) },
		"value below":     func(line string) string { return strings.Replace(line, ": ", ":\n          ", 1) },
		"folded":          func(line string) string { return strings.Replace(line, ": ", ": >-\n          ", 1) },
		"key with a tag":  func(line string) string { return strings.Replace(line, ": ", ": !!str ", 1) },
		"with an anchor":  func(line string) string { return strings.Replace(line, ": ", ": &a ", 1) },
		"CR at its end":   func(line string) string { return strings.TrimSuffix(line, "\n") + "\r\n" },
		"nothing follows": func(line string) string { return strings.TrimSuffix(line, "\n") + " {}\n" },
	}
	gates := strings.Replace(stored, "futureField:", "featureGates:\n  EtcdLearnerMode: true\n  PublicKeysECDSA: true\n  RootlessControlPlane: true\nfutureField:", 1)
	accepted := 0
	for _, c := range []struct {
		text  string
		minor uint64
	}{{gates, 37}, {old, 37}} {
		to := kubeadmconfig.Target{Kubernetes: skew.Version{Major: 1, Minor: c.minor}, EtcdImageTag: "3.7.3-0", ImageRepository: "r.example.com"}
		lines := strings.SplitAfter(c.text, "\n")
		for i, line := range lines {
			for name, change := range changes {
				changed := strings.Join(lines[:i], "") + change(line) + strings.Join(lines[i+1:], "")
				if got, ok := holds(t, changed, to); ok {
					accepted++
					keepsComments(t, changed, got)
				}
				if t.Failed() {
					t.Fatalf("line %d, %s, target 1.%d", i+1, name, c.minor)
				}
			}
		}
	}
	if accepted < 600 {
		t.Errorf("only %d texts were accepted", accepted)
	}
}

// keepsComments compares the comments before and after; that of a line that goes may go with it.
func keepsComments(t *testing.T, text, got string) {
	t.Helper()
	for line := range strings.Lines(text) {
		before, comment, ok := strings.Cut(line, "# ")
		goes := strings.Contains(before, "timeoutForControlPlane") || strings.Contains(before, "EtcdLearnerMode") || strings.Contains(before, "PublicKeysECDSA")
		if ok && !goes && !strings.Contains(got, "# "+strings.TrimRight(comment, "\r\n")) {
			t.Errorf("comment %q is lost:\n%s\n→\n%s", comment, text, got)
		}
	}
}

func quoteKey(line string) string {
	key, rest, ok := strings.Cut(line, ":")
	name := strings.TrimLeft(key, " ")
	if !ok || strings.ContainsAny(name, "#- ") {
		return line
	}
	return key[:len(key)-len(name)] + `"` + name + `":` + rest
}

func FuzzEditConfig(f *testing.F) {
	f.Add(stored, uint8(37), "3.7.3-0", "r.example.com")
	f.Add(old, uint8(37), "3.7.3-0", "")
	f.Add(old, uint8(31), "on", "1.10")
	f.Add(strings.Replace(old, "extraArgs:\n    # who", "extraArgs: # a\n\n  # b\n    # who", 1), uint8(38), "", "")
	f.Fuzz(func(t *testing.T, text string, minor uint8, tag, repository string) {
		holds(t, text, kubeadmconfig.Target{Kubernetes: skew.Version{Major: 1, Minor: uint64(minor)}, EtcdImageTag: tag, ImageRepository: repository})
	})
}
