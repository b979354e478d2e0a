// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/url"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ErrUnauthenticated is wrapped when the API server does not know the credentials (401): expired, revoked, or of another cluster.
var ErrUnauthenticated = errors.New("the credentials are not accepted: they are expired, revoked, or of another cluster")

// NotAllowedError says that a kubeconfig asks for something that the spec has to allow first.
type NotAllowedError struct {
	// Why is what it asks for, Instead what to do without it, Field the field of the spec that allows it.
	Why, Instead, Field string
}

// Error implements error.
func (e *NotAllowedError) Error() string {
	return fmt.Sprintf("%s: %s, or set %s", e.Why, e.Instead, e.Field)
}

// UnreachableError says that the API server could not be asked, or could not answer: network, TLS, time-out,
// overload, or a 5xx from it or from a load balancer before it. Trying again later is right.
type UnreachableError struct {
	// Host is the server's host and port.
	Host  string
	cause error
}

// Error implements error.
func (e *UnreachableError) Error() string {
	return fmt.Sprintf("API server %s is unreachable: %v", e.Host, e.cause)
}

// Unwrap is the cause.
func (e *UnreachableError) Unwrap() error { return e.cause }

// ForbiddenError says that the credentials are known but lack a right.
type ForbiddenError struct {
	Verb, Group, Resource string
	// Namespace is "" for what is of the whole cluster; Name is "" for lists.
	Namespace, Name string
	cause           error
}

// Error implements error.
func (e *ForbiddenError) Error() string {
	if e.Verb == "" {
		return fmt.Sprintf("not allowed: %v", e.cause)
	}
	role, where := "ClusterRole", ""
	if e.Namespace != "" {
		role, where = "Role", " in namespace "+e.Namespace
	}
	what := e.Resource
	if e.Name != "" {
		what += " " + e.Name
	}
	return fmt.Sprintf("not allowed to %s %s%s: bind the user to a %s%s that has the verb %q on resource %q of API group %q",
		e.Verb, what, where, role, where, e.Verb, e.Resource, e.Group)
}

// Unwrap is the API server's own answer.
func (e *ForbiddenError) Unwrap() error { return e.cause }

// DamagedError says that an object is there but does not hold what it must. A person has to repair it:
// going on would mean to act on a guess.
type DamagedError struct {
	// Object is as kubectl takes it, "configmap/theseus in namespace kube-system".
	Object string
	// Remedy says what a person can do.
	Remedy string
	cause  error
}

// Error implements error.
func (e *DamagedError) Error() string { return fmt.Sprintf("%s: %v; %s", e.Object, e.cause, e.Remedy) }

// Unwrap is what is wrong with it.
func (e *DamagedError) Unwrap() error { return e.cause }

// operation names a call for errors.
type operation struct{ verb, group, resource, namespace, name string }

func (o operation) String() string {
	s := o.verb + " " + o.resource
	if o.namespace != "" {
		s += " " + o.namespace + "/" + o.name
		return strings.TrimSuffix(s, "/")
	}
	return strings.TrimSpace(s + " " + o.name)
}

// call runs one request under the client's time-out and explains what comes out of it.
func (c *Client) call(ctx context.Context, o operation, request func(context.Context) error) error {
	bounded, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	err := request(bounded)
	if err != nil && ctx.Err() != nil {
		return fmt.Errorf("%s: %w", o, ctx.Err())
	}
	if err != nil && bounded.Err() != nil {
		return &UnreachableError{Host: c.host, cause: fmt.Errorf("no answer to %s within %s: %w", o, c.timeout, context.DeadlineExceeded)}
	}
	return c.explain(err, o)
}

// Explain gives an error of a call made with Interface or RESTConfig one of this package's types where it
// fits: *UnreachableError, *ForbiddenError, or one that wraps ErrUnauthenticated. Others come back as they are.
func (c *Client) Explain(err error) error {
	if err == nil || errors.Is(err, context.Canceled) || c.explained(err) {
		return err
	}
	return c.classify(err, operation{})
}

func (c *Client) explain(err error, o operation) error {
	if err == nil {
		return nil
	}
	if out := c.classify(err, o); c.explained(out) {
		return out
	}
	return fmt.Errorf("%s: %w", o, err)
}

func (c *Client) explained(err error) bool {
	var unreachable *UnreachableError
	var forbidden *ForbiddenError
	return errors.As(err, &unreachable) || errors.As(err, &forbidden) || errors.Is(err, ErrUnauthenticated)
}

func (c *Client) classify(err error, o operation) error {
	var status apierrors.APIStatus
	var inURL *url.Error
	var network net.Error
	var file *fs.PathError
	switch {
	case apierrors.IsUnauthorized(err):
		return fmt.Errorf("API server %s: %w", c.host, ErrUnauthenticated)
	case apierrors.IsForbidden(err):
		return &ForbiddenError{Verb: o.verb, Group: o.group, Resource: o.resource, Namespace: o.namespace, Name: o.name, cause: err}
	case errors.As(err, &status):
		if code := status.Status().Code; code >= http.StatusInternalServerError || code == http.StatusTooManyRequests {
			return &UnreachableError{Host: c.host, cause: err}
		}
		return err
	case errors.As(err, &file):
		return err // of this machine, and yet a net.Error, because each errno is
	case errors.As(err, &inURL):
		// Without the URL, which may carry a user and says nothing that host and operation don't.
		return &UnreachableError{Host: c.host, cause: inURL.Err}
	case errors.As(err, &network), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, context.DeadlineExceeded):
		return &UnreachableError{Host: c.host, cause: err}
	}
	return err
}

// absent reports whether the API server itself says that the object does not exist. A 404 of something
// else on the way, a load balancer that knows no such path, says nothing about the object.
func absent(err error) bool {
	return apierrors.IsNotFound(err) && !apierrors.HasStatusCause(err, metav1.CauseTypeUnexpectedServerResponse)
}
