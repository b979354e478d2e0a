// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"context"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"slices"
	"strings"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/theseus-gitops/theseus/reconcile/rollout"
)

const nodesGroup = "system:nodes"

// ApproveServingCSR approves a kubelet's request for a serving certificate when it asks for nothing but what is the Node's own:
// it comes from that node's kubelet, and each name and address in it stands in that Node, and in no other. Otherwise the error is a
// *rollout.Failure that says which does not. The Node's addresses are its kubelet's word, or its cloud's. A request that is
// approved already is what was wanted; one that is gone is rollout.ErrConflict.
func (c *Client) ApproveServingCSR(ctx context.Context, act rollout.ApproveServingCSR) error {
	requests := c.kube.CertificatesV1().CertificateSigningRequests()
	var request *certificatesv1.CertificateSigningRequest
	var nodes []corev1.Node
	const resource = "certificatesigningrequests"
	err := c.together(ctx, []question{
		named(c, operation{"get", certificatesv1.GroupName, resource, "", act.Name}, &request, requests.Get),
		listed(c, operation{verb: "list", resource: "nodes"}, metav1.ListOptions{}, c.kube.CoreV1().Nodes().List, func(l *corev1.NodeList) { nodes = l.Items }),
	})
	switch {
	case err != nil:
		return err
	case request == nil:
		return fmt.Errorf("certificate request %s is gone: %w", act.Name, rollout.ErrConflict)
	case is(*request, certificatesv1.CertificateApproved):
		return nil
	}
	if err := servingOf(*request, act.Node, nodes); err != nil {
		return &rollout.Failure{
			Reason:    "ServingCSRRefused",
			Message:   fmt.Sprintf("certificate request %s of node %s is not approved: %v", act.Name, act.Node, err),
			Remedy:    fmt.Sprintf("look at it with \"kubectl describe csr %s\"; approve or deny it yourself, or mend the node's addresses", act.Name),
			Elsewhere: true,
		}
	}
	request.Status.Conditions = append(request.Status.Conditions, certificatesv1.CertificateSigningRequestCondition{
		Type: certificatesv1.CertificateApproved, Status: corev1.ConditionTrue, Reason: "TheseusApprove",
		Message: "asks for the node's own name and addresses only; approved because the cluster's spec says so (controlPlane.approveServingCSR)",
	})
	err = c.call(ctx, operation{"update", certificatesv1.GroupName, resource + "/approval", "", act.Name}, func(ctx context.Context) error {
		_, err := requests.UpdateApproval(ctx, act.Name, request, metav1.UpdateOptions{FieldManager: fieldManager})
		return err
	})
	if apierrors.IsConflict(err) || absent(err) {
		return fmt.Errorf("certificate request %s: %w: %w", act.Name, rollout.ErrConflict, err)
	}
	return err
}

func is(r certificatesv1.CertificateSigningRequest, kind certificatesv1.RequestConditionType) bool {
	return slices.ContainsFunc(r.Status.Conditions, func(c certificatesv1.CertificateSigningRequestCondition) bool { return c.Type == kind })
}

// servingOf says what makes a request other than one of the node's kubelet for its own serving certificate. The API server's
// signer checks the form too, but whose names they are is the approver's part:
// https://kubernetes.io/docs/reference/access-authn-authz/certificate-signing-requests/#kubernetes-signers
func servingOf(r certificatesv1.CertificateSigningRequest, node string, nodes []corev1.Node) error {
	user := nodeUser + node
	switch {
	case is(r, certificatesv1.CertificateDenied):
		return errors.New("somebody denied it")
	case is(r, certificatesv1.CertificateFailed):
		return errors.New("its signer gave it up")
	case r.Spec.SignerName != certificatesv1.KubeletServingSignerName:
		return fmt.Errorf("its signer is %s, not %s", r.Spec.SignerName, certificatesv1.KubeletServingSignerName)
	case r.Spec.Username != user:
		return fmt.Errorf("it comes from user %s, not from %s", r.Spec.Username, user)
	case !slices.Contains(r.Spec.Groups, nodesGroup):
		return fmt.Errorf("its user is not of group %s", nodesGroup)
	}
	if err := servingUsages(r.Spec.Usages); err != nil {
		return err
	}
	asked, err := signedRequest(r.Spec.Request)
	switch {
	case err != nil:
		return err
	case asked.Subject.CommonName != user:
		return fmt.Errorf("its common name is %s, not %s", asked.Subject.CommonName, user)
	case !slices.Equal(asked.Subject.Organization, []string{nodesGroup}):
		return fmt.Errorf("its organization is %q, not %s", asked.Subject.Organization, nodesGroup)
	}
	return ownNames(asked, node, nodes)
}

// signedRequest reads a request that its own key has signed.
func signedRequest(text []byte) (*x509.CertificateRequest, error) {
	block, rest := pem.Decode(text)
	if block == nil || block.Type != "CERTIFICATE REQUEST" || len(rest) > 0 {
		return nil, errors.New("it does not hold one request in PEM")
	}
	asked, err := x509.ParseCertificateRequest(block.Bytes)
	if err != nil {
		return nil, fmt.Errorf("it can't be read: %w", err)
	}
	if err := asked.CheckSignature(); err != nil {
		return nil, fmt.Errorf("its signature is wrong: %w", err)
	}
	return asked, nil
}

func servingUsages(usages []certificatesv1.KeyUsage) error {
	serving := false
	for _, u := range usages {
		switch u { //nolint:exhaustive // all others are refused, those to come too
		case certificatesv1.UsageServerAuth:
			serving = true
		case certificatesv1.UsageDigitalSignature, certificatesv1.UsageKeyEncipherment:
		default:
			return fmt.Errorf("it asks for usage %q, which serving does not need", u)
		}
	}
	if !serving {
		return fmt.Errorf("it does not ask for usage %q", certificatesv1.UsageServerAuth)
	}
	return nil
}

// ownNames refuses a name or an address that is not the node's, or not its alone: a kubelet may report any address as its own.
func ownNames(asked *x509.CertificateRequest, node string, nodes []corev1.Node) error {
	if len(asked.EmailAddresses) > 0 || len(asked.URIs) > 0 {
		return errors.New("it asks for e-mail addresses or URIs, which no kubelet needs")
	}
	var names []string
	names = append(names, asked.DNSNames...)
	for _, ip := range asked.IPAddresses {
		names = append(names, ip.String())
	}
	if len(names) == 0 {
		return errors.New("it asks for no name and no address")
	}
	owners := map[string][]string{}
	for _, n := range nodes {
		own := []string{canonical(n.Name)}
		for _, a := range n.Status.Addresses {
			own = append(own, canonical(a.Address))
		}
		slices.Sort(own)
		for _, name := range slices.Compact(own) {
			owners[name] = append(owners[name], n.Name)
		}
	}
	for _, name := range names {
		switch of := owners[canonical(name)]; {
		case !slices.Contains(of, node):
			return fmt.Errorf("%s is not a name or an address of the node", name)
		case len(of) > 1:
			return fmt.Errorf("%s is a name or an address of several nodes: %s", name, strings.Join(of, ", "))
		}
	}
	return nil
}
