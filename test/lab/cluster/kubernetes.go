// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"os"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
)

// kubernetesService is the name that every kubeadm cluster's DNS knows.
const kubernetesService = "kubernetes.default.svc.cluster.local."

// Client is an administrator's, through the endpoint.
func (c *Cluster) Client() (kubernetes.Interface, error) {
	config, err := clientcmd.BuildConfigFromFlags("", c.Kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("reading the lab's kubeconfig: %w", err)
	}
	config.Timeout = 15 * time.Second
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("reading the lab's kubeconfig: %w", err)
	}
	return client, nil
}

func (c *Cluster) awaitNode(ctx context.Context, machine string) error {
	client, err := c.Client()
	if err != nil {
		return err
	}
	return poll(ctx, 2*time.Minute, 300*time.Millisecond, func(ctx context.Context) error {
		node, err := client.CoreV1().Nodes().Get(ctx, machine, metav1.GetOptions{})
		if err != nil {
			return err
		}
		for _, condition := range node.Status.Conditions {
			if condition.Type == corev1.NodeReady {
				if condition.Status == corev1.ConditionTrue {
					return nil
				}
				return fmt.Errorf("node %s: %s", node.Name, condition.Message)
			}
		}
		return fmt.Errorf("node %s has no Ready condition yet", node.Name)
	})
}

// awaitDNS waits until CoreDNS has rolled out and answers at its Service's address, which only kube-proxy makes reachable.
func (c *Cluster) awaitDNS(ctx context.Context) error {
	client, err := c.Client()
	if err != nil {
		return err
	}
	if err := awaitRollout(ctx, client); err != nil {
		return err
	}
	return poll(ctx, time.Minute, 200*time.Millisecond, func(ctx context.Context) error {
		_, err := c.Resolve(ctx, kubernetesService)
		return err
	})
}

// DNSAddress is the cluster's DNS, reachable from this host: the tenth address of the Services' range, as kubeadm has it.
func (c *Cluster) DNSAddress() netip.AddrPort {
	address := c.Config.Services.Masked().Addr().As4()
	address[3] = 10
	return netip.AddrPortFrom(netip.AddrFrom4(address), 53)
}

// Resolve asks the cluster's DNS for a name's IPv4 addresses, through its Service, as a pod would.
func (c *Cluster) Resolve(ctx context.Context, name string) ([]netip.Addr, error) {
	resolver := net.Resolver{PreferGo: true, Dial: func(ctx context.Context, network, _ string) (net.Conn, error) {
		d := net.Dialer{Timeout: 2 * time.Second}
		return d.DialContext(ctx, network, c.DNSAddress().String())
	}}
	addresses, err := resolver.LookupNetIP(ctx, "ip4", name)
	if err != nil {
		return nil, fmt.Errorf("asking the cluster's DNS: %w", err)
	}
	return addresses, nil
}

// Load finds a lab that is up, without changing it.
func Load(o Options) (*Cluster, error) {
	c, err := New(o)
	if err != nil {
		return nil, err
	}
	if err := c.readConfig(); err != nil {
		return nil, err
	}
	if _, err := os.Stat(c.Kubeconfig); err != nil {
		return nil, fmt.Errorf("lab %s is not up (lab up --name %s): %w", c.Name, c.Name, err)
	}
	return c, nil
}
