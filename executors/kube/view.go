// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"cmp"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/theseus-gitops/theseus/reconcile/live"
)

// controlPlaneLabel is set by kubeadm on every control-plane node since 1.20.
const controlPlaneLabel = "node-role.kubernetes.io/control-plane"

// view turns the objects into values. It fails when an object is there but can't be understood.
func (o objects) view() (live.Kube, error) {
	kubeadmConfig, err := kubeadmConfigOf(o.kubeadmConfig)
	if err != nil {
		return live.Kube{}, err
	}
	book, bookVersion, err := bookOf(o.book)
	if err != nil {
		return live.Kube{}, err
	}
	return live.Kube{
		ServerVersion: o.version,
		Nodes:         nodesOf(o.nodes),
		KubeadmConfig: kubeadmConfig,
		KubeletConfig: configMapOf(o.kubeletConfig),
		KubeProxy:     kubeProxyOf(o.kubeProxy, o.kubeProxyConfig),
		DNS: live.DNS{
			Config:     dnsConfigOf(o.dnsConfig),
			Deployment: dnsDeploymentOf(o.dnsDeployment),
			Role:       dnsRoleOf(o.dnsRole),
			Pods:       dnsPodsOf(o.dnsPods),
			Canary:     dnsCanaryOf(o.dnsCanary),
		},
		Book:        book,
		BookVersion: bookVersion,
	}, nil
}

func nodesOf(nodes []corev1.Node) []live.Node {
	var out []live.Node
	for _, n := range nodes {
		_, controlPlane := n.Labels[controlPlaneLabel]
		out = append(out, live.Node{
			Name:           n.Name,
			ControlPlane:   controlPlane,
			Ready:          nodeReady(n),
			Schedulable:    !n.Spec.Unschedulable,
			KubeletVersion: n.Status.NodeInfo.KubeletVersion,
			OSImage:        n.Status.NodeInfo.OSImage,
			ProviderID:     n.Spec.ProviderID,
			Addresses:      addressesOf(n),
			Created:        n.CreationTimestamp.UTC(),
			Labels:         n.Labels,
			Taints:         taintsOf(n),
			Leaving:        n.Annotations[live.LeavingAnnotation],
		})
	}
	slices.SortFunc(out, func(a, b live.Node) int { return cmp.Compare(a.Name, b.Name) })
	return out
}

func nodeReady(n corev1.Node) bool {
	return slices.ContainsFunc(n.Status.Conditions, func(c corev1.NodeCondition) bool {
		return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
	})
}

// addressesOf are the IP addresses of a node, in its own order, without host names: those say nothing that
// the node's name does not.
func addressesOf(n corev1.Node) []string {
	var out []string
	for _, a := range n.Status.Addresses {
		if (a.Type == corev1.NodeInternalIP || a.Type == corev1.NodeExternalIP) && !slices.Contains(out, a.Address) {
			out = append(out, a.Address)
		}
	}
	return out
}

func taintsOf(n corev1.Node) []live.Taint {
	var out []live.Taint
	for _, t := range n.Spec.Taints {
		out = append(out, live.Taint{Key: t.Key, Value: t.Value, Effect: string(t.Effect)})
	}
	return out
}

func configMapOf(m *corev1.ConfigMap) *live.ConfigMap {
	if m == nil {
		return nil
	}
	return &live.ConfigMap{ResourceVersion: m.ResourceVersion, Data: m.Data}
}

func kubeProxyOf(d *appsv1.DaemonSet, config *corev1.ConfigMap) *live.KubeProxy {
	if d == nil {
		return nil
	}
	return &live.KubeProxy{
		ResourceVersion: d.ResourceVersion,
		Image:           imageOf(d.Spec.Template.Spec, kubeProxy),
		Rollout: live.Rollout{
			Generation:         d.Generation,
			ObservedGeneration: d.Status.ObservedGeneration,
			Wanted:             d.Status.DesiredNumberScheduled,
			Total:              d.Status.CurrentNumberScheduled,
			Updated:            d.Status.UpdatedNumberScheduled,
			Unavailable:        d.Status.NumberUnavailable,
			Paused:             d.Spec.UpdateStrategy.Type == appsv1.OnDeleteDaemonSetStrategyType,
		},
		Config: configMapOf(config),
	}
}

// imageOf is the image of the container of that name, "" when there is none.
func imageOf(pod corev1.PodSpec, container string) string {
	if c := containerOf(pod, container); c != nil {
		return c.Image
	}
	return ""
}

func containerOf(pod corev1.PodSpec, name string) *corev1.Container {
	for i := range pod.Containers {
		if pod.Containers[i].Name == name {
			return &pod.Containers[i]
		}
	}
	return nil
}

func managerOf(meta metav1.ObjectMeta) live.Manager {
	var managers []string
	for _, f := range meta.ManagedFields {
		managers = append(managers, f.Manager)
	}
	return live.ManagerOf(meta.Labels, meta.Annotations, managers)
}
