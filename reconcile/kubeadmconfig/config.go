// SPDX-License-Identifier: Apache-2.0

package kubeadmconfig

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/theseus-gitops/theseus/reconcile/skew"
)

// Target is what kubeadm-config must say before a machine of that Kubernetes joins: a joining machine takes its images
// from there, not from its own kubeadm.
type Target struct {
	Kubernetes skew.Version
	// ImageRepository of kubeadm's images; empty leaves what is there.
	ImageRepository string
	// EtcdImageTag of etcd's image; empty leaves what is there.
	EtcdImageTag string
}

// localMode lets a control-plane machine's kubelet talk to the API server beside it instead of the endpoint, behind which
// older API servers are (kubernetes/kubernetes#127316). kubeadm has it from 1.31 and does so by itself from 1.33.
const localMode = "ControlPlaneKubeletLocalMode"

// EditConfig returns a ClusterConfiguration as the target needs it: versions and repository, no feature gate that its
// kubeadm does not take, and v1beta4 where it does not read v1beta3. The rest stays as it is, comments included.
// The notes tell what was changed beside the versions, and what was left although it is a danger.
func EditConfig(text string, to Target) (out string, notes []string, err error) {
	if _, err := parse(text, nil); err != nil {
		return "", nil, err
	}
	config, err := decode(text)
	if err != nil {
		return "", nil, err
	}
	version, err := versionOf(config)
	if err != nil {
		return "", nil, err
	}
	if err := errors.Join(readable(version, to.Kubernetes), joinable(config), etcdTakes(config, to.EtcdImageTag)); err != nil {
		return "", nil, err
	}
	edits, notes := to.edits(config)
	if version == "v1beta3" && to.Kubernetes.Minor >= 37 {
		edits = append(edits, section{fields: []field{{"apiVersion", Group + "/v1beta4", "!!str"}}},
			section{[]string{"apiServer"}, []field{{"timeoutForControlPlane", "", "!!str"}}})
		notes = append(notes, fmt.Sprintf("converted from v1beta3 to v1beta4: kubeadm of Kubernetes %s does not read v1beta3", to.Kubernetes))
		if text, err = listArguments(text); err != nil {
			return "", nil, err
		}
	}
	for _, edit := range edits {
		if text, err = edit.set(text); err != nil {
			return "", nil, err
		}
	}
	return text, notes, nil
}

// readable refuses a document that the target's kubeadm can't decode and that can't be converted here.
// v1beta3 is converted as late as possible, because workers of 1.30 and before read the document too when they join.
func readable(version string, kubernetes skew.Version) error {
	switch {
	case kubernetes.Major != 1 || kubernetes.Minor < 31:
		return fmt.Errorf("target Kubernetes %s is not supported; allowed: v1.31 and later", kubernetes)
	case version == "v1beta3", version == "v1beta4", version == "v1" && kubernetes.Minor >= 37:
		return nil
	}
	return fmt.Errorf("kubeadm of Kubernetes %s does not read apiVersion %s/%s; convert it with `kubeadm config migrate` of a version that reads both",
		kubernetes, Group, version)
}

// joinable refuses what no control-plane machine can join, or what is not supported.
func joinable(config map[string]any) error {
	if endpoint, _ := config["controlPlaneEndpoint"].(string); endpoint == "" {
		return errors.New("controlPlaneEndpoint is not set, and without it kubeadm joins no further control-plane machine; put the address of a load balancer there")
	}
	if at(config, "etcd", "external") != nil {
		return errors.New("etcd.external: a plane with an etcd of its own is not supported")
	}
	return nil
}

// etcdTakes refuses arguments that etcd 3.7 no longer has: the new member would not start (etcd-io/website#1168).
func etcdTakes(config map[string]any, tag string) error {
	version, err := skew.ParseTag(tag)
	if err != nil || version.Compare(skew.Version{Major: 3, Minor: 7}) < 0 {
		return nil //nolint:nilerr // of a tag that is no version nothing is known
	}
	var gone []string
	for _, name := range argumentNames(at(config, "etcd", "local", "extraArgs")) {
		if strings.HasPrefix(name, "experimental-") {
			gone = append(gone, name)
		}
	}
	if len(gone) > 0 {
		return fmt.Errorf("etcd.local.extraArgs: etcd %s has no %s; replace or remove it first, see the notes of etcd 3.6 for its new name", tag, strings.Join(gone, ", "))
	}
	return nil
}

