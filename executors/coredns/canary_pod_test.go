// SPDX-License-Identifier: Apache-2.0

package coredns_test

import (
	"context"
	"reflect"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/theseus-gitops/theseus/reconcile/live"
)

func TestCanaryPodIsTheDeploymentsButServesNobody(t *testing.T) {
	w := newWorld(t)
	service := w.service()
	deploy := w.deployment()
	w.dns.serve(canary, positive)
	w.play(isReady)
	if err := w.exec.Canary(t.Context(), w.canaryAct()); err != nil {
		t.Fatal(err)
	}
	pod, template := w.canaries[0], deploy.Spec.Template
	if labels.SelectorFromSet(service.Spec.Selector).Matches(labels.Set(pod.Labels)) {
		t.Errorf("Service kube-dns selects the canary: %v", pod.Labels)
	}
	selector, err := metav1.LabelSelectorAsSelector(deploy.Spec.Selector)
	if err != nil || selector.Matches(labels.Set(pod.Labels)) {
		t.Errorf("the Deployment selects the canary: %v %v", pod.Labels, err)
	}
	wantLabels := map[string]string{"app.kubernetes.io/name": canary, "app.kubernetes.io/managed-by": "theseus"}
	if !reflect.DeepEqual(pod.Labels, wantLabels) || len(pod.OwnerReferences) != 0 {
		t.Errorf("labels %v, owners %v", pod.Labels, pod.OwnerReferences)
	}
	if pod.Spec.RestartPolicy != corev1.RestartPolicyNever || pod.Spec.ActiveDeadlineSeconds == nil || *pod.Spec.ActiveDeadlineSeconds > 3600 {
		t.Errorf("restart policy %s, deadline %v: an orphan would live on", pod.Spec.RestartPolicy, pod.Spec.ActiveDeadlineSeconds)
	}
	want := template.Spec.Containers[1].DeepCopy()
	want.Image, want.TerminationMessagePolicy, want.Ports[0].HostPort = target, corev1.TerminationMessageFallbackToLogsOnError, 0
	if !reflect.DeepEqual(pod.Spec.Containers[1], *want) || pod.Spec.Containers[0].Image != template.Spec.Containers[0].Image {
		t.Errorf("containers are\n%+v\nwant the second to be\n%+v", pod.Spec.Containers, want)
	}
	config := pod.Spec.Volumes[1].ConfigMap
	if config == nil || config.Name != canary || !reflect.DeepEqual(config.Items, template.Spec.Volumes[1].ConfigMap.Items) {
		t.Errorf("volume is %+v", pod.Spec.Volumes[1])
	}
	if a := pod.Spec.Affinity; a.PodAntiAffinity != nil || !reflect.DeepEqual(a.NodeAffinity, template.Spec.Affinity.NodeAffinity) || pod.Spec.TopologySpreadConstraints != nil {
		t.Errorf("affinity is %+v", a)
	}
	if pod.Spec.ServiceAccountName != "coredns" || pod.Spec.DNSPolicy != corev1.DNSDefault || pod.Spec.PriorityClassName != "system-cluster-critical" ||
		!reflect.DeepEqual(pod.Spec.NodeSelector, template.Spec.NodeSelector) || pod.Spec.Tolerations[0] != template.Spec.Tolerations[0] {
		t.Errorf("the pod is not like the Deployment's: %+v", pod.Spec)
	}
	data := w.configs[0]
	if data.Data["Corefile"] != candidate || data.Data["extra.override"] != "log\n" || !reflect.DeepEqual(data.BinaryData, baseConfig().BinaryData) {
		t.Errorf("the canary's ConfigMap is %+v", data)
	}
}

// service creates Service kube-dns as kubeadm does.
func (w *world) service() *corev1.Service {
	w.t.Helper()
	services := w.client.CoreV1().Services(system)
	service, err := services.Create(w.t.Context(), &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: "kube-dns"},
		Spec:       corev1.ServiceSpec{Selector: map[string]string{"k8s-app": "kube-dns"}, Ports: []corev1.ServicePort{{Name: "dns-tcp", Port: 53, Protocol: corev1.ProtocolTCP}}},
	}, metav1.CreateOptions{})
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { _ = services.Delete(context.WithoutCancel(w.t.Context()), "kube-dns", metav1.DeleteOptions{}) })
	return service
}

func TestCanaryReadsTheCandidateWhateverIsMounted(t *testing.T) {
	for name, items := range map[string][]corev1.KeyToPath{
		"no items":          nil,
		"backup is mounted": {{Key: "Corefile-backup", Path: "Corefile"}, {Key: "extra.override", Path: "x"}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			deploy := w.deployment()
			deploy.Spec.Template.Spec.Volumes[1].ConfigMap.Items = items
			if _, err := w.client.AppsV1().Deployments(system).Update(t.Context(), deploy, metav1.UpdateOptions{}); err != nil {
				t.Fatal(err)
			}
			w.dns.serve(canary, positive)
			w.play(isReady)
			if err := w.exec.Canary(t.Context(), w.canaryAct()); err != nil {
				t.Fatal(err)
			}
			got := w.canaries[0].Spec.Volumes[1].ConfigMap
			if got.Name != canary || (live.ConfigVolume{Items: liveItems(got.Items)}).Key() != live.CorefileKey || len(got.Items) != len(items) {
				t.Errorf("volume is %+v", got)
			}
		})
	}
}

func liveItems(items []corev1.KeyToPath) []live.VolumeItem {
	var out []live.VolumeItem
	for _, it := range items {
		out = append(out, live.VolumeItem{Key: it.Key, Path: it.Path})
	}
	return out
}
