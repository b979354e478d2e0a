// SPDX-License-Identifier: Apache-2.0

package kube_test

import (
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/theseus-gitops/theseus/executors/kube"
	"github.com/theseus-gitops/theseus/reconcile/live"
)

// lookAt observes cluster and plane.
func lookAt(t *testing.T, client *kube.Client, o kube.PlaneOptions) live.Kube {
	t.Helper()
	have, err := client.Observe(t.Context())
	if err != nil {
		t.Fatal("Observe:", err)
	}
	if err := client.ObservePlane(t.Context(), &have, o); err != nil {
		t.Fatal("ObservePlane:", err)
	}
	return have
}

func TestObservePlaneMakesFewCalls(t *testing.T) {
	client := admin(t)
	for i, name := range []string{"cp-1", "cp-2"} {
		place(t, client, planeNode(name, "10.0.0.1"+string(rune('1'+i))))
	}
	for _, name := range []string{"w-1", "w-2", "w-3"} {
		place(t, client, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}})
	}
	g := newGate(t)
	observer := g.client(t)
	have, err := observer.Observe(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	g.calls = nil
	have.Plane = &live.Plane{Credentials: true}
	own := kube.OwnPod{Namespace: "kube-system", Name: "theseus", UID: "3"}
	if err := observer.ObservePlane(t.Context(), &have, kube.PlaneOptions{OwnPod: own}); err != nil {
		t.Fatal(err)
	}
	want := []string{
		"GET /api/v1/namespaces/kube-system/pods/theseus",
		"GET /api/v1/pods?fieldSelector=spec.nodeName%3Dcp-1",
		"GET /api/v1/pods?fieldSelector=spec.nodeName%3Dcp-2",
		"GET /apis/certificates.k8s.io/v1/certificatesigningrequests?fieldSelector=spec.signerName%3Dkubernetes.io%2Fkubelet-serving",
		"GET /apis/policy/v1/poddisruptionbudgets",
		"GET /apis/storage.k8s.io/v1/volumeattachments",
	}
	if got := slices.Sorted(slices.Values(g.calls)); !slices.Equal(got, want) {
		t.Errorf("got  %s\nwant %s", strings.Join(got, "\n     "), strings.Join(want, "\n     "))
	}
	if g.most > 4 {
		t.Errorf("%d calls at once, want at most 4", g.most)
	}
	if p := have.Plane; len(p.Parts) != 2 || !p.Credentials || p.Served != nil || p.OwnNode != "" {
		t.Errorf("got %+v, want two empty nodes, and Credentials as it was", p)
	}
}

func TestObservePlaneSeesStaticPods(t *testing.T) {
	client := admin(t)
	place(t, client, planeNode("cp-1", "10.0.0.11"))
	silent := planeNode("cp-2", "10.0.0.12")
	silent.Status.Conditions[0].Status = corev1.ConditionUnknown
	place(t, client, silent)
	lost := planeNode("cp-3", "10.0.0.13")
	lost.Spec.Taints = append(lost.Spec.Taints, corev1.Taint{Key: corev1.TaintNodeUnreachable, Effect: corev1.TaintEffectNoExecute})
	place(t, client, lost)

	place(t, client, staticOn("cp-1", "kube-apiserver", "a:1", condition(corev1.ConditionTrue)))
	crashing := staticOn("cp-1", "kube-controller-manager", "m:1", condition(corev1.ConditionFalse))
	crashing.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "kube-controller-manager", Image: "m:1", ImageID: "m", State: corev1.ContainerState{
		Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff", Message: "back-off 40s"},
	}}}
	place(t, client, crashing)
	place(t, client, staticOn("cp-1", "kube-scheduler", "s:1", nil))
	imposter := staticOn("cp-1", "etcd", "e:1", condition(corev1.ConditionTrue))
	imposter.Annotations = nil
	place(t, client, imposter)
	for _, node := range []string{"cp-2", "cp-3"} {
		place(t, client, staticOn(node, "kube-apiserver", "a:1", condition(corev1.ConditionTrue)))
	}

	parts := lookAt(t, client, kube.PlaneOptions{}).Plane.Parts
	want := []string{
		"etcd has no pod",
		"kube-controller-manager: CrashLoopBackOff: back-off 40s",
		"kube-scheduler: the kubelet has not reported on it yet",
	}
	if got := parts["cp-1"].Unhealthy(); !slices.Equal(got, want) {
		t.Errorf("cp-1: got %q, want %q", got, want)
	}
	if a := parts["cp-1"].APIServer; !a.Ready || a.Image != "a:1" || a.Why != "" {
		t.Errorf("cp-1: API server %+v, want it Ready with its image", a)
	}
	for _, node := range []string{"cp-2", "cp-3"} {
		a := parts[node].APIServer
		if a.Ready || a.Image != "a:1" || a.Why != "node "+node+" is not Ready, so nothing newer is known of it" {
			t.Errorf("%s: API server %+v, want one of which nothing new is known", node, a)
		}
	}
}

