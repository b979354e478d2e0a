// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/theseus-gitops/theseus/test/lab/cluster"
	"github.com/theseus-gitops/theseus/test/lab/parts"
)

const (
	oldVersion, newVersion = "v1.36.3", "v1.37.2"
	oldEtcd, newEtcd       = "3.6.16-0", "3.7.3-0"
)

// plane is a lab of its own with machines that Terraform made, and the fleet repository that says which are wanted.
type plane struct {
	*cluster.Cluster
	*fleet
	temp   string // TMPDIR of every run: nothing may be left in it
	binary string // runs Terraform and writes down when
	calls  string // where to
	client kubernetes.Interface
}

// wanted is what a spec asks for.
type wanted struct {
	kubernetes, image, etcd, coreDNS string
	replicas                         int
	more                             string // further lines of controlPlane
}

func newPlane(t *testing.T, o cluster.Options) *plane {
	t.Helper()
	o.Out = os.Stdout
	// A broken-off run may have left its lab behind, half rolled and with a logbook of its own.
	if old, err := cluster.New(o); err != nil {
		t.Fatal(err)
	} else if err := old.Down(t.Context()); err != nil {
		t.Fatal(err)
	}
	c, err := cluster.Up(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if os.Getenv("THESEUS_KEEP_LAB") != "" {
			return
		}
		if err := c.Down(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	})
	p := &plane{Cluster: c, fleet: newFleet(t, c.Kubeconfig), temp: t.TempDir()}
	p.env = []string{"TMPDIR=" + p.temp}
	if p.client, err = c.Client(); err != nil {
		t.Fatal(err)
	}
	program, err := c.Terraform(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	p.binary, p.calls = p.wrap(program)
	files, err := c.Module()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(p.snapshots(), 0o700); err != nil {
		t.Fatal(err)
	}
	for name, text := range files {
		p.write(filepath.Join("infra", name), text)
	}
	return p
}

// image is the machine image of a Debian release and a Kubernetes version, built if need be.
func (p *plane) image(debian, kubernetes string) string {
	p.t.Helper()
	release, err := parts.ReleaseOf(debian)
	if err != nil {
		p.t.Fatal(err)
	}
	image, err := p.NodeImage(p.t.Context(), release, kubernetes)
	if err != nil {
		p.t.Fatal(err)
	}
	return image
}

// asks commits a spec.
func (p *plane) asks(w wanted, message string) {
	p.t.Helper()
	backend, err := json.Marshal(p.BackendConfig())
	if err != nil {
		p.t.Fatal(err)
	}
	p.write("clusters/"+p.Name+".yaml", fmt.Sprintf(`apiVersion: theseus.dev/v1alpha1
kind: Cluster
metadata:
  name: %s
  labels: {stage: dev}
spec:
  kubernetesVersion: %s
  baseImage: %s
  access:
    kubeconfig:
      secretRef: {name: e2e, key: kubeconfig}
  coreDNS:
    imageTag: %s
  etcd:
    imageTag: %s
    snapshot: {to: %s}
  terraform:
    dir: infra
    binary: %s
    varFiles: [lab.tfvars]
    backendConfig: %s
  controlPlane:
    replicas: %d
    rollout: {stableFor: 5s}
    join: {nodeRegistration: {ignorePreflightErrors: [SystemVerification]}}
%s`, p.Name, w.kubernetes, w.image, w.coreDNS, w.etcd, p.snapshots(), p.binary, backend, w.replicas, w.more))
	p.push(message)
}

// snapshots is where etcd's snapshots go.
func (p *plane) snapshots() string { return filepath.Join(filepath.Dir(p.bare), "snapshots") }

// planned is what plan prints, with steps of these names in it. A kubelet may report an API server unready for a moment, above all
// just after the lab came up, and a plan can't see past that: it is made again then.
func (p *plane) planned(steps ...string) string {
	p.t.Helper()
	var r result
	for range 20 {
		if r = p.run(10, "plan"); !slices.ContainsFunc(steps, func(s string) bool { return !strings.Contains(r.out, s) }) {
			return r.out
		}
		time.Sleep(3 * time.Second)
	}
	p.t.Fatalf("the plan lacks one of %v:\n%s", steps, r.out)
	return ""
}

// machines are those in Terraform's state.
func (p *plane) machines() []string {
	p.t.Helper()
	names, err := p.Machines(p.t.Context())
	if err != nil {
		p.t.Fatal(err)
	}
	return names
}

// is requires that the cluster is as wanted in every part, by ways of the lab's own: machines, Nodes, members of etcd,
// versions; and that nothing is left of the way there.
func (p *plane) is(w wanted, debian string) {
	p.t.Helper()
	machines := p.machines()
	if len(machines) != w.replicas {
		p.t.Errorf("machines %v, want %d", machines, w.replicas)
	}
	nodes, err := p.client.CoreV1().Nodes().List(p.t.Context(), metav1.ListOptions{})
	if err != nil {
		p.t.Fatal(err)
	}
	var names []string
	for _, n := range nodes.Items {
		names = append(names, n.Name)
		if info := n.Status.NodeInfo; info.KubeletVersion != w.kubernetes || !strings.Contains(info.OSImage, debian) || n.Spec.Unschedulable {
			p.t.Errorf("node %s: %s on %s, unschedulable %t; want %s on %s", n.Name, info.KubeletVersion, info.OSImage, n.Spec.Unschedulable, w.kubernetes, debian)
		}
	}
	same(p.t, "nodes", names, machines)
	members, err := p.Members(p.t.Context(), machines[0])
	if err != nil {
		p.t.Fatal(err)
	}
	names = nil
	for _, m := range members {
		names = append(names, m.Name)
		if m.Learner {
			p.t.Errorf("member %s is a learner", m.Name)
		}
	}
	same(p.t, "members", names, machines)
	p.runs(w, machines)
	p.leftNothing()
}

// runs requires the versions of what runs in the cluster.
func (p *plane) runs(w wanted, machines []string) {
	p.t.Helper()
	for _, machine := range machines {
		for component, tag := range map[string]string{"etcd": w.etcd, "kube-apiserver": w.kubernetes, "kube-controller-manager": w.kubernetes, "kube-scheduler": w.kubernetes} {
			pod, err := p.client.CoreV1().Pods(system).Get(p.t.Context(), component+"-"+machine, metav1.GetOptions{})
			if err != nil {
				p.t.Error(err)
				continue
			}
			if image := pod.Spec.Containers[0].Image; !strings.HasSuffix(image, ":"+tag) {
				p.t.Errorf("pod %s runs %s, want %s", pod.Name, image, tag)
			}
		}
	}
	dns, err := p.client.AppsV1().Deployments(system).Get(p.t.Context(), "coredns", metav1.GetOptions{})
	if err != nil {
		p.t.Fatal(err)
	}
	proxy, err := p.client.AppsV1().DaemonSets(system).Get(p.t.Context(), "kube-proxy", metav1.GetOptions{})
	if err != nil {
		p.t.Fatal(err)
	}
	for image, tag := range map[string]string{dns.Spec.Template.Spec.Containers[0].Image: w.coreDNS, proxy.Spec.Template.Spec.Containers[0].Image: w.kubernetes} {
		if !strings.HasSuffix(image, ":"+tag) {
			p.t.Errorf("%s runs, want %s", image, tag)
		}
	}
	config, err := p.client.CoreV1().ConfigMaps(system).Get(p.t.Context(), "kubeadm-config", metav1.GetOptions{})
	if err != nil {
		p.t.Fatal(err)
	}
	mustContain(p.t, "kubeadm-config", config.Data["ClusterConfiguration"], "kubernetesVersion: "+w.kubernetes, "imageTag: "+w.etcd, "imageTag: "+w.coreDNS)
}

var (
	bootstrapToken = regexp.MustCompile(`\b[a-z0-9]{6}\.[a-z0-9]{16}\b`)
	certificateKey = regexp.MustCompile(`\b[0-9a-f]{64}\b`)
)

// leftNothing requires that nothing a join needs is left in the cluster, nor a file of a run on this computer.
func (p *plane) leftNothing() {
	p.t.Helper()
	secrets, err := p.client.CoreV1().Secrets(system).List(p.t.Context(), metav1.ListOptions{})
	if err != nil {
		p.t.Fatal(err)
	}
	for _, s := range secrets.Items {
		if ours := strings.Contains(string(s.Data["description"]), "heseus") || strings.HasPrefix(s.Name, "theseus"); ours || s.Name == "kubeadm-certs" {
			p.t.Errorf("secret %s is left", s.Name)
		}
	}
	pods, err := p.client.CoreV1().Pods(system).List(p.t.Context(), metav1.ListOptions{})
	if err != nil {
		p.t.Fatal(err)
	}
	for _, pod := range pods.Items {
		if strings.HasPrefix(pod.Name, "theseus") {
			p.t.Errorf("pod %s is left", pod.Name)
		}
	}
	files, err := os.ReadDir(p.temp)
	if err != nil {
		p.t.Fatal(err)
	}
	for _, f := range files {
		p.t.Errorf("%s is left in the folder for temporary files", f.Name())
	}
	_, err = p.client.CoordinationV1().Leases(system).Get(p.t.Context(), "theseus", metav1.GetOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		p.t.Fatal(err)
	}
	p.toldNoSecret()
}

// toldNoSecret looks for what lets a machine join in all that is kept: Git, and what the cluster holds of ours.
func (p *plane) toldNoSecret() {
	p.t.Helper()
	texts := map[string]string{}
	if p.head() != "" {
		texts["status branch"] = p.git(p.bare, "log", "-p", statusBranch)
	}
	if book, err := p.client.CoreV1().ConfigMaps(system).Get(p.t.Context(), "theseus", metav1.GetOptions{}); err == nil {
		texts["logbook"] = fmt.Sprint(book.Data)
	}
	for what, text := range texts {
		noSecret(p.t, what, text)
	}
}

func noSecret(t *testing.T, what, text string) {
	t.Helper()
	if strings.Contains(text, "PRIVATE KEY") {
		t.Errorf("%s holds a private key", what)
	}
	if found := bootstrapToken.FindString(text); found != "" {
		t.Errorf("%s holds what looks like a bootstrap token: %s", what, found)
	}
	for _, found := range certificateKey.FindAllString(text, -1) {
		// Hashes of specs are as long: they are in the status document by name.
		if !strings.Contains(text, "evision: "+found) && !strings.Contains(text, `evision":"`+found) && !strings.Contains(text, "ash: "+found) && !strings.Contains(text, "sha256:"+found) {
			t.Errorf("%s holds what looks like a certificate key: %s", what, found)
		}
	}
}

func same(t *testing.T, what string, got, want []string) {
	t.Helper()
	got, want = slices.Sorted(slices.Values(got)), slices.Sorted(slices.Values(want))
	if !slices.Equal(got, want) {
		t.Errorf("%s: %v, want %v", what, got, want)
	}
}
