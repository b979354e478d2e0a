// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"errors"
	"io"
	"maps"
	"net/netip"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/theseus-gitops/theseus/test/lab/service"
)

func TestFree(t *testing.T) {
	prefixes := func(list ...string) (out []netip.Prefix) {
		for _, s := range list {
			out = append(out, netip.MustParsePrefix(s))
		}
		return out
	}
	for name, c := range map[string]struct {
		taken []netip.Prefix
		want  string
	}{
		"nothing taken":             {nil, "10.213.0.0/24"},
		"machines of the first":     {prefixes("10.213.0.0/24"), "10.213.1.0/24"},
		"pods of the first":         {prefixes("10.214.10.0/24"), "10.213.1.0/24"},
		"Services of the first two": {prefixes("10.230.0.0/16", "10.231.7.0/24"), "10.213.2.0/24"},
		"unrelated":                 {prefixes("172.17.0.0/16", "10.96.0.0/12"), "10.213.0.0/24"},
	} {
		got, err := free(c.taken)
		if err != nil || got.Subnet.String() != c.want {
			t.Errorf("%s: %s, %v; want %s", name, got.Subnet, err, c.want)
		}
	}
	if got, err := free(prefixes("10.0.0.0/8")); err == nil {
		t.Errorf("all of 10/8 is taken, and yet %s is free", got.Subnet)
	}
}

func TestRangesNeverOverlap(t *testing.T) {
	var all []netip.Prefix
	for n := range byte(labs) {
		c := ranges(n)
		if !c.Subnet.Contains(c.Gateway) {
			t.Errorf("lab %d: gateway %s outside %s", n, c.Gateway, c.Subnet)
		}
		for _, p := range []netip.Prefix{c.Subnet, c.Pods, c.Services} {
			if slices.ContainsFunc(all, p.Overlaps) {
				t.Errorf("lab %d: %s overlaps with another range", n, p)
			}
			all = append(all, p)
		}
	}
}

func TestParseRoutes(t *testing.T) {
	const head = "Iface\tDestination\tGateway \tFlags\tRefCnt\tUse\tMetric\tMask\t\tMTU\tWindow\tIRTT\n"
	got, err := parseRoutes(head +
		"eth0\t00000000\t010200C0\t0003\t0\t0\t0\t00000000\t0\t0\t0\n" +
		"lab0\t0000D50A\t00000000\t0001\t0\t0\t0\t00FFFFFF\t0\t0\t0\n" +
		"lab0\t0000E60A\t0A00D50A\t0003\t0\t0\t0\t0000FFFF\t0\t0\t0\n")
	want := []netip.Prefix{netip.MustParsePrefix("10.213.0.0/24"), netip.MustParsePrefix("10.230.0.0/16")}
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("routes %v, %v; want %v", got, err, want)
	}
	if got, err := parseRoutes(head + "lab0\txyz\t0\t1\t0\t0\t0\t00FFFFFF\t0\t0\t0\n"); err == nil {
		t.Errorf("nonsense gives %v", got)
	}
}

func TestUserDataIsUnderstoodByTheService(t *testing.T) {
	c, err := New(Options{Root: t.TempDir(), Name: "demo"})
	if err != nil {
		t.Fatal(err)
	}
	c.Config = ranges(3)
	data, err := c.initData(c.machine(1))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"controlPlaneEndpoint: 10.213.3.1:6443", "podSubnet: 10.217.0.0/16", "serviceSubnet: 10.233.0.0/16",
		"name: demo-cp-1", "imageTag: 3.6.16-0", "imageTag: " + CoreDNSTag,
	} {
		if !strings.Contains(data, want) {
			t.Errorf("user data lacks %q:\n%s", want, data)
		}
	}
	if _, err := service.Script(data); err != nil {
		t.Error(err)
	}
}

func TestReadRegistry(t *testing.T) {
	for name, c := range map[string]struct {
		state string
		want  []string
	}{
		"none yet": {"", nil},
		"empty":    {`{"version":4,"resources":[]}`, nil},
		"two, and what else a machine has": {`{"resources":[
			{"mode":"managed","type":"terraform_data","name":"machine","instances":[
				{"index_key":"lab-cp-1","attributes":{"input":{"value":{"role":"control-plane","serving":true},"type":["object",{}]}}},
				{"index_key":"lab-cp-2","attributes":{"input":{"value":{"role":"control-plane","serving":false}}}}]},
			{"mode":"managed","type":"terraform_data","name":"server","instances":[
				{"index_key":"lab-cp-3","attributes":{"input":{"value":{"url":"http://"}}}}]}]}`, []string{"lab-cp-1", "lab-cp-2"}},
	} {
		got, err := readRegistry([]byte(c.state))
		if names := slices.Sorted(maps.Keys(got)); err != nil || !slices.Equal(names, c.want) {
			t.Errorf("%s: %v, %v; want %v", name, names, err, c.want)
		}
		if m, ok := got["lab-cp-1"]; ok && (m.Role != "control-plane" || !m.Serving || got["lab-cp-2"].Serving) {
			t.Errorf("%s: %+v", name, got)
		}
	}
	if got, err := readRegistry([]byte("{")); err == nil {
		t.Errorf("nonsense gives %v", got)
	}
}

