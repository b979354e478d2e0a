// SPDX-License-Identifier: Apache-2.0

package kubeadm

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/theseus-gitops/theseus/reconcile/rollout"
	"github.com/theseus-gitops/theseus/reconcile/skew"
	"github.com/theseus-gitops/theseus/reconcile/spec"
)

// signedWithin is how long the controller-manager may take to sign for a new token.
const signedWithin = time.Minute

// JoinRequest is what one machine's join is prepared from.
type JoinRequest struct {
	Act rollout.AddMachine
	// Spec is spec.controlPlane.join, and Contents those of its files, by path.
	Spec     spec.Join
	Contents map[string]Secret
}

// Prepare puts into the cluster what a machine needs to join: a token that lives until the step's time, and the certificates,
// encrypted, which end with the token. It gives the user data, which holds the token and the key to the certificates.
func (c *Credentials) Prepare(ctx context.Context, client kubernetes.Interface, q JoinRequest) (Secret, error) {
	machine := q.Act.Machine
	config, err := clusterConfiguration(ctx, client)
	if err != nil {
		return "", err
	}
	version, err := skew.Parse(machine.KubernetesVersion)
	if err != nil {
		return "", fmt.Errorf("machine %s: %w", machine.Name, err)
	}
	hashes, err := CACertHashes(c.ca)
	if err != nil {
		return "", err
	}
	if q.Act.Taints != nil && q.Spec.NodeRegistration.Taints == nil {
		q.Spec.NodeRegistration.Taints = make([]spec.Taint, len(q.Act.Taints))
		for i, t := range q.Act.Taints {
			q.Spec.NodeRegistration.Taints[i] = spec.Taint(t)
		}
	}
	// A step that is repeated must not leave the token of its first try.
	if err := DeleteCredentials(ctx, client); err != nil {
		return "", err
	}
	token, err := CreateToken(ctx, client, machine.Name, q.Act.Until)
	if err != nil {
		return "", err
	}
	text, err := UserData(Join{
		Machine: machine.Name, Kubernetes: version, Endpoint: config.Endpoint, Token: token, CACertHashes: hashes, CertificateKey: c.key,
		Spec: q.Spec, Contents: q.Contents, IgnorePreflightErrors: q.Spec.NodeRegistration.IgnorePreflightErrors,
	})
	if err != nil {
		return "", err
	}
	if err := c.upload(ctx, client, token); err != nil {
		return "", err
	}
	if err := AwaitSigned(ctx, client, token.ID, signedWithin); err != nil {
		return "", err
	}
	return Secret(text), nil
}

// upload makes Secret kubeadm-certs as kubeadm does, owned by the token, so that it ends with it.
func (c *Credentials) upload(ctx context.Context, client kubernetes.Interface, token Token) error {
	owner, err := client.CoreV1().Secrets(namespace).Get(ctx, tokenPrefix+token.ID, metav1.GetOptions{})
	if err != nil {
		return tokenError(token.ID, "get", err)
	}
	if err := nobodyElse(ctx, client); err != nil {
		return err
	}
	yes := true
	_, err = client.CoreV1().Secrets(namespace).Create(ctx, &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Name: certsName, Namespace: namespace, Labels: map[string]string{credentialsLabel: "certificates"},
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "v1", Kind: "Secret", Name: owner.Name, UID: owner.UID, Controller: &yes, BlockOwnerDeletion: &yes}},
		},
		Data: c.data,
	}, metav1.CreateOptions{FieldManager: fieldManager})
	if err != nil {
		return secretError(certsName, "create", err)
	}
	return nil
}
