// SPDX-License-Identifier: Apache-2.0

package live

import "strings"

// Manager is the tool that an object belongs to, with the evidence for it. The zero value: none is known.
type Manager struct {
	Name     string
	Evidence string
}

// Known reports whether another tool manages the object.
func (m Manager) Known() bool { return m.Name != "" }

// ManagerOf tells which deployment tool manages an object, from its labels, annotations and the
// managers of its fields. What kubectl, kubeadm and controllers write is nobody's claim.
func ManagerOf(labels, annotations map[string]string, fieldManagers []string) Manager {
	type mark struct{ name, key string }
	for _, m := range []mark{
		{"Flux", "kustomize.toolkit.fluxcd.io/name"},
		{"Flux", "helm.toolkit.fluxcd.io/name"},
		{"Argo CD", "argocd.argoproj.io/instance"},
	} {
		if v := labels[m.key]; v != "" {
			return Manager{m.name, "label " + m.key + "=" + v}
		}
	}
	for _, m := range []mark{
		{"Argo CD", "argocd.argoproj.io/tracking-id"},
		{"Helm", "meta.helm.sh/release-name"},
	} {
		if v := annotations[m.key]; v != "" {
			return Manager{m.name, "annotation " + m.key + "=" + v}
		}
	}
	if v := labels["app.kubernetes.io/managed-by"]; v != "" && !strings.EqualFold(v, "kubeadm") {
		return Manager{v, "label app.kubernetes.io/managed-by=" + v}
	}
	for _, f := range fieldManagers {
		for _, m := range []mark{
			{"Helm", "helm"}, {"Flux", "kustomize-controller"}, {"Flux", "helm-controller"}, {"Argo CD", "argocd-controller"},
		} {
			if f == m.key {
				return Manager{m.name, "field manager " + f}
			}
		}
	}
	return Manager{}
}
