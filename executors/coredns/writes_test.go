// SPDX-License-Identifier: Apache-2.0

package coredns_test

import (
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/theseus-gitops/theseus/reconcile/live"
	"github.com/theseus-gitops/theseus/reconcile/rollout"
)

func wantError(t *testing.T, err error, text string) {
	t.Helper()
	if err == nil || !strings.Contains(err.Error(), text) {
		t.Errorf("error is %v, want one with %q", err, text)
	}
}

func wantConflict(t *testing.T, err error) {
	t.Helper()
	if !errors.Is(err, rollout.ErrConflict) {
		t.Errorf("error is %v, want a conflict", err)
	}
}

func (w *world) role(rules []rbacv1.PolicyRule) *rbacv1.ClusterRole {
	w.t.Helper()
	role, err := w.client.RbacV1().ClusterRoles().Create(w.t.Context(), &rbacv1.ClusterRole{
		ObjectMeta: metav1.ObjectMeta{Name: "system:coredns", Labels: map[string]string{"keep": "me"}}, Rules: rules,
	}, metav1.CreateOptions{})
	if err != nil {
		w.t.Fatal(err)
	}
	return role
}

func TestEnsureRole(t *testing.T) {
	old := []rbacv1.PolicyRule{
		{APIGroups: []string{""}, Resources: []string{"endpoints", "services", "pods", "namespaces"}, Verbs: []string{"list", "watch"}},
		{NonResourceURLs: []string{"/healthz"}, Verbs: []string{"get"}},
	}
	added := rbacv1.PolicyRule{APIGroups: []string{"discovery.k8s.io"}, Resources: []string{"endpointslices"}, Verbs: []string{"list", "watch"}}
	for name, rules := range map[string][]rbacv1.PolicyRule{"appended": old, "no rules yet": nil} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			role := w.role(rules)
			if err := w.exec.EnsureRole(t.Context(), rollout.EnsureDNSRole{ResourceVersion: role.ResourceVersion}); err != nil {
				t.Fatal(err)
			}
			got, err := w.client.RbacV1().ClusterRoles().Get(t.Context(), role.Name, metav1.GetOptions{})
			if err != nil {
				t.Fatal(err)
			}
			if want := append(rules[:len(rules):len(rules)], added); !reflect.DeepEqual(got.Rules, want) || got.Labels["keep"] != "me" {
				t.Errorf("rules are %v, want %v", got.Rules, want)
			}
			wantConflict(t, w.exec.EnsureRole(t.Context(), rollout.EnsureDNSRole{ResourceVersion: role.ResourceVersion}))
			if err := w.exec.EnsureRole(t.Context(), rollout.EnsureDNSRole{ResourceVersion: got.ResourceVersion}); err != nil {
				t.Error("granted already:", err)
			}
			again, err := w.client.RbacV1().ClusterRoles().Get(t.Context(), role.Name, metav1.GetOptions{})
			if err != nil || again.ResourceVersion != got.ResourceVersion {
				t.Errorf("a role that grants it was written again (%v)", err)
			}
		})
	}
	t.Run("missing", func(t *testing.T) {
		w := newWorld(t)
		wantError(t, w.exec.EnsureRole(t.Context(), rollout.EnsureDNSRole{ResourceVersion: "1"}), "clusterroles/system:coredns does not exist")
	})
}

