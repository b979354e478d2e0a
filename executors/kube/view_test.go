// SPDX-License-Identifier: Apache-2.0

// In the package itself, because objects and view are nobody else's business, and because an API server
// without controllers can't make most of these states.
package kube

import (
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/theseus-gitops/theseus/reconcile/live"
)

func TestNodes(t *testing.T) {
	made := time.Date(2026, 11, 1, 8, 0, 0, 0, time.UTC)
	ready := corev1.NodeStatus{
		Conditions: []corev1.NodeCondition{{Type: corev1.NodeMemoryPressure, Status: corev1.ConditionFalse}, {Type: corev1.NodeReady, Status: corev1.ConditionTrue}},
		Addresses: []corev1.NodeAddress{
			{Type: corev1.NodeInternalIP, Address: "10.0.0.11"}, {Type: corev1.NodeHostName, Address: "cp-1"},
			{Type: corev1.NodeExternalIP, Address: "10.0.0.11"}, {Type: corev1.NodeInternalIP, Address: "fd00::11"},
		},
		NodeInfo: corev1.NodeSystemInfo{KubeletVersion: "v1.36.3", OSImage: "Debian GNU/Linux 13 (trixie)"},
	}
	got := nodesOf([]corev1.Node{
		{ObjectMeta: metav1.ObjectMeta{Name: "worker"}, Spec: corev1.NodeSpec{Unschedulable: true},
			Status: corev1.NodeStatus{Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionUnknown}}}},
		{ObjectMeta: metav1.ObjectMeta{Name: "cp-1", Labels: map[string]string{controlPlaneLabel: ""}, CreationTimestamp: metav1.NewTime(made.Local()),
			Annotations: map[string]string{live.LeavingAnnotation: "2026-11-30T12:00:00Z"}},
			Spec: corev1.NodeSpec{ProviderID: "openstack:///1", Taints: []corev1.Taint{{Key: controlPlaneLabel, Effect: corev1.TaintEffectNoSchedule}}}, Status: ready},
	})
	want := []live.Node{
		{Name: "cp-1", ControlPlane: true, Ready: true, Schedulable: true, KubeletVersion: "v1.36.3", OSImage: "Debian GNU/Linux 13 (trixie)",
			ProviderID: "openstack:///1", Addresses: []string{"10.0.0.11", "fd00::11"}, Created: made, Leaving: "2026-11-30T12:00:00Z",
			Labels: map[string]string{controlPlaneLabel: ""}, Taints: []live.Taint{{Key: controlPlaneLabel, Effect: "NoSchedule"}}},
		{Name: "worker"},
	}
	equal(t, got, want)
}

