// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"

	"github.com/theseus-gitops/theseus/reconcile/kubeadmconfig"
	"github.com/theseus-gitops/theseus/reconcile/live"
	"github.com/theseus-gitops/theseus/reconcile/skew"
)

// refuse is what a person has to decide or mend before the first machine is touched, nil when nothing is.
func (p *plane) refuse() *Failure {
	for _, check := range []func() *Failure{p.failedBefore, p.unowned, p.endpoint, p.versions, p.kubelets, p.etcdVersion, p.hostFiles, p.snapshotPlace, p.drainable, p.dns} {
		if f := check(); f != nil {
			return f
		}
	}
	_, f := p.wantedConfig()
	return f
}

// failedBefore is the memory of machines for this very target having failed.
func (p *plane) failedBefore() *Failure {
	if p.book.Attempts[p.Revision] < p.want.Attempts {
		return nil
	}
	f := &Failure{
		Reason: "MachinesFailed", Message: fmt.Sprintf("%d machines for %s failed", p.book.Attempts[p.Revision], p.want.target()),
		Remedy: "correct the image or the spec; to try the same again, set spec.retry to any new text",
	}
	if t := p.book.FailedTarget; t != nil && t.Revision == p.Revision && t.Target == p.want.target() {
		f.Reason, f.Message, f.Remedy = t.Reason, t.Message, t.Remedy
	}
	return f
}

// unowned refuses a plane with nodes that Terraform's state does not have: removing or counting them would be a guess.
func (p *plane) unowned() *Failure {
	if len(p.all.Nodes) == 0 {
		return nil
	}
	var names []string
	for _, n := range p.all.Nodes {
		names = append(names, n.Name)
	}
	return &Failure{
		Reason:  "NodeWithoutMachine",
		Message: "control-plane nodes that the module's registry does not have: " + strings.Join(names, ", "),
		Remedy:  "add them to variable machines and apply, so that they can be replaced; or drain them, remove their etcd members and delete the Nodes (kubectl delete node NAME)",
	}
}

// endpoint refuses an address that goes with a machine.
func (p *plane) endpoint() *Failure {
	const reason = "EndpointIsMachine"
	remedy := "put a load balancer in front of the API servers, and its address into controlPlaneEndpoint of kubeadm-config"
	switch host := hostOf(p.config.Endpoint); {
	case p.config.ExternalEtcd:
		return &Failure{Reason: "ExternalEtcd", Message: "kubeadm-config has etcd.external: a plane with an etcd of its own is not supported", Remedy: "remove controlPlane and terraform from the spec"}
	case p.have.Kube.Plane.EndpointForeign != "" && p.have.Kube.Plane.Served == nil && !p.want.EndsTLS:
		return &Failure{
			Reason:  "EndpointForeign",
			Message: fmt.Sprintf("the endpoint %s shows a certificate of no control-plane node: %s", p.have.Machines.Endpoint, p.have.Kube.Plane.EndpointForeign),
			Remedy:  "correct endpoint in the module's output theseus; or set endpoint.mode: terminating if the load balancer ends TLS",
		}
	case p.config.Endpoint == "":
		return &Failure{Reason: reason, Message: "kubeadm-config has no controlPlaneEndpoint, so clients talk to one machine's address", Remedy: remedy}
	default:
		for _, n := range p.have.Kube.Nodes {
			if n.ControlPlane && (slices.Contains(n.Addresses, host) || strings.EqualFold(n.Name, host)) {
				return &Failure{Reason: reason, Message: fmt.Sprintf("controlPlaneEndpoint %s is machine %s itself, and would go with it", p.config.Endpoint, n.Name), Remedy: remedy}
			}
		}
	}
	return nil
}

// hostOf is the host of host:port.
func hostOf(endpoint string) string {
	if a, err := netip.ParseAddrPort(endpoint); err == nil {
		return a.Addr().String()
	}
	host, _, _ := strings.Cut(endpoint, ":")
	return host
}

