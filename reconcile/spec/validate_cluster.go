// SPDX-License-Identifier: Apache-2.0

package spec

import (
	"fmt"
	"path"
	"strings"

	"github.com/theseus-gitops/theseus/reconcile/skew"
)

func validateCluster(c *parsed[Cluster]) {
	s := c.value.Spec
	validateAccess(c.document, s.Access)
	if !s.CoreDNS.SkipCorefileMigration {
		validateCoreDNSTag(c.document, "spec.coreDNS.imageTag", s.CoreDNS.ImageTag)
	}
	if s.ControlPlane != nil && c.isMapping("spec.controlPlane") {
		validateControlPlane(c.document, *s.ControlPlane, s.Etcd)
		checkMachineName(c, "metadata.name", "cp")
	}
	for i, w := range s.Workers {
		validateWorker(c, fmt.Sprintf("spec.workers[%d]", i), w)
	}
	if s.Terraform != nil {
		validateTerraform(c.document, *s.Terraform)
	}
	validateMachines(c, s)
	for i, check := range s.HealthChecks {
		validateHealthCheck(c.document, fmt.Sprintf("spec.healthChecks[%d]", i), check)
	}
}

// validateMachines wants what replacing the control plane's machines can't do without.
func validateMachines(c *parsed[Cluster], s ClusterSpec) {
	const at = "spec.controlPlane"
	if s.ControlPlane == nil || !c.isMapping(at) {
		return
	}
	if s.Terraform == nil {
		if !c.failedBelow("spec.terraform") {
			c.warnf(at, "nothing is done about machines, because spec.terraform names no module that makes them")
		}
		return
	}
	if s.ControlPlane.Replicas == 0 && !c.failedBelow(at+".replicas") {
		c.errorf(at, "found no replicas; allowed: the number of control-plane machines, because none is added or removed on a guess")
	}
	if s.BaseImage == "" && s.Release == "" && !c.failedBelow("spec.baseImage") {
		c.errorf(at, "found no spec.baseImage; allowed: the image that machines are made from, because a new machine needs one")
	}
	if s.Endpoint.Mode == "vip" {
		c.errorf("spec.endpoint.mode", "found vip, which is not supported for replacing machines; allowed: loadBalancer, terminating")
	}
}

// validateAccess wants exactly one of a kubeconfig's Secret, a kubeconfig's path, and the cluster that the job runs in.
func validateAccess(d *document, a Access) {
	const at = "spec.access"
	if !d.isMapping(at) {
		return
	}
	inCluster := a.InCluster
	switch kubeconfig := d.has(at + ".kubeconfig"); {
	case kubeconfig && inCluster:
		d.errorf(at, "found kubeconfig and inCluster; allowed: exactly one way: kubeconfig.secretRef, kubeconfig.path or inCluster: true")
	case !kubeconfig && !inCluster && !d.failedBelow(at+".inCluster"):
		d.errorf(at, "found no way to the cluster; allowed: exactly one way: kubeconfig.secretRef, kubeconfig.path or inCluster: true")
	case kubeconfig:
		exactlyOne(d, at+".kubeconfig", "secretRef", "path")
	}
	if inCluster && (a.AllowExec || a.AllowInsecureTLS) {
		d.warnf(at, "allowExec and allowInsecureTLS concern a kubeconfig and do nothing with inCluster")
	}
}

// validateCoreDNSTag wants a version in the tag, because the Corefile's migration depends on it.
func validateCoreDNSTag(d *document, at, tag string) {
	if tag == "" || d.failedBelow(at) {
		return
	}
	if _, err := skew.ParseTag(tag); err != nil {
		d.errorf(at, "found %q, in which there is no version; allowed: a tag such as v1.14.6 or v1.14.6_vendor.1, "+
			"or any tag in a cluster with coreDNS.skipCorefileMigration: true", shorten(tag))
	}
}

// validateHops wants ascending minors, each once, that end below the wanted one. Whether they fill the way from the live
// version is known only when that has been observed.
func validateHops(d *document, at string, wanted Version, hops []Hop) {
	target, targetErr := skew.Parse(string(wanted))
	var last skew.Version
	for i, hop := range hops {
		path := fmt.Sprintf("%s.hops[%d].kubernetesVersion", at, i)
		v, err := skew.Parse(string(hop.KubernetesVersion))
		if err != nil {
			continue // reported by the decoder
		}
		switch {
		case i > 0 && !oneMinorAbove(v, last) && last != (skew.Version{}):
			d.errorf(path, "found %s after %s; allowed: the next minor, because Kubernetes is upgraded one minor at a time", v, last)
		case targetErr == nil && (v.Major != target.Major || v.Minor >= target.Minor):
			d.errorf(path, "found %s on the way to %s; allowed: lower minors than the wanted one", v, target)
		}
		last = v
	}
}

func oneMinorAbove(v, below skew.Version) bool {
	return v.Major == below.Major && v.Minor == below.Minor+1
}

