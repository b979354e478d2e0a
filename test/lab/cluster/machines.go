// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ensureMachines makes the control plane, one machine after another: the first with kubeadm init, each further one with
// kubeadm join. Once there are as many as asked for, whatever their names, nothing is done.
func (c *Cluster) ensureMachines(ctx context.Context) error {
	for {
		have, err := c.registry(ctx)
		if err != nil {
			return err
		}
		if len(have) > 0 {
			if err := c.awaitKubeconfig(ctx); err != nil {
				return err
			}
		}
		if len(have) >= c.options.Machines {
			return c.removeJoinSecrets(ctx)
		}
		if err := c.makeMachine(ctx, have, c.machine(len(have)+1)); err != nil {
			return err
		}
	}
}

// makeMachine makes one machine more and waits for its Node.
func (c *Cluster) makeMachine(ctx context.Context, have map[string]asked, name string) error {
	began := time.Now()
	userData, err := c.userData(ctx, name, len(have) == 0)
	if err != nil {
		return err
	}
	machines := maps.Clone(have)
	machines[name] = asked{
		Role: "control-plane", Pool: "control-plane", KubernetesVersion: c.options.Kubernetes, Image: c.Config.Image,
		Created: began.UTC().Format(time.RFC3339), Serving: true, Values: map[string]string{},
	}
	if err := c.apply(ctx, machines, map[string]string{name: userData}); err != nil {
		return err
	}
	if err := c.awaitUserData(ctx, name); err != nil {
		return err
	}
	if len(have) == 0 {
		if err := c.awaitKubeconfig(ctx); err != nil {
			return err
		}
	}
	if err := c.awaitNode(ctx, name); err != nil {
		return err
	}
	c.say("  %-48s %5.1f s", name, time.Since(began).Seconds())
	return nil
}

// awaitUserData waits for kubeadm to end in a machine.
func (c *Cluster) awaitUserData(ctx context.Context, machine string) error {
	const unit = "lab-user-data.service"
	return poll(ctx, 4*time.Minute, 500*time.Millisecond, func(ctx context.Context) error {
		state, err := c.Exec(ctx, machine, "systemctl", "show", "--property=ActiveState", "--value", unit)
		if err != nil {
			return err
		}
		switch state = strings.TrimSpace(state); state {
		case "active":
			return nil
		case "failed":
			log, err := c.Exec(ctx, machine, "tail", "-n", "40", "/var/log/user-data.log")
			return &finalError{errors.Join(fmt.Errorf("the machine's user data failed; its log ends:\n%s", log), err)}
		default:
			return fmt.Errorf("%s is %s", unit, state)
		}
	})
}

// awaitKubeconfig takes the administrator's kubeconfig from the first machine, once. Its server is the endpoint: kubeadm
// writes controlPlaneEndpoint there.
func (c *Cluster) awaitKubeconfig(ctx context.Context) error {
	if _, err := os.Stat(c.Kubeconfig); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	first := c.machine(1)
	if err := c.awaitUserData(ctx, first); err != nil {
		return err
	}
	admin, err := c.Exec(ctx, first, "cat", "/etc/kubernetes/admin.conf")
	if err != nil {
		return err
	}
	return c.writeRaw("kubeconfig", []byte(admin))
}

// awaitControlPlane waits until the kubelets have reported every static pod ready.
func (c *Cluster) awaitControlPlane(ctx context.Context) error {
	client, err := c.Client()
	if err != nil {
		return err
	}
	return poll(ctx, time.Minute, 300*time.Millisecond, func(ctx context.Context) error {
		pods, err := client.CoreV1().Pods(system).List(ctx, metav1.ListOptions{LabelSelector: "tier=control-plane"})
		if err != nil {
			return err
		}
		const parts = 4
		if len(pods.Items) < parts*c.options.Machines {
			return fmt.Errorf("%d static pods", len(pods.Items))
		}
		for _, p := range pods.Items {
			if !slices.ContainsFunc(p.Status.Conditions, func(c corev1.PodCondition) bool { return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue }) {
				return fmt.Errorf("pod %s is not ready", p.Name)
			}
		}
		return nil
	})
}

// awaitProxy waits for kube-proxy on every machine.
func (c *Cluster) awaitProxy(ctx context.Context) error {
	client, err := c.Client()
	if err != nil {
		return err
	}
	return poll(ctx, time.Minute, 300*time.Millisecond, func(ctx context.Context) error {
		d, err := client.AppsV1().DaemonSets(system).Get(ctx, "kube-proxy", metav1.GetOptions{})
		if err != nil {
			return err
		}
		if s := d.Status; s.ObservedGeneration < d.Generation || s.NumberAvailable < s.DesiredNumberScheduled || s.DesiredNumberScheduled == 0 {
			return fmt.Errorf("kube-proxy: %d of %d available", s.NumberAvailable, s.DesiredNumberScheduled)
		}
		return nil
	})
}

// removeJoinSecrets deletes what let the machines join, as their maker should: it lives for hours otherwise.
func (c *Cluster) removeJoinSecrets(ctx context.Context) error {
	client, err := c.Client()
	if err != nil {
		return err
	}
	secrets := client.CoreV1().Secrets(system)
	if err := secrets.Delete(ctx, "kubeadm-certs", metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("deleting kubeadm's certificates: %w", err)
	}
	err = secrets.DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{FieldSelector: "type=bootstrap.kubernetes.io/token"})
	if err != nil {
		return fmt.Errorf("deleting kubeadm's tokens: %w", err)
	}
	return nil
}