// seedPods makes one of each kind of pod on cp-1.
func seedPods(t *testing.T, client *kube.Client) {
	t.Helper()
	namespace(t, client.Interface(), "shop")
	place(t, client, planeNode("cp-1", "10.0.0.11"))
	place(t, client, planeNode("cp-2", "10.0.0.12"))
	for _, b := range []*policyv1.PodDisruptionBudget{budget("held", "held", 0), budget("one", "two", 1), budget("other", "two", 1), budget("free", "free", 1)} {
		place(t, client, b)
	}
	local, localVolume := volume("local", "pv-local", func(v *corev1.PersistentVolume) {
		v.Spec.PersistentVolumeSource = corev1.PersistentVolumeSource{Local: &corev1.LocalVolumeSource{Path: "/data"}}
		v.Spec.NodeAffinity = only(corev1.LabelHostname, "cp-1")
	})
	bound, boundVolume := volume("bound", "pv-bound", func(v *corev1.PersistentVolume) { v.Spec.NodeAffinity = only(corev1.LabelHostname, "cp-1") })
	zonal, zonalVolume := volume("zonal", "pv-zonal", func(v *corev1.PersistentVolume) { v.Spec.NodeAffinity = only(corev1.LabelTopologyZone, "a") })
	agent, agentVolume := volume("agent", "pv-agent", nil)
	for _, o := range []any{
		local, localVolume, bound, boundVolume, zonal, zonalVolume, agent, agentVolume,
		attachment("va-zonal", "cp-1", "pv-zonal"), attachment("va-agent", "cp-1", "pv-agent"), attachment("va-2", "cp-2", "pv-x"),
		podOn("cp-1", "held"), podOn("cp-1", "two"), podOn("cp-1", "free"), podOn("cp-2", "elsewhere"),
		podOn("cp-1", "agent", ownedBy("DaemonSet"), claiming("agent")),
		podOn("cp-1", "bare", func(p *corev1.Pod) { p.OwnerReferences = nil }, withVolume(corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}})),
		podOn("cp-1", "memory", withVolume(corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{Medium: corev1.StorageMediumMemory}})),
		podOn("cp-1", "done", func(p *corev1.Pod) { p.Status.Phase = corev1.PodSucceeded }),
		podOn("cp-1", "ending"),
		podOn("cp-1", "pinned", func(p *corev1.Pod) { p.Spec.NodeSelector = map[string]string{corev1.LabelHostname: "cp-1"} }),
		podOn("cp-1", "local", claiming("local")), podOn("cp-1", "bound", claiming("bound")), podOn("cp-1", "zonal", claiming("zonal")), podOn("cp-1", "missing", claiming("missing")),
		staticOn("cp-1", "kube-scheduler", "s:1", condition(corev1.ConditionTrue)),
	} {
		place(t, client, o)
	}
	if err := client.Interface().CoreV1().Pods("shop").Delete(t.Context(), "ending", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
}

