// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"context"
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/theseus-gitops/theseus/reconcile/logbook"
	"github.com/theseus-gitops/theseus/reconcile/rollout"
)

const (
	fieldManager   = "theseus"
	managedByLabel = "app.kubernetes.io/managed-by"
)

// WriteBook writes the logbook and returns its new resourceVersion. resourceVersion is that of the
// observation which book continues, "" when there was no logbook. When somebody else wrote, made or deleted it
// meanwhile, nothing is written and the error wraps rollout.ErrConflict. Other keys and labels of the ConfigMap stay.
func (c *Client) WriteBook(ctx context.Context, resourceVersion string, book logbook.Book) (string, error) {
	text, err := book.Format()
	if err != nil {
		return "", err
	}
	m := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{
			Name:            logbook.Name,
			ResourceVersion: resourceVersion,
			Labels:          map[string]string{managedByLabel: fieldManager},
		},
		Data: map[string]string{logbook.Key: text},
	}
	if resourceVersion == "" {
		return c.createBook(ctx, m)
	}
	return c.patchBook(ctx, m)
}

func (c *Client) createBook(ctx context.Context, m *corev1.ConfigMap) (string, error) {
	var version string
	o := operation{"create", "", "configmaps", logbook.Namespace, logbook.Name}
	err := c.call(ctx, o, func(ctx context.Context) error {
		made, err := c.kube.CoreV1().ConfigMaps(logbook.Namespace).Create(ctx, m, metav1.CreateOptions{FieldManager: fieldManager})
		if err == nil {
			version = made.ResourceVersion
		}
		return err
	})
	if apierrors.IsAlreadyExists(err) {
		return "", fmt.Errorf("logbook: made by another runner: %w", rollout.ErrConflict)
	}
	return version, err
}

// patchBook relies on the resourceVersion inside a merge patch, which the API server takes as a precondition.
func (c *Client) patchBook(ctx context.Context, m *corev1.ConfigMap) (string, error) {
	patch, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"resourceVersion": m.ResourceVersion, "labels": m.Labels},
		"data":     m.Data,
	})
	if err != nil {
		return "", fmt.Errorf("logbook: %w", err)
	}
	var version string
	o := operation{"patch", "", "configmaps", logbook.Namespace, logbook.Name}
	err = c.call(ctx, o, func(ctx context.Context) error {
		written, err := c.kube.CoreV1().ConfigMaps(logbook.Namespace).Patch(ctx, logbook.Name, types.MergePatchType, patch, metav1.PatchOptions{FieldManager: fieldManager})
		if err == nil {
			version = written.ResourceVersion
		}
		return err
	})
	switch {
	case apierrors.IsConflict(err):
		return "", fmt.Errorf("logbook: written by another runner: %w", rollout.ErrConflict)
	case absent(err):
		return "", fmt.Errorf("logbook: deleted by somebody: %w", rollout.ErrConflict)
	}
	return version, err
}

// bookOf reads the logbook. A damaged one is an error and never an empty book: it may be all that tells
// which change is under way and what it replaced.
func bookOf(m *corev1.ConfigMap) (logbook.Book, string, error) {
	if m == nil {
		return logbook.Book{}, "", nil
	}
	damaged := &DamagedError{
		Object: "configmap/theseus in namespace kube-system",
		Remedy: "put key " + logbook.Key + " back from a backup; if no roll is under way (the status document tells), delete the " +
			"ConfigMap with \"kubectl -n kube-system delete configmap theseus\", and Theseus starts a new logbook",
	}
	text, ok := m.Data[logbook.Key]
	if !ok {
		damaged.cause = fmt.Errorf("logbook: key %s is missing", logbook.Key)
		return logbook.Book{}, "", damaged
	}
	book, err := logbook.Parse(text)
	if err != nil {
		damaged.cause = err
		if newer(text) {
			damaged.Remedy = "run the release of Theseus that wrote it, or a newer one, for this cluster"
		}
		return logbook.Book{}, "", damaged
	}
	return book, m.ResourceVersion, nil
}

// newer reports whether a later format is what makes the text unreadable: then it is not damaged at all,
// and deleting it would be the wrong advice.
func newer(text string) bool {
	var head struct {
		Version int `json:"version"`
	}
	return json.Unmarshal([]byte(text), &head) == nil && head.Version > logbook.Version
}