func TestKubeadmConfig(t *testing.T) {
	const head = "apiVersion: kubeadm.k8s.io/v1beta4\nkind: ClusterConfiguration\nkubernetesVersion: v1.36.3\n"
	for name, c := range map[string]struct {
		text string
		want live.KubeadmConfig
		err  string
	}{
		"v1beta4": {
			text: head + "imageRepository: registry.k8s.io\nnetworking: {dnsDomain: corp.example, podSubnet: 10.1.0.0/16}\ndns: {disabled: true, imageRepository: r/dns, imageTag: v1.14.2}\ncaCertificateValidityPeriod: 87600h\n",
			want: live.KubeadmConfig{APIVersion: "kubeadm.k8s.io/v1beta4", KubernetesVersion: "v1.36.3", ImageRepository: "registry.k8s.io", DNSDomain: "corp.example",
				DNS: live.KubeadmDNS{Disabled: true, ImageRepository: "r/dns", ImageTag: "v1.14.2"}},
		},
		"v1beta3 without DNS": {
			text: "apiVersion: kubeadm.k8s.io/v1beta3\nkind: ClusterConfiguration\nkubernetesVersion: v1.33.1\ndns: {}\nsome: {unknown: [field]}\n",
			want: live.KubeadmConfig{APIVersion: "kubeadm.k8s.io/v1beta3", KubernetesVersion: "v1.33.1", DNSDomain: "cluster.local"},
		},
		"nothing":         {text: " \n", err: "missing or empty"},
		"no YAML":         {text: "kind: [", err: "not readable"},
		"wrong type":      {text: head + "dns: yes please\n", err: "not readable"},
		"another kind":    {text: "kind: InitConfiguration", err: `kind "InitConfiguration"`},
		"unknown version": {text: strings.ReplaceAll(head, "v1beta4", "v1beta9"), err: "v1beta9"},
		"no version":      {text: "apiVersion: kubeadm.k8s.io/v1beta4\nkind: ClusterConfiguration\n", err: "names no kubernetesVersion"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := kubeadmConfigOf(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{ResourceVersion: "7"}, Data: map[string]string{"ClusterConfiguration": c.text}})
			if c.err != "" {
				var damaged *DamagedError
				if !errors.As(err, &damaged) || !strings.Contains(err.Error(), c.err) {
					t.Errorf("got %v, want a DamagedError with %q", err, c.err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			c.want.ResourceVersion, c.want.ClusterConfiguration = "7", c.text
			equal(t, *got, c.want)
		})
	}
}

func TestDNSConfig(t *testing.T) {
	config := func(annotations map[string]string) *live.DNSConfig {
		return dnsConfigOf(&corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{ResourceVersion: "7", Annotations: annotations, ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "kubeadm"}, {Manager: "helm"}}},
			Data:       map[string]string{"Corefile": "x"},
			BinaryData: map[string][]byte{"b": nil, "a": nil},
		})
	}
	plain := live.DNSConfig{ResourceVersion: "7", Data: map[string]string{"Corefile": "x"}, BinaryKeys: []string{"a", "b"},
		Manager: live.Manager{Name: "Helm", Evidence: "field manager helm"}}
	equal(t, *config(nil), plain)

	opened := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	open := plain
	open.Run = &live.DNSRun{From: "a:1", To: "a:2", Corefile: "sha256:0", Opened: opened}
	got := config(map[string]string{live.DNSRunAnnotation: `{"from":"a:1","to":"a:2","corefile":"sha256:0","opened":"2026-11-30T12:00:00Z"}`})
	equal(t, *got, open)
	if !got.Run.Open() {
		t.Error("a run without an end is not open")
	}
	for text, want := range map[string]string{
		"": "unexpected end", "{": "unexpected end", "[]": "cannot unmarshal",
		"{}": "it does not say from, to, corefile, opened", "null": "it does not say from, to, corefile, opened",
		`{"to":"a:2","corefile":"sha256:0","opened":"2026-11-30T12:00:00Z"}`:                                    "it does not say from",
		`{"from":"a:1","to":"","corefile":"sha256:0","opened":"2026-11-30T12:00:00Z"}`:                          "it does not say to",
		`{"from":"a:1","to":"a:2","opened":"2026-11-30T12:00:00Z"}`:                                             "it does not say corefile",
		`{"from":"a:1","to":"a:2","corefile":"sha256:0"}`:                                                       "it does not say opened",
		`{"from":"a:1","to":"a:2","corefile":"sha256:0","opened":"0001-01-01T00:00:00Z","closed":"2026-11-30"}`: "cannot parse",
	} {
		if got := config(map[string]string{live.DNSRunAnnotation: text}); got.Run != nil || !strings.Contains(got.RunUnreadable, want) {
			t.Errorf("annotation %q: run %+v, unreadable %q; want none, and %q", text, got.Run, got.RunUnreadable, want)
		}
	}
}

func TestDNSDeployment(t *testing.T) {
	mode, three := int32(0o440), int32(3)
	source := func(name string, items ...corev1.KeyToPath) corev1.VolumeSource {
		return corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: name}, Items: items}}
	}
	pod := corev1.PodSpec{
		Containers: []corev1.Container{
			{Name: "sidecar", Image: "s:1", VolumeMounts: []corev1.VolumeMount{{Name: "not-ours"}}},
			{Name: "coredns", Image: "c:1", VolumeMounts: []corev1.VolumeMount{{Name: "custom"}, {Name: "config"}}},
		},
		Volumes: []corev1.Volume{
			{Name: "not-ours", VolumeSource: source("coredns")},
			{Name: "custom", VolumeSource: source("coredns-custom")},
			{Name: "config", VolumeSource: source("coredns", corev1.KeyToPath{Key: "Corefile", Path: "Corefile", Mode: &mode})},
		},
	}
	got := dnsDeploymentOf(&appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{ResourceVersion: "7", Generation: 4, Labels: map[string]string{"argocd.argoproj.io/instance": "dns"},
			Annotations: map[string]string{live.DNSChangedAnnotation: "2026-11-30T12:00:00Z"}},
		Spec: appsv1.DeploymentSpec{Replicas: &three, Template: corev1.PodTemplateSpec{Spec: pod}},
		Status: appsv1.DeploymentStatus{ObservedGeneration: 3, Replicas: 4, UpdatedReplicas: 2, UnavailableReplicas: 1, Conditions: []appsv1.DeploymentCondition{
			{Type: appsv1.DeploymentAvailable, Status: corev1.ConditionFalse, Message: "not this one"},
			{Type: appsv1.DeploymentProgressing, Status: corev1.ConditionFalse, Reason: "ProgressDeadlineExceeded", Message: "timed out"},
		}},
	})
	equal(t, *got, live.DNSDeployment{
		ResourceVersion: "7", Image: "c:1", Containers: []string{"sidecar", "coredns"},
		Volume:  &live.ConfigVolume{Name: "config", Items: []live.VolumeItem{{Key: "Corefile", Path: "Corefile", Mode: &mode}}},
		Changed: time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC),
		Rollout: live.Rollout{Generation: 4, ObservedGeneration: 3, Wanted: 3, Total: 4, Updated: 2, Unavailable: 1, Stuck: "timed out"},
		Manager: live.Manager{Name: "Argo CD", Evidence: "label argocd.argoproj.io/instance=dns"},
	})

	bare := dnsDeploymentOf(&appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{live.DNSChangedAnnotation: "yesterday"}},
		Spec:       appsv1.DeploymentSpec{Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "dns"}}, Volumes: pod.Volumes}}},
	})
	equal(t, *bare, live.DNSDeployment{Containers: []string{"dns"}, Rollout: live.Rollout{Wanted: 1}})

	pod.Volumes[2].ConfigMap.Items = nil
	whole := dnsDeploymentOf(&appsv1.Deployment{Spec: appsv1.DeploymentSpec{Template: corev1.PodTemplateSpec{Spec: pod}}})
	if whole.Volume == nil || whole.Volume.Items != nil || whole.Volume.Key() != "Corefile" {
		t.Errorf("a volume without items became %+v", whole.Volume)
	}
}

