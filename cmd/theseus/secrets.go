// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
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

// secretError says that a secret is not there or can't be used; only a person can change that.
type secretError struct{ message, remedy string }

// Error implements error.
func (e *secretError) Error() string { return e.message + "; " + e.remedy }

// key gives one key of a secret.
func (s secretSource) key(ctx context.Context, namespace, name, key string) ([]byte, error) {
	data, err := s.all(ctx, namespace, name)
	if err != nil {
		return nil, err
	}
	value, ok := data[key]
	if !ok {
		return nil, &secretError{
			message: fmt.Sprintf("secret %s has no key %s", name, key),
			remedy:  "add the key, or name one that is there: " + some(slices.Collect(maps.Keys(data))),
		}
	}
	return value, nil
}

func (s secretSource) folder(name string) (map[string][]byte, error) {
	if name != filepath.Base(name) || strings.HasPrefix(name, ".") {
		return nil, &secretError{fmt.Sprintf("secret %q is not a name", name), "allowed: the name of a folder in --secrets " + s.dir}
	}
	dir := filepath.Join(s.dir, name)
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, s.missing(name, err)
	}
	data := map[string][]byte{}
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), ".") { // a mounted Secret's own bookkeeping
			continue
		}
		value, err := os.ReadFile(filepath.Join(dir, e.Name())) //nolint:gosec // the folder is the user's own choice
		if err != nil {
			return nil, &secretError{fmt.Sprintf("secret %s: %v", name, err), "--secrets wants files that can be read, as DIR/NAME/KEY"}
		}
		data[e.Name()] = value
	}
	return data, nil
}

// missing says why there is no folder of a secret, and which there are.
func (s secretSource) missing(name string, err error) error {
	entries, above := os.ReadDir(s.dir)
	switch {
	case above != nil:
		return &secretError{fmt.Sprintf("secret %s: --secrets %s can't be read: %v", name, s.dir, above), "name the folder that holds secrets as DIR/NAME/KEY"}
	case !errors.Is(err, fs.ErrNotExist):
		return &secretError{fmt.Sprintf("secret %s: %v", name, err), "--secrets wants folders that can be read, as DIR/NAME/KEY"}
	}
	var names []string
	for _, e := range entries {
		if e.IsDir() && !strings.HasPrefix(e.Name(), ".") {
			names = append(names, e.Name())
		}
	}
	return &secretError{
		message: fmt.Sprintf("secret %s is not in --secrets %s", name, s.dir),
		remedy:  fmt.Sprintf("add %s with a file for each key; there are: %s", filepath.Join(s.dir, name), some(names)),
	}
}

func (s secretSource) cluster(ctx context.Context, namespace, name string) (map[string][]byte, error) {
	config, err := rest.InClusterConfig()
	if errors.Is(err, rest.ErrNotInCluster) {
		return nil, &secretError{
			message: fmt.Sprintf("secret %s: this is not a pod, so there is no cluster to read it from", name),
			remedy:  fmt.Sprintf("give --secrets DIR with DIR/%s/KEY", name),
		}
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
		return nil, secretUnread(namespace+"/"+name, err)
	}
	return secret.Data, nil
}

// secretUnread tells a secret that is missing or forbidden from an API server that does not answer.
func secretUnread(name string, err error) error {
	switch {
	case apierrors.IsNotFound(err):
		return &secretError{fmt.Sprintf("secret %s does not exist in the cluster that the job runs in", name), "create it there, or correct its name"}
	case apierrors.IsForbidden(err):
		return &secretError{fmt.Sprintf("the job's ServiceAccount may not read secret %s", name), "bind it to a Role with the verb get on that secret"}
	}
	return fmt.Errorf("secret %s: %w", name, err)
}