func TestWriteCorefileTouchesOneKey(t *testing.T) {
	w := newWorld(t)
	before := w.config()
	act := rollout.WriteCorefile{Key: live.CorefileBackupKey, Text: corefile, ResourceVersion: before.ResourceVersion}
	if err := w.exec.WriteCorefile(t.Context(), act); err != nil {
		t.Fatal(err)
	}
	after := w.config()
	before.Data["Corefile-backup"] = corefile
	if !reflect.DeepEqual(after.Data, before.Data) || !reflect.DeepEqual(after.BinaryData, before.BinaryData) ||
		!reflect.DeepEqual(after.Labels, before.Labels) || !reflect.DeepEqual(after.Annotations, before.Annotations) {
		t.Errorf("more than the key changed: %+v", after)
	}
	wantConflict(t, w.exec.WriteCorefile(t.Context(), act))

	act = rollout.WriteCorefile{Key: live.CorefileKey, Text: "new", ResourceVersion: before.ResourceVersion}
	wantConflict(t, w.exec.WriteCorefile(t.Context(), act))
	if got := w.config(); got.Data["Corefile"] != corefile {
		t.Errorf("an outdated step wrote %q", got.Data["Corefile"])
	}
	wantError(t, w.exec.WriteCorefile(t.Context(), rollout.WriteCorefile{Key: "zone.bin", ResourceVersion: after.ResourceVersion}), "neither Corefile nor Corefile-backup")
	wantError(t, w.exec.WriteCorefile(t.Context(), rollout.WriteCorefile{Key: live.CorefileKey}), "carries no resourceVersion")
	server.Reset(t)
	wantError(t, w.exec.WriteCorefile(t.Context(), act), "configmaps/coredns in kube-system does not exist")
}

func TestRecordRun(t *testing.T) {
	w := newWorld(t)
	before := w.config()
	run := live.DNSRun{From: present, To: target, Opened: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), Closed: time.Date(2026, 1, 2, 3, 5, 0, 0, time.UTC)}
	if err := w.exec.RecordRun(t.Context(), rollout.RecordDNSRun{Run: run, ResourceVersion: before.ResourceVersion}); err != nil {
		t.Fatal(err)
	}
	after := w.config()
	if got := recorded(t, after); !reflect.DeepEqual(got, run) {
		t.Errorf("recorded %+v, want %+v", got, run)
	}
	if after.Annotations["note"] != "keep" || !reflect.DeepEqual(after.Data, before.Data) {
		t.Errorf("more than the annotation changed: %+v", after)
	}
	wantConflict(t, w.exec.RecordRun(t.Context(), rollout.RecordDNSRun{Run: run, ResourceVersion: before.ResourceVersion}))
}

func recorded(t *testing.T, config *corev1.ConfigMap) live.DNSRun {
	t.Helper()
	var run live.DNSRun
	if err := json.Unmarshal([]byte(config.Annotations[live.DNSRunAnnotation]), &run); err != nil {
		t.Fatalf("annotation %q: %v", config.Annotations[live.DNSRunAnnotation], err)
	}
	return run
}

func TestPatchChangesImageAndVolumeAtOnce(t *testing.T) {
	w := newWorld(t)
	before := w.deployment()
	mode := int32(0o400)
	items := []live.VolumeItem{{Key: "Corefile-backup", Path: "Corefile"}, {Key: "extra.override", Path: "extra.override", Mode: &mode}}
	act := rollout.PatchDNS{Image: target, Volume: "config-volume", Items: items, ResourceVersion: before.ResourceVersion}
	if err := w.exec.Patch(t.Context(), act); err != nil {
		t.Fatal(err)
	}
	after := w.deployment()
	want := before.DeepCopy()
	want.Spec.Template.Spec.Containers[1].Image = target
	want.Spec.Template.Spec.Volumes[1].ConfigMap.Items = []corev1.KeyToPath{{Key: "Corefile-backup", Path: "Corefile"}, {Key: "extra.override", Path: "extra.override", Mode: &mode}}
	if !reflect.DeepEqual(after.Spec, want.Spec) {
		t.Errorf("spec is\n%+v\nwant\n%+v", after.Spec, want.Spec)
	}
	wantNotes := map[string]string{"note": "keep", live.DNSChangedAnnotation: "2026-03-04T05:06:07Z"}
	if !reflect.DeepEqual(after.Annotations, wantNotes) {
		t.Errorf("annotations are %v, want %v", after.Annotations, wantNotes)
	}
	if after.Generation != before.Generation+1 {
		t.Errorf("generation went from %d to %d: not one change", before.Generation, after.Generation)
	}
	wantConflict(t, w.exec.Patch(t.Context(), act))

	act = rollout.PatchDNS{Volume: "config-volume", ResourceVersion: after.ResourceVersion}
	if err := w.exec.Patch(t.Context(), act); err != nil {
		t.Fatal(err)
	}
	want.Spec.Template.Spec.Volumes[1].ConfigMap.Items = nil
	if got := w.deployment(); !reflect.DeepEqual(got.Spec, want.Spec) {
		t.Errorf("without items, the spec is\n%+v\nwant\n%+v", got.Spec, want.Spec)
	}
}