func validateControlPlane(d *document, cp ControlPlane, etcd Etcd) {
	const at = "spec.controlPlane"
	if cp.Replicas > 0 && cp.Replicas%2 == 0 {
		d.errorf(at+".replicas", "found %d; allowed: an odd number, because an even one adds a machine that can fail and no failure that etcd survives", cp.Replicas)
	}
	if cp.Replicas == 1 && etcd.Snapshot == nil && !d.failedBelow("spec.etcd") {
		d.errorf(at+".replicas", "a plane of one machine needs spec.etcd.snapshot: without it a failed replacement loses the cluster")
	}
	validateRollout(d, at+".rollout", cp)
	validateTimeouts(d, at+".timeouts", cp.Timeouts)
	for key, value := range map[string]Duration{"rollBeforeCertificateExpiry": cp.RollBeforeCertificateExpiry, "maxMachineAge": cp.MaxMachineAge} {
		refuseZero(d, join(at, key), value)
	}
	if cp.Remediation != nil {
		refuseZero(d, at+".remediation.unhealthyFor", cp.Remediation.UnhealthyFor)
	}
	for i, arg := range cp.Join.NodeRegistration.KubeletExtraArgs {
		if arg.Name == "provider-id" || arg.Name == "hostname-override" {
			d.warnf(fmt.Sprintf("%s.join.nodeRegistration.kubeletExtraArgs[%d]", at, i), "found %s, which differs from machine to machine; it will be the same for all", arg.Name)
		}
	}
}

func validateRollout(d *document, at string, cp ControlPlane) {
	if d.failedBelow(at) || cp.Rollout.MaxSurge != 0 {
		return
	}
	if cp.Replicas < 3 && !d.failedBelow("spec.controlPlane.replicas") {
		d.errorf(at+".maxSurge", "found 0 with %d replicas; allowed: 1, or 0 with 3 or more replicas, because a machine is removed first and etcd must keep its quorum", cp.Replicas)
	}
	if cp.Rollout.MaxUnavailable != 1 {
		d.errorf(at+".maxSurge", "found 0 with maxUnavailable %d; allowed: 1, or 0 with maxUnavailable: 1", cp.Rollout.MaxUnavailable)
	}
}

func validateTimeouts(d *document, at string, t Timeouts) {
	refuseZero(d, at+".create", t.Create)
	refuseZero(d, at+".join", t.Join)
	refuseZero(d, at+".drain", t.Drain)
	refuseZero(d, at+".detach", t.Detach)
	refuseZero(d, at+".destroy", t.Destroy)
}

func refuseZero(d *document, at string, value Duration) {
	if value == 0 && d.has(at) && !d.failedBelow(at) {
		d.errorf(at, "found 0; allowed: more than 0")
	}
}

// serialRoom is what the serial of a machine's name may need, with its dash: five digits in base 36 are 60 million machines.
const serialRoom = 1 + 5

func validateWorker(c *parsed[Cluster], at string, w Worker) {
	d := c.document
	if !d.isMapping(at) {
		return
	}
	validateWorkerName(c, at+".name", w.Name)
	if r := w.Rollout; r.MaxSurge.Value == 0 && r.MaxUnavailable.Value == 0 && !d.failedBelow(at+".rollout") && d.has(at+".rollout") {
		d.errorf(at+".rollout", "found 0 for maxSurge and maxUnavailable; allowed: at least one above 0, or no machine could be replaced")
	}
	validateTimeouts(d, at+".timeouts", w.Timeouts)
	switch w.Kind {
	case WorkerTerraform:
		if !d.has(at + ".replicas") {
			d.errorf(at, "replicas is missing: kind terraform needs it")
		}
		refuseKeys(d, at, w.Kind, "ref", "versionPath", "imagePath")
	case WorkerMachineDeployment:
		if !d.has(at + ".ref") {
			d.errorf(at, "ref is missing: kind machineDeployment needs it")
		}
		refuseKeys(d, at, w.Kind, "values", "failureDomains")
	}
}

func validateWorkerName(c *parsed[Cluster], at, name string) {
	if name == "cp" || name == "control-plane" {
		c.errorf(at, "found %q, which is the control plane's; allowed: another name", name)
	}
	checkMachineName(c, at, name)
}

// checkMachineName wants room for the serials of a pool's machine names, which are host names.
func checkMachineName(c *parsed[Cluster], at, name string) {
	if c.failedBelow(at) || c.failedBelow("metadata.name") {
		return
	}
	if n := len(c.value.Metadata.Name) + 1 + len(name) + serialRoom; n > 63 {
		c.errorf(at, "machines would be named %s-%s-SERIAL, up to %d characters; allowed: 63, because the name is a host name", c.value.Metadata.Name, name, n)
	}
}

func refuseKeys(d *document, at, kind string, keys ...string) {
	for _, key := range keys {
		if path := join(at, key); d.has(path) {
			d.errorf(path, "found with kind %s, which does not use it; remove it", kind)
		}
	}
}

func validateTerraform(d *document, t Terraform) {
	for i, file := range t.VarFiles {
		at := fmt.Sprintf("spec.terraform.varFiles[%d]", i)
		if joined := path.Join(t.Dir, file); t.Dir != "" && !d.failedBelow(at) && (joined == ".." || strings.HasPrefix(joined, "../")) {
			d.errorf(at, "found %q, which leads out of the repository; allowed: a path relative to dir, inside the repository", shorten(file))
		}
	}
}

func validateHealthCheck(d *document, at string, check HealthCheck) {
	exactlyOne(d, at, "cel", "http", "job")
	if check.CEL == nil {
		return
	}
	exactlyOne(d, at+".cel", "name", "selector")
	if check.CEL.Selector != nil {
		validateSelector(d, at+".cel.selector", *check.CEL.Selector)
	}
}
