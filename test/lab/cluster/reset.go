// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/yaml"
)

const (
	system        = metav1.NamespaceSystem
	originalsFile = "originals.json"
)

// originals are the objects that CoreDNS upgrades touch, as kubeadm made them.
type originals struct {
	Deployment    *appsv1.Deployment  `json:"deployment"`
	Corefile      *corev1.ConfigMap   `json:"corefile"`
	ClusterRole   *rbacv1.ClusterRole `json:"clusterRole"`
	KubeadmConfig *corev1.ConfigMap   `json:"kubeadmConfig"`
}

// keepOriginals writes the originals down, the first time that the lab is up.
func (c *Cluster) keepOriginals(ctx context.Context) error {
	if _, err := os.Stat(filepath.Join(c.Dir, originalsFile)); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	client, err := c.Client()
	if err != nil {
		return err
	}
	var o originals
	get := metav1.GetOptions{}
	if o.Deployment, err = client.AppsV1().Deployments(system).Get(ctx, "coredns", get); err != nil {
		return fmt.Errorf("reading CoreDNS's Deployment: %w", err)
	}
	if o.Corefile, err = client.CoreV1().ConfigMaps(system).Get(ctx, "coredns", get); err != nil {
		return fmt.Errorf("reading CoreDNS's ConfigMap: %w", err)
	}
	if o.ClusterRole, err = client.RbacV1().ClusterRoles().Get(ctx, "system:coredns", get); err != nil {
		return fmt.Errorf("reading CoreDNS's ClusterRole: %w", err)
	}
	if o.KubeadmConfig, err = client.CoreV1().ConfigMaps(system).Get(ctx, "kubeadm-config", get); err != nil {
		return fmt.Errorf("reading kubeadm's ConfigMap: %w", err)
	}
	for _, meta := range []*metav1.ObjectMeta{
		&o.Deployment.ObjectMeta, &o.Corefile.ObjectMeta, &o.ClusterRole.ObjectMeta, &o.KubeadmConfig.ObjectMeta,
	} {
		*meta = metav1.ObjectMeta{Name: meta.Name, Namespace: meta.Namespace, Labels: meta.Labels, Annotations: meta.Annotations}
	}
	delete(o.Deployment.Annotations, "deployment.kubernetes.io/revision") // the controller's own
	return c.writeFile(originalsFile, o)
}

// DefaultCorefile is the Corefile that kubeadm made.
func (c *Cluster) DefaultCorefile() (string, error) {
	o, err := c.originals()
	if err != nil {
		return "", err
	}
	return o.Corefile.Data["Corefile"], nil
}

func (c *Cluster) originals() (originals, error) {
	var o originals
	data, err := os.ReadFile(filepath.Join(c.Dir, originalsFile))
	if err != nil {
		return o, fmt.Errorf("reading what CoreDNS was: %w", err)
	}
	if err := json.Unmarshal(data, &o); err != nil {
		return o, fmt.Errorf("reading %s: %w", originalsFile, err)
	}
	return o, nil
}

// ResetCoreDNS puts all that a CoreDNS upgrade touches back to what kubeadm made, but with this image tag and Corefile
// (empty: kubeadm's own), and removes what Theseus left: logbook, Lease, canaries. It returns when only new pods run,
// and they answer.
func (c *Cluster) ResetCoreDNS(ctx context.Context, tag, corefile string) error {
	o, err := c.originals()
	if err != nil {
		return err
	}
	client, err := c.Client()
	if err != nil {
		return err
	}
	if err := o.at(tag, corefile); err != nil {
		return err
	}
	if err := removeTraces(ctx, client); err != nil {
		return fmt.Errorf("removing what Theseus left: %w", err)
	}
	if err := o.restore(ctx, client); err != nil {
		return err
	}
	if err := awaitRollout(ctx, client); err != nil {
		return err
	}
	return c.awaitDNS(ctx)
}

