// SPDX-License-Identifier: Apache-2.0

package kubeadm

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/theseus-gitops/theseus/reconcile/rollout"
)

// A bootstrap token is a Secret of this form:
// https://kubernetes.io/docs/reference/access-authn-authz/bootstrap-tokens/#bootstrap-token-secret-format
const (
	tokenPrefix      = "bootstrap-token-"
	tokenGroup       = "system:bootstrappers:kubeadm:default-node-token" // whom kubeadm's RBAC lets join
	tokenExpiration  = "expiration"
	tokenDescription = "description"

	// tokenLabel and the beginning of the description tell our tokens from those of people; either is enough.
	tokenLabel = "theseus.dev/machine"
	tokenOurs  = "Theseus: join of "
)

// ErrTokenGone is a token that expired and was removed, or that someone deleted.
var ErrTokenGone = errors.New("the bootstrap token is gone: it expired, or someone deleted it; the machine needs a new one")

// CreateToken makes a bootstrap token for one machine.
func CreateToken(ctx context.Context, client kubernetes.Interface, machine string, expires time.Time) (Token, error) {
	for range 3 { // an id that exists already is one in a thousand million
		token := Token{ID: random(6), Secret: Secret(random(16))}
		_, err := client.CoreV1().Secrets(namespace).Create(ctx, tokenSecret(token, machine, expires), metav1.CreateOptions{FieldManager: fieldManager})
		if apierrors.IsAlreadyExists(err) {
			continue
		}
		if err != nil {
			return Token{}, tokenError(token.ID, "create", err)
		}
		return token, nil
	}
	return Token{}, fmt.Errorf("no free id for a bootstrap token was found in %s", namespace)
}

func tokenSecret(token Token, machine string, expires time.Time) *corev1.Secret {
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: tokenPrefix + token.ID, Namespace: namespace, Labels: map[string]string{tokenLabel: machine, credentialsLabel: "token"}},
		Type:       corev1.SecretTypeBootstrapToken,
		StringData: map[string]string{
			"token-id":                       token.ID,
			"token-secret":                   string(token.Secret),
			"usage-bootstrap-authentication": "true",
			"usage-bootstrap-signing":        "true",
			"auth-extra-groups":              tokenGroup,
			tokenExpiration:                  expires.UTC().Format(time.RFC3339),
			tokenDescription:                 tokenOurs + machine,
		},
	}
}

// ProlongToken lets a token live until then; it never shortens its life. A token that is gone is ErrTokenGone.
func ProlongToken(ctx context.Context, client kubernetes.Interface, id string, expires time.Time) error {
	secret, err := ourToken(ctx, client, id)
	if apierrors.IsNotFound(err) {
		return fmt.Errorf("%s: %w", tokenWhere(id), ErrTokenGone)
	}
	if err != nil {
		return err
	}
	if present, err := time.Parse(time.RFC3339, string(secret.Data[tokenExpiration])); err == nil && !present.Before(expires.Truncate(time.Second)) {
		return nil
	}
	patch, err := json.Marshal(map[string]any{
		"metadata":   map[string]any{"resourceVersion": secret.ResourceVersion},
		"stringData": map[string]any{tokenExpiration: expires.UTC().Format(time.RFC3339)},
	})
	if err != nil {
		return fmt.Errorf("%s: %w", tokenWhere(id), err)
	}
	_, err = client.CoreV1().Secrets(namespace).Patch(ctx, secret.Name, types.MergePatchType, patch, metav1.PatchOptions{FieldManager: fieldManager})
	if apierrors.IsNotFound(err) {
		return fmt.Errorf("%s: %w", tokenWhere(id), ErrTokenGone)
	}
	return tokenError(id, "patch", err)
}

// DeleteToken deletes a token of ours; one that is gone is no error.
func DeleteToken(ctx context.Context, client kubernetes.Interface, id string) error {
	secret, err := ourToken(ctx, client, id)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return err
	}
	return deleteToken(ctx, client, secret)
}

// DeleteLeftTokens deletes all tokens of ours but those with an id to keep, and returns the machines they were for.
// It goes on after a failure.
func DeleteLeftTokens(ctx context.Context, client kubernetes.Interface, keep ...string) ([]string, error) {
	kept := map[string]bool{}
	for _, id := range keep {
		kept[id] = true
	}
	list, err := client.CoreV1().Secrets(namespace).List(ctx, metav1.ListOptions{
		FieldSelector: "type=" + string(corev1.SecretTypeBootstrapToken),
	})
	if err != nil {
		return nil, tokenError("*", "list", err)
	}
	var machines []string
	var errs []error
	for i := range list.Items {
		secret := &list.Items[i]
		if !ours(secret) || kept[tokenID(secret)] {
			continue
		}
		if err := deleteToken(ctx, client, secret); err != nil {
			errs = append(errs, err)
			continue
		}
		machines = append(machines, tokenMachine(secret))
	}
	return machines, errors.Join(errs...)
}

// ourToken reads a token and refuses one that is not ours. Not found stays visible to apierrors.IsNotFound.
func ourToken(ctx context.Context, client kubernetes.Interface, id string) (*corev1.Secret, error) {
	secret, err := client.CoreV1().Secrets(namespace).Get(ctx, tokenPrefix+id, metav1.GetOptions{})
	if err != nil {
		return nil, tokenError(id, "get", err)
	}
	if !ours(secret) {
		return nil, fmt.Errorf("%s is no bootstrap token that Theseus made; it is left as it is", tokenWhere(id))
	}
	return secret, nil
}

func deleteToken(ctx context.Context, client kubernetes.Interface, secret *corev1.Secret) error {
	err := client.CoreV1().Secrets(namespace).Delete(ctx, secret.Name, metav1.DeleteOptions{
		Preconditions: &metav1.Preconditions{UID: &secret.UID, ResourceVersion: &secret.ResourceVersion},
	})
	if apierrors.IsNotFound(err) {
		return nil
	}
	return tokenError(tokenID(secret), "delete", err)
}

func ours(secret *corev1.Secret) bool {
	return secret.Type == corev1.SecretTypeBootstrapToken &&
		(secret.Labels[tokenLabel] != "" || strings.HasPrefix(string(secret.Data[tokenDescription]), tokenOurs))
}

func tokenID(secret *corev1.Secret) string { return strings.TrimPrefix(secret.Name, tokenPrefix) }

func tokenMachine(secret *corev1.Secret) string {
	if machine := secret.Labels[tokenLabel]; machine != "" {
		return machine
	}
	return strings.TrimPrefix(string(secret.Data[tokenDescription]), tokenOurs)
}

func tokenWhere(id string) string { return "secrets/" + tokenPrefix + id + " in " + namespace }

func tokenError(id, verb string, err error) error {
	where := tokenWhere(id)
	switch {
	case err == nil:
		return nil
	case apierrors.IsConflict(err):
		return fmt.Errorf("%s: %w: %w", where, rollout.ErrConflict, err)
	case apierrors.IsForbidden(err):
		return fmt.Errorf("%s: the API server refused to %s it; if the account lacks the right, grant verb %s on secrets: %w", where, verb, verb, err)
	}
	return fmt.Errorf("%s: %s: %w", where, verb, err)
}

// random is a text of a token's characters, with 5 bits in each.
func random(length int) string { return strings.ToLower(rand.Text())[:length] }
