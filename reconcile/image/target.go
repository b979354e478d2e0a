// SPDX-License-Identifier: Apache-2.0

package image

import (
	"errors"
	"fmt"
	"strings"

	"github.com/theseus-gitops/theseus/reconcile/skew"
)

// Want is what a spec and the cluster's kubeadm-config say about the CoreDNS image. Empty fields say nothing.
type Want struct {
	Repository        string // spec.coreDNS.imageRepository (kubeadm: dns.imageRepository); wins
	ClusterRepository string // kubeadm's imageRepository for all its images
	Tag               string // spec.coreDNS.imageTag; without it CoreDNS is left alone
}

// ErrNoTag is returned by Target for a live image whose version can't be known because it has no tag.
var ErrNoTag = errors.New("the image has no tag")

// nested is where upstream moved the image below its own name: registry.k8s.io/coredns/coredns from 1.8.0 on
// (kubernetes-sigs/cluster-api#4463, #4481; kubeadm's GetDNSImage).
//
//nolint:gochecknoglobals // read-only table
var nested = struct {
	registries []string
	name       string
	since      skew.Version
}{
	registries: []string{"registry.k8s.io", "k8s.gcr.io"},
	name:       "coredns",
	since:      skew.Version{Major: 1, Minor: 8},
}

// Target computes the image that CoreDNS should run, by the rules of Cluster API's control plane: the repository is the
// wanted one, else the cluster's, else the current one; the name is the current last path element, which moves to
// coredns/coredns on the default registries from 1.8.0 on; a mirror gets no extra path. Two differences are on purpose:
// without a wanted tag the current image is returned as it is, and a digest pin survives as long as the tag stays the
// same (a new tag drops it, because the digest names the old content).
//
// Errors: ErrNoTag for a live image without tag; a *skew.SyntaxError for a tag that is not a version; a *SyntaxError when
// the result is not an image reference.
func Target(current Ref, want Want) (Ref, error) {
	if want.Tag == "" {
		return current, nil
	}
	if current.Tag == "" {
		return Ref{}, fmt.Errorf("live image %s: %w, so its CoreDNS version can't be known: set the Deployment's image once, by hand, to "+
			"NAME:TAG or NAME:TAG@DIGEST with the version that is running", current, ErrNoTag)
	}
	if _, err := skew.ParseTag(current.Tag); err != nil {
		return Ref{}, fmt.Errorf("live image %s: tag: %w", current, err)
	}
	version, err := skew.ParseTag(want.Tag)
	if err != nil {
		return Ref{}, fmt.Errorf("wanted CoreDNS tag: %w", err)
	}
	target := Ref{Repository: repository(current, want), Name: current.Name, Tag: want.Tag}
	if isNested(target, version) {
		target.Repository += "/" + nested.name
	}
	if target.Tag == current.Tag {
		target.Digest = current.Digest
	}
	if _, err := Parse(target.String()); err != nil {
		return Ref{}, fmt.Errorf("wanted CoreDNS image: %w", err)
	}
	return target, nil
}

func repository(current Ref, want Want) string {
	for _, r := range []string{want.Repository, want.ClusterRepository} {
		switch r {
		case "":
		case "/":
			return r // makes an image that is refused; without the slash it would mean no repository at all
		default:
			return strings.TrimSuffix(r, "/")
		}
	}
	return current.Repository
}

func isNested(r Ref, version skew.Version) bool {
	if r.Name != nested.name || version.Core().Compare(nested.since) < 0 {
		return false
	}
	for _, registry := range nested.registries {
		if r.Repository == registry {
			return true
		}
	}
	return false
}
