// SPDX-License-Identifier: Apache-2.0

package kubeadm

import (
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/theseus-gitops/theseus/reconcile/kubeadmconfig"
	"github.com/theseus-gitops/theseus/reconcile/rollout"
)

const (
	// certsName is the Secret in which kubeadm gives a joining machine the cluster's certificates, encrypted.
	certsName = "kubeadm-certs"
	// credentialsLabel is on all that Theseus makes for a join, so that what a killed run left is found.
	credentialsLabel = "theseus.dev/credentials"
	obtainName       = "theseus-credentials"
	obtainKey        = "kubeadm.yaml"
)

// Credentials are the cluster's certificates as kubeadm gives them to a machine that joins. They stay in memory.
type Credentials struct {
	// data is kubeadm-certs as kubeadm made it, key what it is encrypted with.
	data map[string][]byte
	key  Secret
	ca   []byte
	etcd pair
}

type pair struct{ certificate, key []byte }

// EtcdCACertificate and EtcdCAKey are etcd's CA, PEM: who has them may do anything to etcd.
func (c *Credentials) EtcdCACertificate() []byte { return c.etcd.certificate }

// EtcdCAKey is the key to EtcdCACertificate.
func (c *Credentials) EtcdCAKey() []byte { return c.etcd.key }

// LogValue implements slog.LogValuer.
func (c *Credentials) LogValue() slog.Value { return slog.StringValue(hidden) }

// String keeps them out of texts.
func (c *Credentials) String() string { return hidden }

// GoString keeps them out of %#v.
func (c *Credentials) GoString() string { return hidden }

// ObtainOptions say how.
type ObtainOptions struct {
	// KubeadmPath is kubeadm on the node.
	KubeadmPath string
	// Tell hears what is waited for.
	Tell func(text string)
}

// Obtain has kubeadm on a control-plane node print the cluster's certificates into Secret kubeadm-certs, encrypted with a key
// that only a Secret of ours holds, reads them, and removes everything again, after a failure too. Nothing secret is in the
// pod's spec, its output, or on the node. These rights equal root on the cluster: docs/rights.md.
func Obtain(ctx context.Context, client kubernetes.Interface, act rollout.ObtainCredentials, o ObtainOptions) (c *Credentials, err error) {
	if err := DeleteCredentials(ctx, client); err != nil {
		return nil, err
	}
	if err := nobodyElse(ctx, client); err != nil {
		return nil, err
	}
	config, err := clusterConfiguration(ctx, client)
	if err != nil {
		return nil, err
	}
	key, err := certificateKey()
	if err != nil {
		return nil, err
	}
	defer func() {
		cleaning, cancel := context.WithTimeout(context.WithoutCancel(ctx), 30*time.Second)
		defer cancel()
		err = errors.Join(err, removeObtained(cleaning, client, key))
	}()
	if err := startObtaining(ctx, client, act, o, config, key); err != nil {
		return nil, err
	}
	if err := awaitPod(ctx, client, obtainName, 2*time.Minute, o.Tell); err != nil {
		return nil, obtainFailure(act, err)
	}
	secret, err := client.CoreV1().Secrets(namespace).Get(ctx, certsName, metav1.GetOptions{})
	if err != nil {
		return nil, fmt.Errorf("secret %s, which kubeadm on %s should have made: %w", certsName, act.Node, err)
	}
	return openCertificates(secret.Data, key)
}

// nobodyElse refuses to overwrite the certificates of a join that a person has begun.
func nobodyElse(ctx context.Context, client kubernetes.Interface) error {
	_, err := client.CoreV1().Secrets(namespace).Get(ctx, certsName, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return secretError(certsName, "get", err)
	}
	return &rollout.Failure{
		Reason:  "JoinUnderWay",
		Message: "Secret kube-system/" + certsName + " is there, and Theseus did not make it: somebody is joining a machine by hand (kubeadm deletes it after 2 hours)",
		Remedy:  "wait for that join to end, or delete the Secret: kubectl -n kube-system delete secret " + certsName, Elsewhere: true,
	}
}

func clusterConfiguration(ctx context.Context, client kubernetes.Interface) (kubeadmconfig.Facts, error) {
	config, err := client.CoreV1().ConfigMaps(namespace).Get(ctx, configName, metav1.GetOptions{})
	if err != nil {
		return kubeadmconfig.Facts{}, explain(where, "get", err)
	}
	facts, err := kubeadmconfig.Read(config.Data[configKey])
	if err != nil {
		return facts, fmt.Errorf("%s: key %s: %w", where, configKey, err)
	}
	return facts, nil
}