func TestDNSPods(t *testing.T) {
	pod := func(name string, change func(*corev1.Pod)) corev1.Pod {
		p := corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.PodSpec{NodeName: "n", Containers: []corev1.Container{{Name: "coredns", Image: "c:1"}}}}
		change(&p)
		return p
	}
	state := func(p *corev1.Pod, s corev1.ContainerState) *corev1.ContainerStatus {
		p.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "sidecar", RestartCount: 9}, {Name: "coredns", RestartCount: 2, State: s}}
		return &p.Status.ContainerStatuses[1]
	}
	got := dnsPodsOf([]corev1.Pod{
		pod("6-evicted", func(p *corev1.Pod) { p.Status.Phase = corev1.PodFailed }),
		pod("5-deleting", func(p *corev1.Pod) { p.DeletionTimestamp = &metav1.Time{} }),
		pod("1-ready", func(p *corev1.Pod) {
			p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionTrue}, {Type: corev1.PodReady, Status: corev1.ConditionTrue}}
			state(p, corev1.ContainerState{Running: &corev1.ContainerStateRunning{}})
		}),
		pod("2-crashing", func(p *corev1.Pod) {
			s := state(p, corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff", Message: "back-off 40s"}})
			s.LastTerminationState.Terminated = &corev1.ContainerStateTerminated{ExitCode: 1, Message: "Corefile:3 - unknown directive"}
		}),
		pod("3-ended", func(p *corev1.Pod) {
			state(p, corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{Reason: "Error", ExitCode: 1}})
		}),
		pod("4-nowhere", func(p *corev1.Pod) {
			p.Spec.NodeName = ""
			p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: "Unschedulable", Message: "0/3 nodes are available"}}
		}),
	})
	equal(t, got, []live.DNSPod{
		{Name: "1-ready", Node: "n", Image: "c:1", Ready: true, Restarts: 2},
		{Name: "2-crashing", Node: "n", Image: "c:1", Restarts: 2, Waiting: "CrashLoopBackOff", Message: "back-off 40s; before: exit code 1: Corefile:3 - unknown directive"},
		{Name: "3-ended", Node: "n", Image: "c:1", Restarts: 2, Waiting: "Error", Message: "exit code 1"},
		{Name: "4-nowhere", Image: "c:1", Waiting: "Unschedulable", Message: "0/3 nodes are available"},
		{Name: "5-deleting", Node: "n", Image: "c:1", Deleting: true},
	})
}