func TestOptions(t *testing.T) {
	for _, name := range []string{"Lab", "1lab", "lab-", "a/b", "..", strings.Repeat("a", 21)} {
		if _, err := New(Options{Name: name, Root: t.TempDir()}); err == nil {
			t.Errorf("name %q is taken", name)
		}
	}
	c, err := New(Options{Root: t.TempDir()})
	if err != nil || c.Name != "lab" || !strings.HasSuffix(c.Kubeconfig, "/labs/lab/kubeconfig") {
		t.Errorf("%+v, %v", c, err)
	}
}

func TestLoadSaysThatNothingIsThere(t *testing.T) {
	if _, err := Load(Options{Root: t.TempDir()}); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("error %v", err)
	}
}

func TestOriginalsAt(t *testing.T) {
	const config = "apiServer: {}\ndns:\n  imageTag: v1.14.2\nextra:\n- a: 1\n"
	fresh := func() originals {
		d := &appsv1.Deployment{}
		d.Spec.Template.Spec.Containers = []corev1.Container{{Image: "registry.k8s.io/coredns/coredns:v1.14.2"}}
		return originals{
			Deployment:    d,
			Corefile:      &corev1.ConfigMap{Data: map[string]string{"Corefile": "old"}},
			KubeadmConfig: &corev1.ConfigMap{Data: map[string]string{"ClusterConfiguration": config}},
		}
	}
	for tag, image := range map[string]string{
		"v1.14.2": "registry.k8s.io/coredns/coredns:v1.14.2", "v1.14.6": "registry.k8s.io/coredns/coredns:v1.14.6",
		"1.6.7": "registry.k8s.io/coredns:1.6.7",
	} {
		o := fresh()
		if err := o.at(tag, ""); err != nil {
			t.Fatal(err)
		}
		want := strings.Replace(config, "v1.14.2", tag, 1)
		if got := o.KubeadmConfig.Data["ClusterConfiguration"]; got != want {
			t.Errorf("%s: kubeadm's configuration\n%s\nwant\n%s", tag, got, want)
		}
		if got := o.Deployment.Spec.Template.Spec.Containers[0].Image; got != image || o.Corefile.Data["Corefile"] != "old" {
			t.Errorf("%s: image %s, Corefile %q", tag, got, o.Corefile.Data)
		}
	}
	o := fresh()
	if err := o.at("v1.14.2", "new"); err != nil || o.Corefile.Data["Corefile"] != "new" {
		t.Errorf("Corefile %q, %v", o.Corefile.Data, err)
	}
}

// TestProcessIDTellsProcessesApart holds a number against one process and another that could have had it.
func TestProcessIDTellsProcessesApart(t *testing.T) {
	cmd := exec.CommandContext(t.Context(), "sleep", "60")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	start, ok := started(cmd.Process.Pid)
	p := processID{PID: cmd.Process.Pid, Start: start}
	if !ok || !p.alive() {
		t.Errorf("%+v runs", p)
	}
	if other := (processID{PID: p.PID, Start: start + "0"}); other.alive() {
		t.Error("a process that started at another time is taken for ours")
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(5 * time.Second); p.alive(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("a killed process, not yet waited for, is taken for running")
		}
	}
	_ = cmd.Wait() // killed, as asked
}

func TestLockKeepsOthersOut(t *testing.T) {
	dir := t.TempDir() + "/lab"
	unlock, err := lockLab(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	got := make(chan error, 1)
	go func() {
		second, err := lockLab(t.Context(), dir)
		if err == nil {
			second()
		}
		got <- err
	}()
	select {
	case err := <-got:
		t.Fatalf("the second did not wait: %v", err)
	case <-time.After(500 * time.Millisecond):
	}
	unlock()
	if err := <-got; err != nil {
		t.Error(err)
	}
}

func TestStatusOfNothing(t *testing.T) {
	c, err := New(Options{Root: t.TempDir(), Out: io.Discard})
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	if err := c.Status(t.Context(), &out); err != nil || out.String() != "lab lab: not there\n" {
		t.Errorf("%q, %v", out.String(), err)
	}
}
