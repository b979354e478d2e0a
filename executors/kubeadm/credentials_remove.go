// SPDX-License-Identifier: Apache-2.0

package kubeadm

import (
	"context"
	"errors"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// CredentialsLeft reports whether anything of ours is in the cluster that lets a machine join, or was to obtain it.
func CredentialsLeft(ctx context.Context, client kubernetes.Interface) (bool, error) {
	secrets, err := client.CoreV1().Secrets(namespace).List(ctx, metav1.ListOptions{LabelSelector: credentialsLabel})
	if err != nil {
		return false, secretError("", "list", err)
	}
	if len(secrets.Items) > 0 {
		return true, nil
	}
	pods, err := client.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{LabelSelector: credentialsLabel})
	if err != nil {
		return false, podError("", "list", err)
	}
	return len(pods.Items) > 0, nil
}

// DeleteCredentials removes every trace of joins that is ours: tokens, certificates, the pod that obtained them and its
// Secret. What kubeadm made for us and a killed run left is known by the key, which a Secret of ours still has.
func DeleteCredentials(ctx context.Context, client kubernetes.Interface) error {
	secrets, err := client.CoreV1().Secrets(namespace).List(ctx, metav1.ListOptions{LabelSelector: credentialsLabel})
	if err != nil {
		return secretError("", "list", err)
	}
	pods, err := client.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{LabelSelector: credentialsLabel})
	if err != nil {
		return podError("", "list", err)
	}
	var errs []error
	for _, p := range pods.Items {
		errs = append(errs, deletePod(ctx, client, p.Name))
	}
	for _, s := range secrets.Items {
		if s.Name == obtainName {
			errs = append(errs, removeObtained(ctx, client, keyIn(s.Data[obtainKey])))
			continue
		}
		errs = append(errs, deleteSecret(ctx, client, s.Name))
	}
	_, err = DeleteLeftTokens(ctx, client)
	return errors.Join(append(errs, err)...)
}

// keyIn is the certificate key in kubeadm's configuration, as we wrote it.
func keyIn(configuration []byte) Secret {
	for line := range strings.Lines(string(configuration)) {
		if key, ok := strings.CutPrefix(line, "certificateKey: "); ok {
			return Secret(strings.TrimSpace(key))
		}
	}
	return ""
}

// removeObtained removes pod and Secret of Obtain, and what kubeadm made with that key: the certificates, and the token whose
// end they wait for. The Secret with the key goes last.
func removeObtained(ctx context.Context, client kubernetes.Interface, key Secret) error {
	errs := []error{deletePod(ctx, client, obtainName)}
	certs, err := client.CoreV1().Secrets(namespace).Get(ctx, certsName, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
	case err != nil:
		errs = append(errs, secretError(certsName, "get", err))
	case certs.Labels[credentialsLabel] != "" || decrypts(certs.Data, key):
		for _, owner := range certs.OwnerReferences {
			if owner.Kind == "Secret" && strings.HasPrefix(owner.Name, tokenPrefix) {
				errs = append(errs, deleteSecret(ctx, client, owner.Name))
			}
		}
		errs = append(errs, deleteSecret(ctx, client, certsName))
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	return deleteSecret(ctx, client, obtainName)
}

// decrypts reports whether certificates were uploaded with that key, all of them or what a cluster with an external CA has.
func decrypts(data map[string][]byte, key Secret) bool {
	for _, sealed := range data {
		if _, err := unseal(sealed, key); err == nil {
			return true
		}
	}
	return false
}

func deleteSecret(ctx context.Context, client kubernetes.Interface, name string) error {
	err := client.CoreV1().Secrets(namespace).Delete(ctx, name, metav1.DeleteOptions{})
	if err == nil || apierrors.IsNotFound(err) {
		return nil
	}
	return secretError(name, "delete", err)
}

// deletePod ends a pod of ours at once. It holds nothing that needs time to end.
func deletePod(ctx context.Context, client kubernetes.Interface, name string) error {
	now := int64(0)
	err := client.CoreV1().Pods(namespace).Delete(ctx, name, metav1.DeleteOptions{GracePeriodSeconds: &now})
	if err == nil || apierrors.IsNotFound(err) {
		return nil
	}
	return podError(name, "delete", err)
}
