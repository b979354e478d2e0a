// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// secretSource reads secrets: from a folder on a workstation, else from the cluster that the job runs in.
type secretSource struct{ dir string }

// all gives every key of a secret. An empty namespace is the job's own.
func (s secretSource) all(ctx context.Context, namespace, name string) (map[string][]byte, error) {
	if s.dir != "" {
		return s.folder(name)
	}
	return s.cluster(ctx, namespace, name)
}

// key gives one key of a secret.
func (s secretSource) key(ctx context.Context, namespace, name, key string) ([]byte, error) {
	data, err := s.all(ctx, namespace, name)
	if err != nil {
		return nil, err
	}
	value, ok := data[key]
	if !ok {
		return nil, fmt.Errorf("secret %s has no key %s", name, key)
	}
	return value, nil
}

func (s secretSource) folder(name string) (map[string][]byte, error) {
	if name != filepath.Base(name) || strings.HasPrefix(name, ".") {
		return nil, fmt.Errorf("secret %q is not a name", name)
	}
	dir := filepath.Join(s.dir, name)
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("secret %s: %w (--secrets wants DIR/NAME/KEY)", name, err)
	}
	data := map[string][]byte{}
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), ".") { // a mounted Secret's own bookkeeping
			continue
		}
		value, err := os.ReadFile(filepath.Join(dir, e.Name())) //nolint:gosec // the folder is the user's own choice
		if err != nil {
			return nil, fmt.Errorf("secret %s: %w", name, err)
		}
		data[e.Name()] = value
	}
	return data, nil
}

func (s secretSource) cluster(ctx context.Context, namespace, name string) (map[string][]byte, error) {
	config, err := rest.InClusterConfig()
	if errors.Is(err, rest.ErrNotInCluster) {
		return nil, fmt.Errorf("secret %s: this is not a pod, so there is no cluster to read it from: give --secrets DIR with DIR/%s/KEY", name, name)
	}
	if err != nil {
		return nil, fmt.Errorf("secret %s: %w", name, err)
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("secret %s: %w", name, err)
	}
	if namespace == "" {
		own, err := os.ReadFile("/var/run/secrets/kubernetes.io/serviceaccount/namespace")
		if err != nil {
			return nil, fmt.Errorf("secret %s: the job's own namespace: %w", name, err)
		}
		namespace = strings.TrimSpace(string(own))
	}
	secret, err := client.CoreV1().Secrets(namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return nil, fmt.Errorf("secret %s/%s: %w", namespace, name, err)
	}
	return secret.Data, nil
}