func TestObservePlaneSeesWhatADrainWouldMeet(t *testing.T) {
	client := admin(t)
	seedPods(t, client)
	parts := lookAt(t, client, kube.PlaneOptions{}).Plane.Parts
	got := parts["cp-1"].Pods
	for i := range got {
		if p := &got[i]; p.Terminating {
			if age := time.Since(p.Since); age < 0 || age > time.Minute {
				t.Errorf("%s: its eviction began at %s, want a moment ago", p, p.Since)
			}
			p.Since = time.Time{}
		}
	}
	want := []live.Evictee{
		{Namespace: "shop", Name: "bare", Unmanaged: true, EmptyDir: true},
		{Namespace: "shop", Name: "bound", LocalVolumes: []string{"claim bound (volume pv-bound)"}},
		{Namespace: "shop", Name: "ending", Terminating: true},
		{Namespace: "shop", Name: "free"},
		{Namespace: "shop", Name: "held", Budgets: []string{"held"}},
		{Namespace: "shop", Name: "local", LocalVolumes: []string{"claim local (volume pv-local)"}},
		{Namespace: "shop", Name: "memory"},
		{Namespace: "shop", Name: "missing"},
		{Namespace: "shop", Name: "pinned", NowhereElse: "its nodeSelector asks for kubernetes.io/hostname=cp-1"},
		{Namespace: "shop", Name: "two", Budgets: []string{"one", "other"}},
		{Namespace: "shop", Name: "zonal"},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
	if p := parts["cp-2"].Pods; len(p) != 1 || p[0].Name != "elsewhere" {
		t.Errorf("cp-2 has %+v, want its own pod", p)
	}
	// What a DaemonSet's pod holds stays attached until the machine ends.
	if got := parts["cp-1"].Volumes; !slices.Equal(got, []string{"va-zonal"}) {
		t.Errorf("volumes of cp-1: %q, want va-zonal", got)
	}
	if got := parts["cp-2"].Volumes; !slices.Equal(got, []string{"va-2"}) {
		t.Errorf("volumes of cp-2: %q, want va-2", got)
	}
}

// The API server is the judge of budgets, so its own answers are what the view must agree with.
func TestBudgetsAgreeWithTheAPIServer(t *testing.T) {
	client := admin(t)
	namespace(t, client.Interface(), "shop")
	place(t, client, planeNode("cp-1", "10.0.0.11"))
	always := policyv1.AlwaysAllow
	unready := func(p *corev1.Pod) { p.Status.Conditions = condition(corev1.ConditionFalse) }
	none := func(*corev1.Pod) {}
	for name, c := range map[string]struct {
		budgets []*policyv1.PodDisruptionBudget
		pod     func(*corev1.Pod)
	}{
		"no-budget":     {nil, none},
		"allowed":       {[]*policyv1.PodDisruptionBudget{budget("allowed", "allowed", 1)}, none},
		"at-zero":       {[]*policyv1.PodDisruptionBudget{budget("at-zero", "at-zero", 0)}, none},
		"two-allowed":   {[]*policyv1.PodDisruptionBudget{budget("a", "two-allowed", 1), budget("b", "two-allowed", 1)}, none},
		"pending":       {[]*policyv1.PodDisruptionBudget{budget("pending", "pending", 0)}, func(p *corev1.Pod) { p.Status.Phase = corev1.PodPending }},
		"two-pending":   {[]*policyv1.PodDisruptionBudget{budget("c", "two-pending", 0), budget("d", "two-pending", 0)}, func(p *corev1.Pod) { p.Status.Phase = corev1.PodPending }},
		"unready":       {[]*policyv1.PodDisruptionBudget{changed(budget("unready", "unready", 0), func(b *policyv1.PodDisruptionBudget) { b.Status.CurrentHealthy = 0 })}, unready},
		"unready-spare": {[]*policyv1.PodDisruptionBudget{budget("unready-spare", "unready-spare", 0)}, unready},
		"unready-always": {[]*policyv1.PodDisruptionBudget{changed(budget("unready-always", "unready-always", 0), func(b *policyv1.PodDisruptionBudget) {
			b.Spec.UnhealthyPodEvictionPolicy, b.Status.CurrentHealthy = &always, 0
		})}, unready},
		"not-seen": {[]*policyv1.PodDisruptionBudget{changed(budget("not-seen", "not-seen", 1), func(b *policyv1.PodDisruptionBudget) { b.Status.ObservedGeneration = 0 })}, none},
		"everything": {[]*policyv1.PodDisruptionBudget{changed(budget("everything", "", 0), func(b *policyv1.PodDisruptionBudget) {
			b.Spec.Selector.MatchLabels = map[string]string{"all": "yes"}
		})}, func(p *corev1.Pod) { p.Labels["all"] = "yes" }},
	} {
		for _, b := range c.budgets {
			place(t, client, b)
		}
		place(t, client, podOn("cp-1", name, c.pod))
	}
	pods := lookAt(t, client, kube.PlaneOptions{}).Plane.Parts["cp-1"].Pods
	if len(pods) != 11 {
		t.Fatalf("%d pods, want 11", len(pods))
	}
	held := 0
	for _, p := range pods {
		// Without retries: client-go would wait a minute for the budget that was not seen yet.
		err := client.Interface().PolicyV1().RESTClient().Post().AbsPath("/api/v1").Namespace("shop").Resource("pods").Name(p.Name).SubResource("eviction").
			MaxRetries(0).Body(&policyv1.Eviction{
			ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: p.Name}, DeleteOptions: &metav1.DeleteOptions{DryRun: []string{metav1.DryRunAll}},
		}).Do(t.Context()).Error()
		if (err == nil) != (len(p.Budgets) == 0) {
			t.Errorf("%s: budgets %q, but the API server says %v", p, p.Budgets, err)
		}
		if err != nil {
			held++
		}
	}
	if held != 5 {
		t.Errorf("the API server held %d pods, want 5: at zero, two budgets, unready, not seen, everything", held)
	}
}