// argumentNames are the names in extraArgs of either version, sorted.
func argumentNames(args any) []string {
	var out []string
	switch args := args.(type) {
	case map[string]any:
		out = slices.Collect(maps.Keys(args))
	case []any:
		for _, arg := range args {
			if name, ok := at(arg, "name").(string); ok {
				out = append(out, name)
			}
		}
	}
	slices.Sort(out)
	return out
}

// at is the value below nested keys, nil when there is none.
func at(value any, path ...string) any {
	for _, key := range path {
		mapping, _ := value.(map[string]any)
		value = mapping[key]
	}
	return value
}

// edits are the fields to set, but for a conversion.
func (t Target) edits(config map[string]any) ([]section, []string) {
	top := []field{{"kubernetesVersion", t.Kubernetes.String(), "!!str"}}
	if t.ImageRepository != "" {
		top = append(top, field{"imageRepository", t.ImageRepository, "!!str"})
	}
	gates, notes := t.gates(config)
	if algorithm := t.algorithm(config); algorithm != "" {
		top = append(top, field{"encryptionAlgorithm", algorithm, "!!str"})
		notes = append(notes, fmt.Sprintf("encryptionAlgorithm: %s takes the place of feature gate PublicKeysECDSA", algorithm))
	}
	out := []section{{fields: top}, {[]string{"featureGates"}, gates}}
	if t.EtcdImageTag != "" {
		out = append(out, section{[]string{"etcd", "local"}, []field{{"imageTag", t.EtcdImageTag, "!!str"}}})
	}
	return out, notes
}

// gates are the feature gates to remove or set.
func (t Target) gates(config map[string]any) (out []field, notes []string) {
	gates, _ := config["featureGates"].(map[string]any)
	for _, name := range slices.Sorted(maps.Keys(gates)) {
		value, _ := gates[name].(bool)
		if why := fate(skew.KubeadmGate(t.Kubernetes, name, value)); why != "" {
			out = append(out, field{name, "", "!!bool"})
			notes = append(notes, fmt.Sprintf("feature gate %s is dropped: kubeadm of Kubernetes %s %s", name, t.Kubernetes, why))
		}
	}
	if minor := t.Kubernetes.Minor; minor != 31 && minor != 32 {
		return out, notes
	}
	switch value, set := gates[localMode].(bool); {
	case !set:
		out = append(out, field{localMode, "true", "!!bool"})
		notes = append(notes, fmt.Sprintf("feature gate %s is set: a kubelet of %s must not talk to older API servers through the endpoint", localMode, t.Kubernetes))
	case !value:
		notes = append(notes, fmt.Sprintf("feature gate %s is false, and stays so: during the roll, new kubelets may talk to older API servers through the endpoint, "+
			"and pods there stay in CreateContainerConfigError", localMode))
	}
	return out, notes
}

// algorithm is what PublicKeysECDSA meant, for a kubeadm that no longer has that gate; "" when nothing has to be said.
func (t Target) algorithm(config map[string]any) string {
	ecdsa, set := at(config, "featureGates", "PublicKeysECDSA").(bool)
	present, _ := config["encryptionAlgorithm"].(string)
	switch {
	case !set || t.Kubernetes.Minor < 37:
		return ""
	case ecdsa && present != "ECDSA-P256":
		return "ECDSA-P256"
	case !ecdsa && present != "" && present != "RSA-2048":
		return "RSA-2048"
	}
	return ""
}

// fate is why a gate must go, "" when it may stay.
func fate(fate skew.GateFate) string {
	switch fate {
	case skew.GateUnknown:
		return "does not know it"
	case skew.GateLocked:
		return "does not let it be set so"
	case skew.GateTaken:
	}
	return ""
}