func certificateKey() (Secret, error) {
	key := make([]byte, 32)
	if _, err := rand.Read(key); err != nil {
		return "", fmt.Errorf("a key for the certificates: %w", err)
	}
	return Secret(hex.EncodeToString(key)), nil
}

// startObtaining makes the Secret with kubeadm's configuration, and the pod that owns it.
func startObtaining(ctx context.Context, client kubernetes.Interface, act rollout.ObtainCredentials, o ObtainOptions, config kubeadmconfig.Facts, key Secret) error {
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: obtainName, Namespace: namespace, Labels: map[string]string{credentialsLabel: "obtain"}},
		StringData: map[string]string{obtainKey: uploadConfiguration(act.Node, config, key)},
	}
	if _, err := client.CoreV1().Secrets(namespace).Create(ctx, secret, metav1.CreateOptions{FieldManager: fieldManager}); err != nil {
		return secretError(obtainName, "create", err)
	}
	if _, err := client.CoreV1().Pods(namespace).Create(ctx, obtainPod(act, o, config), metav1.CreateOptions{FieldManager: fieldManager}); err != nil {
		return podError(obtainName, "create", err)
	}
	return nil
}

// uploadConfiguration is complete, so that kubeadm looks nothing up online. The node's own kubeadm reads it: v1beta4 from 1.31 on.
func uploadConfiguration(node string, config kubeadmconfig.Facts, key Secret) string {
	return strings.Join([]string{
		"apiVersion: kubeadm.k8s.io/v1beta4", "kind: InitConfiguration", "certificateKey: " + string(key),
		"nodeRegistration:", "  name: " + node, "  criSocket: unix:///run/containerd/containerd.sock",
		"---",
		"apiVersion: kubeadm.k8s.io/v1beta4", "kind: ClusterConfiguration",
		"kubernetesVersion: " + config.KubernetesVersion, "controlPlaneEndpoint: " + config.Endpoint, "certificatesDir: " + config.CertificatesDir, "",
	}, "\n")
}

// openCertificates decrypts what kubeadm uploaded.
func openCertificates(data map[string][]byte, key Secret) (*Credentials, error) {
	c := &Credentials{data: data, key: key}
	for name, into := range map[string]*[]byte{"ca.crt": &c.ca, "etcd-ca.crt": &c.etcd.certificate, "etcd-ca.key": &c.etcd.key, "ca.key": new([]byte)} {
		sealed, ok := data[name]
		if !ok {
			return nil, &rollout.Failure{
				Reason:  "CertificateKeyMissing",
				Message: "kubeadm did not upload " + name + ": the control-plane machines do not hold the key of that CA (an external CA)",
				Remedy:  "machines of such a cluster can't be joined without its keys, and are not supported", Elsewhere: true,
			}
		}
		plain, err := unseal(sealed, key)
		if err != nil {
			return nil, fmt.Errorf("secret %s, key %s can't be decrypted with the key that it was made with", certsName, name)
		}
		*into = plain
	}
	return c, nil
}

// unseal decrypts one value: AES-256-GCM, the nonce first (cmd/kubeadm/app/util/crypto/crypto.go).
func unseal(sealed []byte, key Secret) ([]byte, error) {
	raw, err := hex.DecodeString(string(key))
	if err != nil {
		return nil, errors.New("the certificate key is not hexadecimal")
	}
	block, err := aes.NewCipher(raw)
	if err != nil {
		return nil, fmt.Errorf("the certificate key: %w", err)
	}
	gcm, err := cipher.NewGCM(block)
	if err != nil {
		return nil, fmt.Errorf("the certificate key: %w", err)
	}
	if len(sealed) < gcm.NonceSize() {
		return nil, errors.New("too short")
	}
	return gcm.Open(nil, sealed[:gcm.NonceSize()], sealed[gcm.NonceSize():], nil)
}

// obtainFailure says what kept kubeadm from doing its part.
func obtainFailure(act rollout.ObtainCredentials, err error) error {
	var failed *podFailure
	if !errors.As(err, &failed) {
		return err
	}
	return fmt.Errorf("%w", &rollout.Failure{
		Reason:  "CredentialsNotObtained",
		Message: fmt.Sprintf("kubeadm on node %s did not upload the cluster's certificates: %s", act.Node, failed.why),
		Remedy:  "see the message; controlPlane.join.kubeadmPath says where kubeadm is on the machines", Elsewhere: true,
	})
}
