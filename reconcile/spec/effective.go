// SPDX-License-Identifier: Apache-2.0

package spec

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// EffectiveCluster is what is wanted of a cluster with nothing left to look up.
type EffectiveCluster struct {
	Name   string
	Labels map[string]string
	// Stage is the stage that the labels select, or "" in a fleet without stages.
	Stage string
	// Release is the name of the release that filled in versions, or "".
	Release string
	// Spec has the release's versions and all defaults filled in, {kubernetesVersion} replaced, and Release emptied.
	Spec ClusterSpec
	// Image is the id of Spec.BaseImage at Spec.Place; HopImages has the ids for Spec.Hops, in their order.
	Image     string
	HopImages []string
	// Revision is the desired revision: a hash of what is wanted, in hexadecimal. It depends on meaning only: not on the order
	// of keys, comments, formatting, defaults written out or not, the file, the release's name or the cluster's labels; so
	// our own commits, and edits that change nothing, wake nobody.
	Revision string
}

// ErrNoFleet means that fleet.yaml is missing or has errors, so that images and stages are unknown.
var ErrNoFleet = errors.New("the fleet is missing or has errors")

// Effective resolves one of the repository's clusters. It fails only without a fleet (ErrNoFleet), because Parse keeps back
// clusters that can't be resolved.
func (r Repository) Effective(c Cluster) (EffectiveCluster, error) {
	if r.Fleet == nil {
		return EffectiveCluster{}, fmt.Errorf("cluster %s: %w", c.Metadata.Name, ErrNoFleet)
	}
	return Effective(c, *r.Fleet, r.Releases)
}

// Effective resolves a cluster: the release fills in versions that the cluster leaves out, images become ids. Defaults are
// already there, because Parse fills them in. It fails when the release or an image is not there.
//
// The release's CoreDNS tag counts only once releases act (capability Stages). A release moves every cluster that names it;
// until stages put them in order, and while validate says that spec.release is not acted on yet, it must move none.
func Effective(c Cluster, fleet Fleet, releases []Release) (EffectiveCluster, error) {
	e := EffectiveCluster{Name: c.Metadata.Name, Labels: maps.Clone(c.Metadata.Labels), Release: c.Spec.Release}
	var release ReleaseSpec
	if c.Spec.Release != "" {
		i := slices.IndexFunc(releases, func(r Release) bool { return r.Metadata.Name == c.Spec.Release })
		if i < 0 {
			return EffectiveCluster{}, fmt.Errorf("cluster %s: no good release %q", e.Name, c.Spec.Release)
		}
		release = releases[i].Spec
	}
	e.Spec = withRelease(c.Spec, release)
	for _, stage := range fleet.Spec.Stages {
		if stage.Selector.Matches(e.Labels) {
			e.Stage = stage.Name
			break
		}
	}
	if err := e.resolveImages(fleet.Spec.Images); err != nil {
		return EffectiveCluster{}, fmt.Errorf("cluster %s: %w", e.Name, err)
	}
	revision, err := e.revision()
	if err != nil {
		return EffectiveCluster{}, fmt.Errorf("cluster %s: revision: %w", e.Name, err)
	}
	e.Revision = revision
	return e, nil
}

// resolveImages finds the ids of all images and writes the versions into their names.
func (e *EffectiveCluster) resolveImages(images map[string]map[string]string) error {
	s := &e.Spec
	for i := range s.Hops {
		hop := &s.Hops[i] // a copy of the cluster's, made by withRelease
		id, err := imageID(images, hop.BaseImage, hop.KubernetesVersion, s.Place)
		if err != nil {
			return fmt.Errorf("hop %s: %w", hop.KubernetesVersion, err)
		}
		hop.BaseImage = imageName(hop.BaseImage, hop.KubernetesVersion)
		e.HopImages = append(e.HopImages, id)
	}
	id, err := imageID(images, s.BaseImage, s.KubernetesVersion, s.Place)
	if err != nil {
		return err
	}
	s.BaseImage, e.Image = imageName(s.BaseImage, s.KubernetesVersion), id
	return nil
}

// withRelease fills in what the cluster's own spec leaves out, and empties the release's name.
func withRelease(s ClusterSpec, r ReleaseSpec) ClusterSpec {
	s.Release = ""
	if s.KubernetesVersion == "" {
		s.KubernetesVersion = r.KubernetesVersion
	}
	if s.BaseImage == "" {
		s.BaseImage = r.BaseImage
	}
	if s.CoreDNS.ImageTag == "" && Stages.Acts() {
		s.CoreDNS.ImageTag = r.CoreDNS.ImageTag
	}
	if s.Etcd.ImageTag == "" {
		s.Etcd.ImageTag = r.Etcd.ImageTag
	}
	if s.Hops == nil {
		s.Hops = r.Hops
	}
	s.Hops = append([]Hop(nil), s.Hops...) // a copy, and nil when empty
	for i := range s.Hops {
		if s.Hops[i].BaseImage == "" {
			s.Hops[i].BaseImage = s.BaseImage
		}
	}
	return s
}

// imageName writes the version into the name of an image.
func imageName(name string, version Version) string {
	return strings.ReplaceAll(name, "{kubernetesVersion}", string(version))
}

// imageID finds the id of an image: that of its name in fleet.images at the place, or the name itself when it is not there.
func imageID(images map[string]map[string]string, name string, version Version, place string) (string, error) {
	name = imageName(name, version)
	ids, ok := images[name]
	if !ok {
		return name, nil
	}
	places := slices.Sorted(maps.Keys(ids))
	if place == "" {
		return "", fmt.Errorf("image %q is one of fleet.images and needs spec.place; allowed: %s", name, orNone(places))
	}
	id, ok := ids[place]
	if !ok {
		return "", fmt.Errorf("image %q has no id at place %q%s; allowed: %s", name, place, didYouMean(place, places), orNone(places))
	}
	return id, nil
}

// unknownImage gives a hint when a base image is near to, but not, a name of fleet.images.
func unknownImage(images map[string]map[string]string, s ClusterSpec) string {
	name := imageName(s.BaseImage, s.KubernetesVersion)
	if _, ok := images[name]; ok || name == "" {
		return ""
	}
	return didYouMean(name, slices.Sorted(maps.Keys(images)))
}

// revision hashes the canonical JSON of the effective spec: struct fields in their fixed order, map keys sorted.
func (e EffectiveCluster) revision() (string, error) {
	canonical, err := json.Marshal(struct {
		APIVersion string      `json:"apiVersion"`
		Spec       ClusterSpec `json:"spec"`
		Image      string      `json:"image"`
		HopImages  []string    `json:"hopImages"`
	}{APIVersion, e.Spec, e.Image, e.HopImages})
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(canonical)
	return hex.EncodeToString(sum[:]), nil
}