// at changes the originals to another tag and Corefile.
func (o *originals) at(tag, corefile string) error {
	if corefile != "" {
		o.Corefile.Data = map[string]string{"Corefile": corefile}
	}
	container := &o.Deployment.Spec.Template.Spec.Containers[0]
	repository := container.Image[:strings.LastIndexByte(container.Image, ':')]
	if !strings.HasPrefix(tag, "v") {
		// Up to 1.7.1 the image lay one level higher and its tags had no v (kubernetes/kubernetes#99751).
		repository = path.Dir(repository)
	}
	container.Image = repository + ":" + tag

	const key = "ClusterConfiguration"
	var config map[string]any
	if err := yaml.Unmarshal([]byte(o.KubeadmConfig.Data[key]), &config); err != nil {
		return fmt.Errorf("reading kubeadm's %s: %w", key, err)
	}
	config["dns"] = map[string]any{"imageTag": tag}
	data, err := yaml.Marshal(config) // the library that kubeadm itself writes with: nothing else changes
	if err != nil {
		return fmt.Errorf("packing kubeadm's %s: %w", key, err)
	}
	o.KubeadmConfig.Data[key] = string(data)
	return nil
}

// restore writes the four objects, and sees to it that every pod of CoreDNS begins anew.
func (o *originals) restore(ctx context.Context, client kubernetes.Interface) error {
	maps := client.CoreV1().ConfigMaps(system)
	if err := put(ctx, o.Corefile, maps.Update, maps.Create); err != nil {
		return fmt.Errorf("restoring CoreDNS's ConfigMap: %w", err)
	}
	if err := put(ctx, o.KubeadmConfig, maps.Update, maps.Create); err != nil {
		return fmt.Errorf("restoring kubeadm's ConfigMap: %w", err)
	}
	roles := client.RbacV1().ClusterRoles()
	if err := put(ctx, o.ClusterRole, roles.Update, roles.Create); err != nil {
		return fmt.Errorf("restoring CoreDNS's ClusterRole: %w", err)
	}
	deployments := client.AppsV1().Deployments(system)
	before, err := deployments.Get(ctx, o.Deployment.Name, metav1.GetOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("reading CoreDNS's Deployment: %w", err)
	}
	if err := put(ctx, o.Deployment, deployments.Update, deployments.Create); err != nil {
		return fmt.Errorf("restoring CoreDNS's Deployment: %w", err)
	}
	if !equality.Semantic.DeepEqual(before.Spec.Template, o.Deployment.Spec.Template) {
		return nil // another template: the Deployment replaces its pods itself
	}
	err = client.CoreV1().Pods(system).DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{LabelSelector: dnsPods})
	if err != nil {
		return fmt.Errorf("restarting CoreDNS: %w", err)
	}
	return nil
}

// put updates an object whatever its version, or creates it when it is gone.
func put[T any](ctx context.Context, object T,
	update func(context.Context, T, metav1.UpdateOptions) (T, error),
	create func(context.Context, T, metav1.CreateOptions) (T, error),
) error {
	_, err := update(ctx, object, metav1.UpdateOptions{})
	if apierrors.IsNotFound(err) {
		_, err = create(ctx, object, metav1.CreateOptions{})
	}
	return err
}

// removeTraces deletes the logbook, the Lease, and every pod, Deployment and ConfigMap in kube-system whose name begins
// with theseus-: canaries, and what they read.
func removeTraces(ctx context.Context, client kubernetes.Interface) error {
	core, apps, list := client.CoreV1(), client.AppsV1().Deployments(system), metav1.ListOptions{}
	gone := func(err error) error {
		if apierrors.IsNotFound(err) {
			return nil
		}
		return err
	}
	var errs []error
	errs = append(errs, gone(client.CoordinationV1().Leases(system).Delete(ctx, "theseus", metav1.DeleteOptions{})))
	deployments, err := apps.List(ctx, list)
	errs = append(errs, err)
	for _, d := range deployments.Items {
		if strings.HasPrefix(d.Name, "theseus-") {
			errs = append(errs, gone(apps.Delete(ctx, d.Name, metav1.DeleteOptions{})))
		}
	}
	pods, err := core.Pods(system).List(ctx, list)
	errs = append(errs, err)
	now := int64(0)
	for _, p := range pods.Items {
		if strings.HasPrefix(p.Name, "theseus-") {
			errs = append(errs, gone(core.Pods(system).Delete(ctx, p.Name, metav1.DeleteOptions{GracePeriodSeconds: &now})))
		}
	}
	configs, err := core.ConfigMaps(system).List(ctx, list)
	errs = append(errs, err)
	for _, m := range configs.Items {
		if m.Name == "theseus" || strings.HasPrefix(m.Name, "theseus-") {
			errs = append(errs, gone(core.ConfigMaps(system).Delete(ctx, m.Name, metav1.DeleteOptions{})))
		}
	}
	return errors.Join(errs...)
}