// versions refuses what no roll can do: a jump over a minor, and going back (https://kubernetes.io/releases/version-skew-policy/).
func (p *plane) versions() *Failure {
	want := p.want.Kubernetes
	var oldest, newest *skew.Version
	for _, m := range p.all.Machines {
		v, err := skew.Parse(m.KubernetesVersion)
		if err != nil {
			return &Failure{Reason: "VersionUnreadable", Message: fmt.Sprintf("machine %s: kubernetes_version in the registry: %v", m.Name, err), Remedy: "correct variable machines and apply"}
		}
		if oldest == nil || v.Compare(*oldest) < 0 {
			oldest = &v
		}
		if newest == nil || v.Compare(*newest) > 0 {
			newest = &v
		}
	}
	switch {
	case oldest == nil:
		return &Failure{Reason: "NoMachines", Message: "the module's registry has no machine of pool control-plane", Remedy: "see docs/terraform-contract.md: variable machines must hold the present machines, with role and pool control-plane"}
	case want.Major != oldest.Major || want.Minor > oldest.Minor+1:
		return &Failure{
			Reason:  "MinorSkipped",
			Message: fmt.Sprintf("the control plane has machines of %s, and %s is wanted: a Kubernetes minor can't be skipped", oldest, want),
			Remedy:  fmt.Sprintf("ask for a v%d.%d release first", oldest.Major, oldest.Minor+1),
		}
	case want.Minor < newest.Minor && want.Minor < oldest.Minor:
		return &Failure{
			Reason:  "MinorDowngrade",
			Message: fmt.Sprintf("%s is wanted, and no machine of that minor is left (the oldest has %s): Kubernetes can't go back a minor", want, oldest),
			Remedy:  "ask for the present minor again; the way further back is a restore of an etcd snapshot",
		}
	}
	return nil
}

// kubelets refuses a version that some kubelet would be too old, or too new, for.
func (p *plane) kubelets() *Failure {
	const most = 3 // minors that a kubelet may be behind: https://kubernetes.io/releases/version-skew-policy/#kubelet
	want := p.want.Kubernetes
	for _, n := range p.have.Kube.Nodes {
		v, err := skew.Parse(n.KubeletVersion)
		if err != nil || n.ControlPlane {
			continue
		}
		if v.Minor+most < want.Minor || v.Minor > want.Minor {
			return &Failure{
				Reason:  "KubeletSkew",
				Message: fmt.Sprintf("node %s has kubelet %s, which an API server of %s does not support", n.Name, v, want),
				Remedy:  "upgrade the workers first, to at most three minors behind and never ahead",
			}
		}
	}
	return nil
}

// etcdVersion refuses an etcd that the present members can't be joined by.
func (p *plane) etcdVersion() *Failure {
	tag, failure := p.etcdTag()
	if failure != nil || tag == "" {
		return failure
	}
	to, err := skew.ParseTag(tag)
	if err != nil {
		return &Failure{Reason: "EtcdVersionUnreadable", Message: "etcd.imageTag: " + err.Error(), Remedy: "use a tag that begins with etcd's version"}
	}
	for _, m := range p.all.Machines {
		if m.Node == nil {
			continue
		}
		from, err := skew.ParseTag(tagOf(p.have.Kube.Plane.Parts[m.Node.Name].Etcd.Image))
		if err != nil {
			continue
		}
		if why := skew.EtcdBase(from.Core(), to.Core()); why != "" {
			return &Failure{
				Reason: "EtcdTooOld", Message: fmt.Sprintf("machine %s runs etcd %s, and %s is to join it: %s", m.Name, from.Core(), tag, why),
				Remedy: "roll the plane to a safe etcd first: the present kubernetesVersion with etcd.imageTag set to the newest patch of the present etcd minor",
			}
		}
	}
	return nil
}