func TestPatchOfAVolumeWithoutItems(t *testing.T) {
	w := newWorld(t)
	deploy := w.deployment()
	deploy.Spec.Template.Spec.Volumes[1].ConfigMap.Items = nil
	deploy, err := w.client.AppsV1().Deployments(system).Update(t.Context(), deploy, metav1.UpdateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	act := rollout.PatchDNS{Volume: "config-volume", Items: []live.VolumeItem{{Key: "Corefile-backup", Path: "Corefile"}}, ResourceVersion: deploy.ResourceVersion}
	if err := w.exec.Patch(t.Context(), act); err != nil {
		t.Fatal(err)
	}
	got := w.deployment().Spec.Template.Spec.Volumes[1].ConfigMap
	if len(got.Items) != 1 || got.Items[0].Key != "Corefile-backup" || got.Name != "coredns" {
		t.Errorf("volume is %+v", got)
	}
}

func TestPatchAddsNothingThatIsNotThere(t *testing.T) {
	w := newWorld(t)
	rv := w.deployment().ResourceVersion
	wantError(t, w.exec.Patch(t.Context(), rollout.PatchDNS{Volume: "other", ResourceVersion: rv}), `no volume "other" of ConfigMap coredns`)
	wantError(t, w.exec.Patch(t.Context(), rollout.PatchDNS{Volume: "tmp", ResourceVersion: rv}), `no volume "tmp" of ConfigMap coredns`)
	wantError(t, w.exec.Patch(t.Context(), rollout.PatchDNS{Volume: "config-volume", Items: []live.VolumeItem{{Key: "Corefile", Path: "../x"}}, ResourceVersion: rv}), "found the change invalid")
	wantError(t, w.exec.Patch(t.Context(), rollout.PatchDNS{Image: target}), "carries no resourceVersion")
	deploy := w.deployment()
	deploy.Spec.Template.Spec.Containers[1].Name = "dns"
	deploy, err := w.client.AppsV1().Deployments(system).Update(t.Context(), deploy, metav1.UpdateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	wantError(t, w.exec.Patch(t.Context(), rollout.PatchDNS{Image: target, ResourceVersion: deploy.ResourceVersion}), `no container named coredns, only ["watcher" "dns"]`)
	if got := w.deployment(); got.ResourceVersion != deploy.ResourceVersion {
		t.Error("a refused patch wrote something")
	}
	server.Reset(t)
	wantError(t, w.exec.Patch(t.Context(), rollout.PatchDNS{Image: target, ResourceVersion: rv}), "deployments/coredns in kube-system does not exist")
}

func TestRefusalsNameTheMissingRight(t *testing.T) {
	w := newWorld(t)
	config, err := clientcmd.RESTConfigFromKubeConfig(server.UserKubeconfig(t, "nobody"))
	if err != nil {
		t.Fatal(err)
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	exec := w.executor(client)
	wantError(t, exec.EnsureRole(t.Context(), rollout.EnsureDNSRole{ResourceVersion: "1"}), "grant verb get on clusterroles")
	wantError(t, exec.WriteCorefile(t.Context(), rollout.WriteCorefile{Key: live.CorefileKey, ResourceVersion: "1"}), "grant verb patch on configmaps")
	wantError(t, exec.Patch(t.Context(), rollout.PatchDNS{ResourceVersion: "1"}), "grant verb get on deployments")
}
