// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"context"
	"errors"

	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// MissingRights asks the API server which of Rights this account lacks, in their order, and writes nothing. It asks for
// what an upgrade would need now: not for the right to read logs, and for those to change ClusterRole system:coredns only
// where that is due. A server that refuses such questions is taken to allow everything: the steps themselves will show.
func (c *Client) MissingRights(ctx context.Context) ([]Right, error) {
	role, err := c.outdatedRole(ctx)
	if err != nil {
		return nil, err
	}
	var rights []Right
	for _, r := range Rights() {
		if r.Need == Always || (r.Need == ForRole && role != nil) {
			rights = append(rights, r)
		}
	}
	return c.lacking(ctx, rights, role)
}

// MissingPlaneRights asks in the same way for those of PlaneRights, which only a cluster needs whose control plane is managed. approve says
// that the spec lets Theseus approve kubelets' requests.
func (c *Client) MissingPlaneRights(ctx context.Context, approve bool) ([]Right, error) {
	var rights []Right
	for _, r := range PlaneRights() {
		if r.Need == Always || (r.Need == ForServingCSR && approve) {
			rights = append(rights, r)
		}
	}
	return c.lacking(ctx, rights, nil)
}

// lacking are those of the rights that the account lacks, in their order; role is ClusterRole system:coredns, for those about it.
func (c *Client) lacking(ctx context.Context, rights []Right, role *rbacv1.ClusterRole) ([]Right, error) {
	lacks := make([]bool, len(rights))
	var questions []question
	for i, r := range rights {
		questions = append(questions, func(ctx context.Context) error {
			allowed, err := c.has(ctx, r, role)
			lacks[i] = err == nil && !allowed
			return err
		})
	}
	err := c.together(ctx, questions)
	var refused *ForbiddenError
	if err != nil && !errors.As(err, &refused) {
		return nil, err
	}
	var missing []Right
	for i, r := range rights {
		if lacks[i] {
			missing = append(missing, r)
		}
	}
	return missing, nil
}

// outdatedRole is ClusterRole system:coredns when it lacks the rule for EndpointSlices, nil when it has it or is not there.
// A role that may not be read is taken for one without rules.
func (c *Client) outdatedRole(ctx context.Context) (*rbacv1.ClusterRole, error) {
	var role *rbacv1.ClusterRole
	o := operation{"get", rbacv1.GroupName, "clusterroles", "", coreDNSRole}
	err := named(c, o, &role, c.kube.RbacV1().ClusterRoles().Get)(ctx)
	var refused *ForbiddenError
	switch {
	case errors.As(err, &refused):
		return &rbacv1.ClusterRole{}, nil
	case err != nil:
		return nil, err
	case role == nil || dnsRoleOf(role).ReadsEndpointSlices():
		return nil, nil
	}
	return role, nil
}

// has reports whether the account has a right. Who has all that a role will grant needs no right to escalate.
func (c *Client) has(ctx context.Context, r Right, role *rbacv1.ClusterRole) (bool, error) {
	resource, sub := r.subresource()
	allowed, err := c.may(ctx, authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: &authorizationv1.ResourceAttributes{
		Namespace: r.Namespace, Verb: r.Verb, Group: r.Group, Resource: resource, Subresource: sub, Name: r.Name,
	}})
	if err != nil || allowed || r.Verb != "escalate" {
		return allowed, err
	}
	return c.holds(ctx, append(role.Rules[:len(role.Rules):len(role.Rules)], rbacv1.PolicyRule{
		APIGroups: []string{"discovery.k8s.io"}, Resources: []string{"endpointslices"}, Verbs: []string{"list", "watch"},
	}))
}

// holds reports whether the account itself has all that the rules grant.
func (c *Client) holds(ctx context.Context, rules []rbacv1.PolicyRule) (bool, error) {
	for _, rule := range rules {
		for _, spec := range granted(rule) {
			if allowed, err := c.may(ctx, spec); err != nil || !allowed {
				return false, err
			}
		}
	}
	return true, nil
}

// granted is a rule in questions. A "*" is asked for as such: only a "*" grants it.
func granted(rule rbacv1.PolicyRule) []authorizationv1.SelfSubjectAccessReviewSpec {
	var out []authorizationv1.SelfSubjectAccessReviewSpec
	names := rule.ResourceNames
	if len(names) == 0 {
		names = []string{""}
	}
	for _, verb := range rule.Verbs {
		for _, path := range rule.NonResourceURLs {
			out = append(out, authorizationv1.SelfSubjectAccessReviewSpec{NonResourceAttributes: &authorizationv1.NonResourceAttributes{Verb: verb, Path: path}})
		}
		for _, group := range rule.APIGroups {
			for _, resource := range rule.Resources {
				for _, name := range names {
					what, sub := Right{Resource: resource}.subresource()
					out = append(out, authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: &authorizationv1.ResourceAttributes{
						Verb: verb, Group: group, Resource: what, Subresource: sub, Name: name,
					}})
				}
			}
		}
	}
	return out
}

func (c *Client) may(ctx context.Context, spec authorizationv1.SelfSubjectAccessReviewSpec) (bool, error) {
	var allowed bool
	o := operation{"create", "authorization.k8s.io", "selfsubjectaccessreviews", "", ""}
	err := c.call(ctx, o, func(ctx context.Context) error {
		review := &authorizationv1.SelfSubjectAccessReview{Spec: spec}
		answer, err := c.kube.AuthorizationV1().SelfSubjectAccessReviews().Create(ctx, review, metav1.CreateOptions{})
		if err == nil {
			allowed = answer.Status.Allowed
		}
		return err
	})
	return allowed, err
}