func changed(b *policyv1.PodDisruptionBudget, change func(*policyv1.PodDisruptionBudget)) *policyv1.PodDisruptionBudget {
	change(b)
	return b
}

func TestObservePlaneFindsItsOwnNode(t *testing.T) {
	client := admin(t)
	namespace(t, client.Interface(), "shop")
	place(t, client, podOn("cp-1", "theseus"))
	pod, err := client.Interface().CoreV1().Pods("shop").Get(t.Context(), "theseus", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		own  kube.OwnPod
		want string
	}{
		{kube.OwnPod{Namespace: "shop", Name: "theseus", UID: string(pod.UID)}, "cp-1"},
		{kube.OwnPod{Namespace: "shop", Name: "theseus", UID: "of-another-cluster"}, ""},
		{kube.OwnPod{Namespace: "shop", Name: "theseus-2", UID: string(pod.UID)}, ""},
		{kube.OwnPod{}, ""},
	} {
		if got := lookAt(t, client, kube.PlaneOptions{OwnPod: c.own}).Plane.OwnNode; got != c.want {
			t.Errorf("%+v: on node %q, want %q", c.own, got, c.want)
		}
	}
}

// Without the right to read claims, a pod with one may lose data: nobody knows.
func TestObservePlaneWithoutRightsToClaims(t *testing.T) {
	client := admin(t)
	namespace(t, client.Interface(), "shop")
	place(t, client, planeNode("cp-1", "10.0.0.11"))
	claim, pv := volume("zonal", "pv-zonal", nil)
	for _, o := range []any{claim, pv, podOn("cp-1", "db", claiming("zonal"))} {
		place(t, client, o)
	}
	bindRole(t, client, "looker", append(readPlane(), rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"persistentvolumeclaims"}, Verbs: []string{"get"}}))
	looker := connect(t, kube.Access{Kubeconfig: server.UserKubeconfig(t, "looker")})
	have := live.Kube{Nodes: []live.Node{{Name: "cp-1", ControlPlane: true, Ready: true, Schedulable: true}}}
	var err error
	for deadline := time.Now().Add(20 * time.Second); time.Now().Before(deadline); time.Sleep(50 * time.Millisecond) {
		var forbidden *kube.ForbiddenError
		if err = looker.ObservePlane(t.Context(), &have, kube.PlaneOptions{}); !errors.As(err, &forbidden) { // roles take effect a moment later
			break
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	pods := have.Plane.Parts["cp-1"].Pods
	if len(pods) != 1 || len(pods[0].LocalVolumes) != 1 || !strings.Contains(pods[0].LocalVolumes[0], "not allowed to get persistentvolumes pv-zonal") {
		t.Errorf("got %+v, want a claim of which nothing is known, and the right that lacks", pods)
	}
}

func readPlane() []rbacv1.PolicyRule {
	list := []string{"list"}
	return []rbacv1.PolicyRule{
		{APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: list},
		{APIGroups: []string{"policy"}, Resources: []string{"poddisruptionbudgets"}, Verbs: list},
		{APIGroups: []string{"storage.k8s.io"}, Resources: []string{"volumeattachments"}, Verbs: list},
		{APIGroups: []string{"certificates.k8s.io"}, Resources: []string{"certificatesigningrequests"}, Verbs: list},
	}
}

// bindRole gives a user the rules, cluster-wide.
func bindRole(t *testing.T, client *kube.Client, user string, rules []rbacv1.PolicyRule) {
	t.Helper()
	create(t, client, &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: user}, Rules: rules})
	_, err := client.Interface().RbacV1().ClusterRoleBindings().Create(t.Context(), &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: user}, Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "User", Name: user}},
		RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: user},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
}

func TestObservePlaneNamesEveryMissingRight(t *testing.T) {
	server.Reset(t)
	client := connect(t, kube.Access{Kubeconfig: server.UserKubeconfig(t, "newcomer")})
	have := live.Kube{Nodes: []live.Node{{Name: "cp-1", ControlPlane: true}}}
	err := client.ObservePlane(t.Context(), &have, kube.PlaneOptions{})
	for _, want := range []string{"list pods", "list poddisruptionbudgets", "list volumeattachments", "list certificatesigningrequests"} {
		if err == nil || !strings.Contains(err.Error(), "not allowed to "+want) {
			t.Errorf("got %v\nwant in it %s", err, want)
		}
	}
	if have.Plane != nil {
		t.Error("half a view was taken for a whole one")
	}
}