func TestDNSPodsNameTheContainerThatHoldsThemUp(t *testing.T) {
	is := func(name string, ready bool, state corev1.ContainerState) corev1.ContainerStatus {
		return corev1.ContainerStatus{Name: name, Ready: ready, State: state}
	}
	running := corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}
	waits := func(reason, message string) corev1.ContainerState {
		return corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: message}}
	}
	ended := func(code int32) corev1.ContainerState {
		return corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{Reason: "Error", ExitCode: code}}
	}
	started := true
	beside := is("mesh", true, running)
	beside.Started = &started
	for name, c := range map[string]struct {
		init, all []corev1.ContainerStatus
		ready     bool
		want      string
	}{
		"image can't be pulled":      {all: []corev1.ContainerStatus{is("watcher", false, waits("ImagePullBackOff", "no such host")), is("coredns", true, running)}, want: "container watcher of the pod can't start: ImagePullBackOff: no such host"},
		"no message":                 {all: []corev1.ContainerStatus{is("watcher", false, waits("RunContainerError", "")), is("coredns", true, running)}, want: "container watcher of the pod can't start: RunContainerError"},
		"ended":                      {all: []corev1.ContainerStatus{is("coredns", true, running), is("watcher", false, ended(3))}, want: "container watcher of the pod ended: Error: exit code 3"},
		"not Ready":                  {all: []corev1.ContainerStatus{is("coredns", true, running), is("watcher", false, running)}, want: "container watcher of the pod runs, but is not Ready"},
		"just begun":                 {all: []corev1.ContainerStatus{is("coredns", true, running), is("watcher", false, waits("ContainerCreating", ""))}},
		"CoreDNS is not Ready":       {all: []corev1.ContainerStatus{is("coredns", false, running), is("watcher", false, waits("ImagePullBackOff", ""))}},
		"CoreDNS can't start":        {all: []corev1.ContainerStatus{is("coredns", false, waits("ErrImagePull", "")), is("watcher", false, waits("ImagePullBackOff", ""))}},
		"Ready":                      {ready: true, all: []corev1.ContainerStatus{is("coredns", true, running), is("watcher", false, running)}},
		"nothing is known":           {},
		"init container fails":       {init: []corev1.ContainerStatus{is("done", true, ended(0)), is("setup", false, waits("CrashLoopBackOff", "back-off 10s"))}, all: []corev1.ContainerStatus{is("coredns", false, waits("PodInitializing", ""))}, want: "init container setup of the pod can't start: CrashLoopBackOff: back-off 10s"},
		"init container runs on":     {init: []corev1.ContainerStatus{beside, is("setup", false, running)}, all: []corev1.ContainerStatus{is("coredns", false, waits("PodInitializing", ""))}, want: "init container setup of the pod has not ended"},
		"init containers have ended": {init: []corev1.ContainerStatus{beside, is("done", true, ended(0))}, all: []corev1.ContainerStatus{is("coredns", true, running)}},
	} {
		pod := corev1.Pod{Status: corev1.PodStatus{InitContainerStatuses: c.init, ContainerStatuses: c.all}}
		if c.ready {
			pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
		}
		if got := dnsPodsOf([]corev1.Pod{pod})[0].Sidecar; got != c.want {
			t.Errorf("%s: got %q, want %q", name, got, c.want)
		}
	}
}

func TestKubeProxyRollout(t *testing.T) {
	set := &appsv1.DaemonSet{
		ObjectMeta: metav1.ObjectMeta{ResourceVersion: "7", Generation: 4},
		Spec:       appsv1.DaemonSetSpec{Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "kube-proxy", Image: "p:2"}}}}},
		Status:     appsv1.DaemonSetStatus{ObservedGeneration: 4, DesiredNumberScheduled: 3, CurrentNumberScheduled: 3, UpdatedNumberScheduled: 2, NumberUnavailable: 1},
	}
	got := kubeProxyOf(set, nil)
	equal(t, *got, live.KubeProxy{ResourceVersion: "7", Image: "p:2", Rollout: live.Rollout{Generation: 4, ObservedGeneration: 4, Wanted: 3, Total: 3, Updated: 2, Unavailable: 1}})
	if got.Rollout.Complete() {
		t.Error("complete, with one node to go")
	}
	set.Status.UpdatedNumberScheduled, set.Status.NumberUnavailable = 3, 0
	set.Spec.UpdateStrategy.Type = appsv1.OnDeleteDaemonSetStrategyType
	if got := kubeProxyOf(set, nil).Rollout; !got.Complete() || !got.Paused {
		t.Errorf("got %+v, want a complete roll-out of a DaemonSet that replaces nothing by itself", got)
	}
}

func TestDNSRole(t *testing.T) {
	slices := rbacv1.PolicyRule{APIGroups: []string{"discovery.k8s.io"}, Resources: []string{"endpointslices"}, Verbs: []string{"list", "watch"}}
	role := dnsRoleOf(&rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{ResourceVersion: "7"}, Rules: []rbacv1.PolicyRule{slices}})
	if role.ResourceVersion != "7" || !role.ReadsEndpointSlices() {
		t.Errorf("got %+v, want a role that reads EndpointSlices", role)
	}
	slices.ResourceNames = []string{"kubernetes"}
	if dnsRoleOf(&rbacv1.ClusterRole{Rules: []rbacv1.PolicyRule{slices}}).ReadsEndpointSlices() {
		t.Error("a right to one named EndpointSlice was taken for a right to all")
	}
}

func equal(t *testing.T, got, want any) {
	t.Helper()
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
}
