// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"context"
	"net"
	"net/netip"
	"sync"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

const system = "kube-system"

func client(t *testing.T) kubernetes.Interface {
	t.Helper()
	c, err := lab.Client()
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// dnsState is what a CoreDNS upgrade may touch.
type dnsState struct {
	image    string
	mounted  string // ConfigMap key that the pods read as Corefile
	data     map[string]string
	ready    int32
	versions map[string]string // resourceVersions
}

func observe(t *testing.T) dnsState {
	t.Helper()
	c, get := client(t), metav1.GetOptions{}
	config, err := c.CoreV1().ConfigMaps(system).Get(t.Context(), "coredns", get)
	if err != nil {
		t.Fatal(err)
	}
	deployment, err := c.AppsV1().Deployments(system).Get(t.Context(), "coredns", get)
	if err != nil {
		t.Fatal(err)
	}
	s := dnsState{
		image: deployment.Spec.Template.Spec.Containers[0].Image, data: config.Data, ready: deployment.Status.ReadyReplicas,
		versions: map[string]string{"configmap/coredns": config.ResourceVersion, "deployment/coredns": deployment.ResourceVersion},
	}
	for _, v := range deployment.Spec.Template.Spec.Volumes {
		if v.ConfigMap != nil && v.ConfigMap.Name == "coredns" && len(v.ConfigMap.Items) > 0 {
			s.mounted = v.ConfigMap.Items[0].Key
		}
	}
	for _, name := range []string{"kubeadm-config", "kubelet-config", "kube-proxy", "theseus"} {
		m, err := c.CoreV1().ConfigMaps(system).Get(t.Context(), name, get)
		switch {
		case apierrors.IsNotFound(err):
		case err != nil:
			t.Fatal(err)
		default:
			s.versions["configmap/"+name] = m.ResourceVersion
		}
	}
	if lease, err := c.CoordinationV1().Leases(system).Get(t.Context(), "theseus", get); err == nil {
		s.versions["lease/theseus"] = lease.ResourceVersion
	}
	return s
}

func kubeadmConfig(t *testing.T) string {
	t.Helper()
	m, err := client(t).CoreV1().ConfigMaps(system).Get(t.Context(), "kubeadm-config", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return m.Data["ClusterConfiguration"]
}

// leftovers are the canary's traces; there must be none after a run.
func leftovers(t *testing.T) []string {
	t.Helper()
	var out []string
	if _, err := client(t).CoreV1().Pods(system).Get(t.Context(), "theseus-coredns-canary", metav1.GetOptions{}); err == nil {
		out = append(out, "pod")
	}
	if _, err := client(t).CoreV1().ConfigMaps(system).Get(t.Context(), "theseus-coredns-canary", metav1.GetOptions{}); err == nil {
		out = append(out, "configmap")
	}
	return out
}

// prober asks the cluster's DNS Service, through kube-proxy, again and again.
type prober struct {
	cancel context.CancelFunc
	done   sync.WaitGroup
	asked  int
	failed []string
}

// probe begins to ask. A question is tried twice, as a resolver does, before it counts as failed: a pod that ends may
// take one packet with it.
func probe(t *testing.T) *prober {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	p := &prober{cancel: cancel}
	address := net.JoinHostPort(dnsAddress().String(), "53")
	p.done.Go(func() {
		for ctx.Err() == nil {
			err := ask(ctx, address)
			if err != nil && ctx.Err() == nil {
				err = ask(ctx, address)
			}
			if ctx.Err() != nil {
				return
			}
			p.asked++
			if err != nil {
				p.failed = append(p.failed, time.Now().Format("15:04:05.000 ")+err.Error())
			}
			time.Sleep(100 * time.Millisecond)
		}
	})
	return p
}

// stop ends the questions and requires that all were answered.
func (p *prober) stop(t *testing.T) {
	t.Helper()
	p.cancel()
	p.done.Wait()
	t.Logf("DNS through kube-proxy: %d questions, %d unanswered", p.asked, len(p.failed))
	if p.asked == 0 {
		t.Error("the prober never asked")
	}
	if len(p.failed) > 0 {
		t.Errorf("DNS did not answer throughout: %v", p.failed)
	}
}

func ask(ctx context.Context, address string) error {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	resolver := net.Resolver{PreferGo: true, Dial: func(ctx context.Context, network, _ string) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, network, address)
	}}
	_, err := resolver.LookupHost(ctx, "kubernetes.default.svc.cluster.local.")
	return err
}

// dnsAddress is the tenth address of the Services' range, where kubeadm puts kube-dns.
func dnsAddress() netip.Addr {
	a := lab.Config.Services.Addr()
	for range 10 {
		a = a.Next()
	}
	return a
}
