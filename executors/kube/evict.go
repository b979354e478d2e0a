// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// eviction is the API server's answer to one request.
type eviction struct {
	// refused is why the pod was not evicted now, "" when it was, or is gone.
	refused string
	// after is when the server wants to be asked again, 0 when it does not say.
	after time.Duration
}

// evict asks for the eviction of one pod, the one that was seen and no other of its name.
func (c *Client) evict(ctx context.Context, p corev1.Pod) (eviction, error) {
	body := &policyv1.Eviction{
		ObjectMeta:    metav1.ObjectMeta{Namespace: p.Namespace, Name: p.Name},
		DeleteOptions: &metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions(string(p.UID))},
	}
	var answer eviction
	o := operation{"create", "", "pods/eviction", p.Namespace, p.Name}
	err := c.call(ctx, o, func(ctx context.Context) error {
		// Not the typed client, because client-go would sleep and ask again by itself on a 429 with Retry-After, up to ten times.
		err := c.kube.PolicyV1().RESTClient().Post().AbsPath("/api/v1").Namespace(p.Namespace).Resource("pods").Name(p.Name).
			SubResource("eviction").MaxRetries(0).Body(body).Do(ctx).Error()
		if refusal, ok := refusalOf(err); ok {
			answer = refusal
			return nil
		}
		return err
	})
	return answer, err
}

// refusalOf is an answer that a later try may change; all others are errors of the round. Reasons of upstream: 429 is a budget,
// or too much to do; 403 with a cause is a namespace that is being deleted; 500 is what more than one budget over a pod
// gets (pkg/registry/core/pod/storage/eviction.go of kubernetes/kubernetes v1.37.2); 409 is another write, or another pod by now.
func refusalOf(err error) (eviction, bool) {
	if err == nil || absent(err) {
		return eviction{}, true
	}
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return eviction{}, false
	}
	s := status.Status()
	var out eviction
	if s.Details != nil {
		out.after = time.Duration(s.Details.RetryAfterSeconds) * time.Second
	}
	switch {
	case apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause):
		out.refused = "its namespace is being deleted, which ends it"
	case apierrors.IsTooManyRequests(err), s.Code == http.StatusConflict:
		out.refused = messageOf(s)
	case s.Code >= http.StatusInternalServerError:
		out.refused = fmt.Sprintf("the API server answers %d: %s", s.Code, messageOf(s))
	default:
		return eviction{}, false
	}
	return out, true
}

// messageOf is the server's sentence with its causes, of which a budget's names the budget.
func messageOf(s metav1.Status) string {
	parts := []string{strings.TrimSuffix(cmp.Or(s.Message, string(s.Reason)), ".")}
	if s.Details != nil {
		for _, cause := range s.Details.Causes {
			parts = append(parts, strings.TrimSuffix(cause.Message, "."))
		}
	}
	return strings.Join(parts, ": ")
}
