// SPDX-License-Identifier: Apache-2.0

package kube_test

import (
	"testing"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/kubernetes"

	"github.com/theseus-gitops/theseus/executors/kube"
)

// place makes an object, with its status.
func place(t *testing.T, client *kube.Client, object any) {
	t.Helper()
	i, ctx, no, status := client.Interface(), t.Context(), metav1.CreateOptions{}, metav1.UpdateOptions{}
	var err error
	switch o := object.(type) {
	case *corev1.Node:
		err = twice(i.CoreV1().Nodes().Create(ctx, o, no))(func(n *corev1.Node) error {
			n.Status = o.Status
			return second(i.CoreV1().Nodes().UpdateStatus(ctx, n, status))
		})
	case *corev1.Pod:
		err = twice(i.CoreV1().Pods(o.Namespace).Create(ctx, o, no))(func(p *corev1.Pod) error {
			p.Status = o.Status
			return second(i.CoreV1().Pods(p.Namespace).UpdateStatus(ctx, p, status))
		})
	case *policyv1.PodDisruptionBudget:
		err = twice(i.PolicyV1().PodDisruptionBudgets(o.Namespace).Create(ctx, o, no))(func(b *policyv1.PodDisruptionBudget) error {
			b.Status = o.Status
			return second(i.PolicyV1().PodDisruptionBudgets(b.Namespace).UpdateStatus(ctx, b, status))
		})
	case *corev1.PersistentVolumeClaim:
		err = second(i.CoreV1().PersistentVolumeClaims(o.Namespace).Create(ctx, o, no))
	case *corev1.PersistentVolume:
		err = second(i.CoreV1().PersistentVolumes().Create(ctx, o, no))
	case *storagev1.VolumeAttachment:
		err = second(i.StorageV1().VolumeAttachments().Create(ctx, o, no))
	case *certificatesv1.CertificateSigningRequest:
		err = second(i.CertificatesV1().CertificateSigningRequests().Create(ctx, o, no))
	default:
		t.Fatalf("don't know how to place a %T", object)
	}
	if err != nil {
		t.Fatal(err)
	}
}

func twice[T any](made T, err error) func(func(T) error) error {
	return func(next func(T) error) error {
		if err != nil {
			return err
		}
		return next(made)
	}
}

// namespace makes a namespace that the server may have from another test.
func namespace(t *testing.T, client kubernetes.Interface, name string) {
	t.Helper()
	_, err := client.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		t.Fatal(err)
	}
}

func condition(status corev1.ConditionStatus) []corev1.PodCondition {
	return []corev1.PodCondition{{Type: corev1.PodReady, Status: status}}
}

// planeNode is a control-plane node, Ready and as kubeadm labels and taints it.
func planeNode(name, address string) *corev1.Node {
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"node-role.kubernetes.io/control-plane": "", corev1.LabelHostname: name, corev1.LabelTopologyZone: "a"}},
		Spec:       corev1.NodeSpec{Taints: []corev1.Taint{{Key: "node-role.kubernetes.io/control-plane", Effect: corev1.TaintEffectNoSchedule}}},
		Status: corev1.NodeStatus{
			Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}},
			Addresses:  []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: address}, {Type: corev1.NodeHostName, Address: name}},
		},
	}
}

// podOn is a running and ready pod of a ReplicaSet, in namespace shop, with label app=name.
func podOn(node, name string, change ...func(*corev1.Pod)) *corev1.Pod {
	yes := true
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "shop", Name: name, Labels: map[string]string{"app": name},
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: name, UID: "1", Controller: &yes}},
		},
		Spec: corev1.PodSpec{
			NodeName: node, Containers: []corev1.Container{{Name: "c", Image: "i"}},
			Tolerations: []corev1.Toleration{{Key: "node-role.kubernetes.io/control-plane", Operator: corev1.TolerationOpExists}},
		},
		Status: corev1.PodStatus{Phase: corev1.PodRunning, Conditions: condition(corev1.ConditionTrue)},
	}
	for _, c := range change {
		c(p)
	}
	return p
}

func ownedBy(kind string) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.OwnerReferences[0].Kind = kind }
}

func withVolume(source corev1.VolumeSource) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Spec.Volumes = append(p.Spec.Volumes, corev1.Volume{Name: "v", VolumeSource: source})
	}
}

func claiming(claim string) func(*corev1.Pod) {
	return withVolume(corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: claim}})
}

// staticOn is a mirror pod of the control plane.
func staticOn(node, component, image string, conditions []corev1.PodCondition) *corev1.Pod {
	yes := true
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "kube-system", Name: component + "-" + node, Labels: map[string]string{"tier": "control-plane", "component": component},
			Annotations:     map[string]string{corev1.MirrorPodAnnotationKey: "hash"},
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "v1", Kind: "Node", Name: node, UID: "2", Controller: &yes}},
		},
		Spec:   corev1.PodSpec{NodeName: node, HostNetwork: true, Containers: []corev1.Container{{Name: component, Image: image}}},
		Status: corev1.PodStatus{Phase: corev1.PodRunning, Conditions: conditions},
	}
}

// budget is one over app, in namespace shop, that allows so many evictions now.
func budget(name, app string, allowed int32) *policyv1.PodDisruptionBudget {
	one := intstr.FromInt32(1)
	return &policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name},
		Spec:       policyv1.PodDisruptionBudgetSpec{MinAvailable: &one, Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": app}}},
		Status: policyv1.PodDisruptionBudgetStatus{
			ObservedGeneration: 1, DisruptionsAllowed: allowed, CurrentHealthy: 1 + allowed, DesiredHealthy: 1, ExpectedPods: 1 + allowed,
		},
	}
}

// volume is a claim in namespace shop that is bound to a volume.
func volume(claim, name string, change func(*corev1.PersistentVolume)) (*corev1.PersistentVolumeClaim, *corev1.PersistentVolume) {
	size := corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}
	modes, class := []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}, "c"
	v := &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: corev1.PersistentVolumeSpec{
			Capacity: size, AccessModes: modes, StorageClassName: class,
			PersistentVolumeSource: corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{Driver: "d", VolumeHandle: name}},
		},
	}
	if change != nil {
		change(v)
	}
	return &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: claim},
		Spec:       corev1.PersistentVolumeClaimSpec{AccessModes: modes, StorageClassName: &class, VolumeName: name, Resources: corev1.VolumeResourceRequirements{Requests: size}},
	}, v
}

// only is an affinity to nodes that have one of the values.
func only(key string, values ...string) *corev1.VolumeNodeAffinity {
	return &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{
		{MatchExpressions: []corev1.NodeSelectorRequirement{{Key: key, Operator: corev1.NodeSelectorOpIn, Values: values}}},
	}}}
}

func attachment(name, node, volume string) *storagev1.VolumeAttachment {
	return &storagev1.VolumeAttachment{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       storagev1.VolumeAttachmentSpec{Attacher: "d", NodeName: node, Source: storagev1.VolumeAttachmentSource{PersistentVolumeName: &volume}},
	}
}