// etcdTag is the tag that kubeadm-config has to name for etcd, "" to leave what it says.
func (p *plane) etcdTag() (string, *Failure) {
	switch known, present := skew.KubeadmEtcd(p.want.Kubernetes), p.config.EtcdImageTag; {
	case p.want.EtcdTag != "":
		return p.want.EtcdTag, nil
	case p.config.KubernetesVersion == p.want.Kubernetes.String():
		return "", nil
	case known == "" && present == "":
		return "", &Failure{
			Reason:  "EtcdVersionUnknown",
			Message: fmt.Sprintf("which etcd kubeadm of Kubernetes %s brings is not known here", p.want.Kubernetes),
			Remedy:  "set etcd.imageTag; `kubeadm config images list` of that version prints it",
		}
	case known == "" || present != "" && newer(present, known):
		return "", nil
	default:
		return known, nil
	}
}

// newer reports whether tag a is at least as new as b.
func newer(a, b string) bool {
	va, errA := skew.ParseTag(a)
	vb, errB := skew.ParseTag(b)
	return errA == nil && errB == nil && va.Core().Compare(vb.Core()) >= 0
}

// hostFiles refuses static pods that mount what the new machine would not have: its API server would never start.
func (p *plane) hostFiles() *Failure {
	var missing []string
	for _, path := range p.config.HostFiles {
		provided := slices.ContainsFunc(p.want.Files, func(f string) bool { return f == path || strings.HasPrefix(f, strings.TrimSuffix(path, "/")+"/") })
		if !provided && !systemPath(path) {
			missing = append(missing, path)
		}
	}
	if len(missing) == 0 {
		return nil
	}
	return &Failure{
		Reason:  "HostFilesMissing",
		Message: "kubeadm-config mounts host files into the static pods that a new machine would not have: " + strings.Join(missing, ", "),
		Remedy:  "bring them with controlPlane.join.files, or name them in controlPlane.providedByImage when the base image has them",
	}
}

// systemPath are folders that kubeadm or every Linux has.
func systemPath(path string) bool {
	return slices.ContainsFunc([]string{"/etc/ssl", "/etc/pki", "/usr/share/ca-certificates", "/usr/local/share/ca-certificates", "/etc/kubernetes/pki", "/etc/localtime"},
		func(known string) bool { return path == known || strings.HasPrefix(path, known+"/") })
}

// snapshotPlace refuses to roll a plane of one machine without a way back.
func (p *plane) snapshotPlace() *Failure {
	if p.want.Snapshot || len(p.all.Machines) > 1 {
		return nil
	}
	return &Failure{
		Reason:  "SnapshotPlaceMissing",
		Message: "the plane has one machine, so for a moment two members must agree, and losing either would lose the cluster",
		Remedy:  "set etcd.snapshot.to, so that a snapshot is taken first",
	}
}

// drainable refuses what would be lost, or would hold up the drain of the only machine.
func (p *plane) drainable() *Failure {
	for _, m := range p.all.Machines {
		if m.Node == nil || p.stale(m) == "" {
			continue
		}
		if f := p.consent(m.Name, p.have.Kube.Plane.Parts[m.Node.Name].Pods); f != nil {
			return f
		}
		if len(p.all.Machines) > 1 {
			continue
		}
		if blocked := budgetBlocks(p.have.Kube.Plane.Parts[m.Node.Name].Pods); len(blocked) > 0 {
			return &Failure{
				Reason: "DrainBlocked", Message: fmt.Sprintf("machine %s is the only one, and pods on it may not be evicted: %s", m.Name, strings.Join(blocked, "; ")),
				Remedy: "give the application one more replica, or change its PodDisruptionBudget",
			}
		}
	}
	return nil
}

