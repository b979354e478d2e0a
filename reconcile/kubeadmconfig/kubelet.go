// SPDX-License-Identifier: Apache-2.0

package kubeadmconfig

import (
	"fmt"
	"maps"
	"slices"

	"github.com/theseus-gitops/theseus/reconcile/skew"
)

// memoryThrottlingOld was the default of memoryThrottlingFactor before 1.37, which is let pass.
const memoryThrottlingOld = 0.9

// PruneKubelet returns a KubeletConfiguration without what a kubelet of that Kubernetes refuses to start with; the rest
// stays as it is, comments included. Fields that it does not know are no hindrance: it reads them leniently
// (kubernetes/kubernetes pkg/kubelet/kubeletconfig/util/codec/codec.go), and kubeadm drops them when it joins.
// The notes tell what was dropped.
func PruneKubelet(text string, kubernetes skew.Version) (out string, notes []string, err error) {
	if _, err := parse(text, []string{"featureGates"}); err != nil {
		return "", nil, err
	}
	config, err := decode(text)
	if err != nil {
		return "", nil, err
	}
	if config["kind"] != "KubeletConfiguration" || config["apiVersion"] != "kubelet.config.k8s.io/v1beta1" {
		return "", nil, fmt.Errorf("it is %v of %v, not KubeletConfiguration of kubelet.config.k8s.io/v1beta1", config["kind"], config["apiVersion"])
	}
	gone := section{path: []string{"featureGates"}}
	gates, _ := config["featureGates"].(map[string]any)
	for _, name := range slices.Sorted(maps.Keys(gates)) {
		value, _ := gates[name].(bool)
		if why := fate(skew.KubeletGate(kubernetes, name, value)); why != "" {
			gone.fields = append(gone.fields, field{name, "", "!!bool"})
			notes = append(notes, fmt.Sprintf("feature gate %s is dropped: the kubelet of Kubernetes %s %s", name, kubernetes, why))
		}
	}
	if text, err = gone.set(text); err != nil {
		return "", nil, err
	}
	if !throttles(config, kubernetes) {
		return text, notes, nil
	}
	const factor = "memoryThrottlingFactor"
	notes = append(notes, fmt.Sprintf("%s is dropped: the kubelet of Kubernetes %s does not take it with feature gate MemoryQoS off", factor, kubernetes))
	text, err = section{fields: []field{{factor, "", "!!float"}}}.set(text)
	return text, notes, err
}

// throttles tells of a memoryThrottlingFactor that kubelets refuse from 1.37 on (ValidateKubeletConfiguration in
// pkg/kubelet/apis/config/validation of v1.37.2).
func throttles(config map[string]any, kubernetes skew.Version) bool {
	factor, set := config["memoryThrottlingFactor"]
	on, given := at(config, "featureGates", "MemoryQoS").(bool)
	return kubernetes.Minor >= 37 && set && factor != nil && factor != memoryThrottlingOld && given && !on
}
