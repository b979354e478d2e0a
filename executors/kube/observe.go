// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"context"
	"errors"

	"golang.org/x/sync/errgroup"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/discovery"

	"github.com/theseus-gitops/theseus/reconcile/live"
	"github.com/theseus-gitops/theseus/reconcile/logbook"
)

const (
	// coreDNSName is that of ConfigMap, Deployment and container, as kubeadm makes them.
	coreDNSName = "coredns"
	coreDNSRole = "system:coredns"
	kubeProxy   = "kube-proxy"
	// atOnce is how many of a pass's calls run side by side: most of the gain, without a burst per cluster.
	atOnce = 4
)

// objects is what the API server gave, before it is turned into values. A nil object does not exist.
type objects struct {
	version         string
	nodes           []corev1.Node
	kubeadmConfig   *corev1.ConfigMap
	kubeletConfig   *corev1.ConfigMap
	dnsConfig       *corev1.ConfigMap
	dnsDeployment   *appsv1.Deployment
	dnsRole         *rbacv1.ClusterRole
	dnsPods         []corev1.Pod
	dnsCanary       *corev1.ConfigMap
	kubeProxy       *appsv1.DaemonSet
	kubeProxyConfig *corev1.ConfigMap
	book            *corev1.ConfigMap
}

// Observe reads all that a pass needs to know of the cluster, in 12 calls, and two more at most for logs of CoreDNS pods
// that crashed. An object that does not exist is
// nil in the result; whatever else goes wrong is an error, because half a view must not be taken for a whole one.
// Errors: *UnreachableError, *ForbiddenError (all that lack, joined), *DamagedError, or one that wraps ErrUnauthenticated.
func (c *Client) Observe(ctx context.Context) (live.Kube, error) {
	var got objects
	if err := c.together(ctx, c.questions(&got)); err != nil {
		return live.Kube{}, err
	}
	have, err := got.view()
	if err != nil {
		return live.Kube{}, err
	}
	c.quote(ctx, have.DNS.Pods)
	return have, nil
}

type question func(context.Context) error

func (c *Client) questions(got *objects) []question {
	core, apps := c.kube.CoreV1(), c.kube.AppsV1()
	maps := core.ConfigMaps(logbook.Namespace)
	configMap := func(name string, into **corev1.ConfigMap) question {
		return named(c, operation{"get", "", "configmaps", logbook.Namespace, name}, into, maps.Get)
	}
	return []question{
		func(ctx context.Context) error {
			return c.call(ctx, operation{verb: "get", resource: "/version"}, func(ctx context.Context) error {
				info, err := discovery.ToServerVersionInterfaceWithContext(c.kube.Discovery()).ServerVersionWithContext(ctx)
				if err == nil {
					got.version = info.GitVersion
				}
				return err
			})
		},
		func(ctx context.Context) error {
			return c.call(ctx, operation{verb: "list", resource: "nodes"}, func(ctx context.Context) error {
				list, err := core.Nodes().List(ctx, metav1.ListOptions{})
				if err == nil {
					got.nodes = list.Items
				}
				return err
			})
		},
		func(ctx context.Context) error {
			return c.call(ctx, operation{verb: "list", resource: "pods", namespace: logbook.Namespace}, func(ctx context.Context) error {
				list, err := core.Pods(logbook.Namespace).List(ctx, metav1.ListOptions{LabelSelector: "k8s-app=kube-dns"})
				if err == nil {
					got.dnsPods = list.Items
				}
				return err
			})
		},
		configMap("kubeadm-config", &got.kubeadmConfig),
		configMap("kubelet-config", &got.kubeletConfig),
		configMap(coreDNSName, &got.dnsConfig),
		configMap(live.DNSCanaryName, &got.dnsCanary),
		configMap(kubeProxy, &got.kubeProxyConfig),
		configMap(logbook.Name, &got.book),
		named(c, operation{"get", "apps", "deployments", logbook.Namespace, coreDNSName}, &got.dnsDeployment, apps.Deployments(logbook.Namespace).Get),
		named(c, operation{"get", "apps", "daemonsets", logbook.Namespace, kubeProxy}, &got.kubeProxy, apps.DaemonSets(logbook.Namespace).Get),
		named(c, operation{"get", "rbac.authorization.k8s.io", "clusterroles", "", coreDNSRole}, &got.dnsRole, c.kube.RbacV1().ClusterRoles().Get),
	}
}

// named asks for one object and leaves into nil when it does not exist.
func named[T any](c *Client, o operation, into **T, get func(context.Context, string, metav1.GetOptions) (*T, error)) question {
	return func(ctx context.Context) error {
		return c.call(ctx, o, func(ctx context.Context) error {
			object, err := get(ctx, o.name, metav1.GetOptions{})
			if absent(err) {
				return nil
			}
			if err == nil {
				*into = object
			}
			return err
		})
	}
}

// together asks all questions, a few at once. An unreachable server ends it at once; refused rights are
// gathered, so that a person can grant them all in one go.
func (c *Client) together(ctx context.Context, questions []question) error {
	refused := make([]error, len(questions))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(atOnce)
	for i, ask := range questions {
		group.Go(func() error {
			err := ask(ctx)
			var forbidden *ForbiddenError
			if errors.As(err, &forbidden) {
				refused[i] = err
				return nil
			}
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	return errors.Join(refused...)
}