// preview are the pods that may hold up a drain later, as notices.
func (p *plane) preview() []string {
	var out []string
	for _, m := range p.all.Machines {
		if m.Node == nil || p.stale(m) == "" {
			continue
		}
		for _, text := range budgetBlocks(p.have.Kube.Plane.Parts[m.Node.Name].Pods) {
			out = append(out, fmt.Sprintf("drain of %s: %s", m.Name, text))
		}
		for _, pod := range p.have.Kube.Plane.Parts[m.Node.Name].Pods {
			if pod.NowhereElse != "" {
				out = append(out, fmt.Sprintf("drain of %s: pod %s would fit nowhere else: %s", m.Name, pod, pod.NowhereElse))
			}
		}
	}
	return out
}

// dns refuses before the first machine what CoreDNS's part would refuse after the last.
func (p *plane) dns() *Failure {
	if p.DNS == nil {
		return nil
	}
	if s, ok := nextDNS(p.Want, *p.have.Kube, p.now).(Stalled); ok && !s.Remembered {
		return &s.Failure
	}
	return nil
}

// wantedConfig is the ClusterConfiguration that a machine of the target has to find. Going back to what the roll began
// with gives the text that it began with.
func (p *plane) wantedConfig() (string, *Failure) {
	if text, ok := p.original(); ok {
		return text, nil
	}
	tag, failure := p.etcdTag()
	if failure != nil {
		return "", failure
	}
	text, _, err := kubeadmconfig.EditConfig(p.have.Kube.KubeadmConfig.ClusterConfiguration, kubeadmconfig.Target{
		Kubernetes: p.want.Kubernetes, ImageRepository: p.want.ImageRepository, EtcdImageTag: tag,
	})
	if err != nil {
		return "", &Failure{
			Reason: "KubeadmConfigUnfit", Message: "ConfigMap kube-system/kubeadm-config: " + err.Error(),
			Remedy: "correct ClusterConfiguration there; the next pass looks again",
		}
	}
	return text, nil
}

// original is the ClusterConfiguration from before the roll, when the spec goes back to its version.
func (p *plane) original() (string, bool) {
	o := p.book.Originals
	if o == nil || o.KubeadmConfig == "" || p.config.KubernetesVersion == p.want.Kubernetes.String() {
		return "", false
	}
	facts, err := kubeadmconfig.Read(o.KubeadmConfig)
	if err != nil || facts.KubernetesVersion != p.want.Kubernetes.String() || p.want.EtcdTag != "" && facts.EtcdImageTag != p.want.EtcdTag {
		return "", false
	}
	return o.KubeadmConfig, true
}

// consent refuses to lose what the spec does not allow to be lost.
func (p *plane) consent(machine string, pods []live.Evictee) *Failure {
	missing := map[string][]string{}
	for _, pod := range pods {
		for field, asks := range map[string]bool{
			"evictUnmanaged":     pod.Unmanaged && !p.want.Consent.Unmanaged,
			"deleteEmptyDirData": pod.EmptyDir && !p.want.Consent.EmptyDir,
			"loseLocalVolumes":   len(pod.LocalVolumes) > 0 && !p.want.Consent.LocalVolumes,
		} {
			if asks && !pod.Terminating {
				missing[field] = append(missing[field], pod.String())
			}
		}
	}
	if len(missing) == 0 {
		return nil
	}
	var texts []string
	for _, field := range slices.Sorted(maps.Keys(missing)) {
		texts = append(texts, fmt.Sprintf("controlPlane.drain.%s for %s", field, strings.Join(missing[field], ", ")))
	}
	return &Failure{
		Reason: "DrainNeedsConsent", Message: fmt.Sprintf("draining machine %s would lose what the spec does not consent to lose: %s", machine, strings.Join(texts, "; ")),
		Remedy: "set the fields to true, or move these pods by hand",
	}
}

// budgetBlocks are the pods that budgets keep where they are.
func budgetBlocks(pods []live.Evictee) []string {
	var out []string
	for _, pod := range pods {
		if len(pod.Budgets) > 0 && !pod.Terminating {
			out = append(out, fmt.Sprintf("pod %s is held by PodDisruptionBudget %s", pod, strings.Join(pod.Budgets, " and ")))
		}
	}
	return out
}
