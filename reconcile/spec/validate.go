// SPDX-License-Identifier: Apache-2.0

package spec

import (
	"cmp"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
)

// validate checks what spans several keys, then what spans several documents. The second part skips what can't be known
// because of an error in the other document, so that one mistake is one problem.
func (p *parser) validate() {
	for _, f := range p.fleets {
		validateFleet(f)
	}
	for _, r := range p.releases {
		validateHops(r.document, "spec", r.value.Spec.KubernetesVersion, r.value.Spec.Hops)
		validateCoreDNSTag(r.document, "spec.coreDNS.imageTag", r.value.Spec.CoreDNS.ImageTag)
	}
	for _, c := range p.clusters {
		validateCluster(c)
	}
	p.oneFleet()
	refuseSameName(p.releases, "releases", func(r Release) string { return r.Metadata.Name })
	refuseSameName(p.clusters, "clusters", func(c Cluster) string { return c.Metadata.Name })
	for _, c := range p.clusters {
		p.resolvable(c)
	}
	p.membership()
}

// oneFleet reports more than one fleet, and a fleet file without one.
func (p *parser) oneFleet() {
	for _, f := range p.fleets[min(1, len(p.fleets)):] {
		f.add(f.place("").key, Error, fmt.Sprintf("found a second Fleet; allowed: one, and the first is at %s", p.fleets[0].where("")))
		p.fleets[0].failed = true
	}
	reported := slices.ContainsFunc(p.found, func(x Problem) bool { return x.File == FleetFile && x.Severity == Error })
	if p.fleetSeen && !reported && len(p.fleets) == 0 {
		p.report(FleetFile, "found no document of kind Fleet; allowed: exactly one in this file")
	}
}

// fleet returns the one good fleet, or nil.
func (p *parser) fleet() *parsed[Fleet] {
	if len(p.fleets) != 1 || p.fleets[0].failed || p.found.ForFleet().HasErrors() {
		return nil
	}
	return p.fleets[0]
}

// refuseSameName reports each document whose name another one has; which of them is meant can't be known.
func refuseSameName[T any](docs []*parsed[T], plural string, name func(T) string) {
	byName := map[string][]*parsed[T]{}
	for _, doc := range docs {
		if n := name(doc.value); n != "" && doc.has("metadata.name") {
			byName[n] = append(byName[n], doc)
		}
	}
	for n, same := range byName {
		for i, doc := range same {
			if len(same) == 1 {
				continue
			}
			other := same[0]
			if i == 0 {
				other = same[1]
			}
			doc.errorf("metadata.name", "two %s are named %q; the other is at %s", plural, n, other.where("metadata.name"))
		}
	}
}

func validateFleet(f *parsed[Fleet]) {
	for i, stage := range f.value.Spec.Stages {
		at := fmt.Sprintf("spec.stages[%d]", i)
		validateSelector(f.document, at+".selector", stage.Selector)
		for j, window := range stage.Windows {
			validateWindow(f.document, fmt.Sprintf("%s.windows[%d]", at, j), window)
		}
	}
	if len(f.value.Spec.Stages) > 0 && f.value.Spec.Stages[0].Soak > 0 {
		f.warnf("spec.stages[0].soak", "the first stage has no stage before it to soak in")
	}
	if f.value.Spec.Freeze == nil {
		return
	}
	var names []string
	for _, stage := range f.value.Spec.Stages {
		names = append(names, stage.Name)
	}
	for i, name := range f.value.Spec.Freeze.Stages {
		if at := fmt.Sprintf("spec.freeze.stages[%d]", i); !slices.Contains(names, name) && !f.failedBelow(at) {
			f.errorf(at, "found %q, which is no stage%s; allowed: %s", shorten(name), didYouMean(name, names), orNone(names))
		}
	}
}

func validateWindow(d *document, at string, w Window) {
	exactlyOne(d, at, "allow", "deny")
	if w.Duration == 0 && d.has(at+".duration") && !d.failedBelow(at+".duration") {
		d.errorf(at+".duration", "found 0; allowed: more than 0")
	}
}

// exactlyOne reports when none or several of the keys at a path are there.
func exactlyOne(d *document, at string, keys ...string) {
	if !d.isMapping(at) {
		return
	}
	var found []string
	for _, key := range keys {
		if d.has(join(at, key)) {
			found = append(found, key)
		}
	}
	if len(found) != 1 {
		d.errorf(at, "found %s; allowed: exactly one of %s", orNone(found), strings.Join(keys, ", "))
	}
}

func orNone(names []string) string {
	if len(names) == 0 {
		return "none"
	}
	return strings.Join(names, ", ")
}

func validateSelector(d *document, at string, s LabelSelector) {
	for i, r := range s.MatchExpressions {
		path := fmt.Sprintf("%s.matchExpressions[%d]", at, i)
		switch {
		case d.failedBelow(path):
		case (r.Operator == "In" || r.Operator == "NotIn") && len(r.Values) == 0:
			d.errorf(path, "operator %s needs values", r.Operator)
		case (r.Operator == "Exists" || r.Operator == "DoesNotExist") && len(r.Values) > 0:
			d.errorf(path+".values", "operator %s takes no values", r.Operator)
		}
	}
}

// labelText is labels as people write them in selectors.
func labelText(labels map[string]string) string {
	var out []string
	for _, key := range slices.Sorted(maps.Keys(labels)) {
		out = append(out, key+"="+labels[key])
	}
	return orNone(out)
}

// stageText names stages with the labels that they select; expressions are in the file.
func stageText(stages []Stage) string {
	var out []string
	for _, s := range stages {
		text := s.Name
		if len(s.Selector.MatchLabels) > 0 {
			text += " (" + labelText(s.Selector.MatchLabels) + ")"
		}
		out = append(out, text)
	}
	return strings.Join(out, ", ")
}

// membership checks that each cluster belongs to exactly one stage, when there are stages. Clusters with other errors count,
// so that one broken cluster does not make its stage look empty.
func (p *parser) membership() {
	fleet := p.fleet()
	if fleet == nil {
		return
	}
	stages := fleet.value.Spec.Stages
	members := make([]int, len(stages))
	for _, c := range p.clusters {
		if c.failedBelow("metadata") {
			continue
		}
		var in []string
		for i, stage := range stages {
			if stage.Selector.Matches(c.value.Metadata.Labels) {
				members[i]++
				in = append(in, fmt.Sprintf("%s (%s)", stage.Name, fleet.where(fmt.Sprintf("spec.stages[%d]", i))))
			}
		}
		switch {
		case len(stages) > 0 && len(in) == 0:
			c.errorf("metadata.labels", "no stage selects the labels %s; the stages are %s; allowed: exactly one selects a cluster", labelText(c.value.Metadata.Labels), stageText(stages))
		case len(in) > 1:
			c.errorf("metadata.labels", "the labels put the cluster into %d stages: %s; allowed: exactly one", len(in), strings.Join(in, ", "))
		}
	}
	for i, n := range members {
		if n == 0 {
			fleet.warnf(fmt.Sprintf("spec.stages[%d].name", i), "no cluster belongs to stage %s", stages[i].Name)
		}
	}
}

func defaultStatus() StatusTarget {
	var s StatusTarget
	setDefault(reflect.ValueOf(&s).Elem(), field{name: "status", def: "{}"})
	return s
}

// resolvable checks that the release and the image of a cluster can be resolved, and that it has a version.
func (p *parser) resolvable(c *parsed[Cluster]) {
	s := c.value.Spec
	if !c.isMapping("spec") {
		return
	}
	var release ReleaseSpec
	if s.Release != "" && !c.failedBelow("spec.release") {
		found, ok := p.release(c, s.Release)
		if !ok {
			validateHops(c.document, "spec", s.KubernetesVersion, s.Hops)
			return
		}
		release = found
	}
	if !c.has("spec.kubernetesVersion") && release.KubernetesVersion == "" && !c.failedBelow("spec.release") {
		c.errorf("spec", "kubernetesVersion is missing: give it here or by a release that has one")
	}
	s = withRelease(s, release)
	validateHops(c.document, "spec", s.KubernetesVersion, s.Hops)
	if fleet := p.fleet(); fleet != nil && !c.failedBelow("spec.kubernetesVersion") && !c.failedBelow("spec.place") {
		checkImages(c.document, s, fleet.value.Spec.Images)
	}
}

// release finds a release by name. A missing or broken one is an error of the cluster that asks for it.
func (p *parser) release(c *parsed[Cluster], name string) (ReleaseSpec, bool) {
	var names []string
	for _, r := range p.releases {
		if r.value.Metadata.Name == name {
			if r.failed {
				c.errorf("spec.release", "release %q has errors, see %s", name, r.where(""))
			}
			return r.value.Spec, !r.failed
		}
		names = append(names, r.value.Metadata.Name)
	}
	slices.Sort(names)
	c.errorf("spec.release", "found no release %q%s; allowed: %s", name, didYouMean(name, names), orNone(names))
	return ReleaseSpec{}, false
}

func checkImages(d *document, s ClusterSpec, images map[string]map[string]string) {
	at := cmp.Or(firstPlace(d, "spec.baseImage", "spec.release"), "spec")
	_, baseErr := imageID(images, s.BaseImage, s.KubernetesVersion, s.Place)
	if baseErr != nil {
		d.errorf(at, "%s", baseErr)
	} else if near := unknownImage(images, s); near != "" && s.Place != "" {
		d.warnf(at, "found %q, which is not in fleet.images and is taken as an image id%s", shorten(s.BaseImage), near)
	}
	for i, hop := range s.Hops {
		_, err := imageID(images, hop.BaseImage, hop.KubernetesVersion, s.Place)
		if err != nil && (baseErr == nil || hop.BaseImage != s.BaseImage) {
			d.errorf(fmt.Sprintf("spec.hops[%d].baseImage", i), "%s", err)
		}
	}
}

func firstPlace(d *document, paths ...string) string {
	for _, path := range paths {
		if d.has(path) {
			return path
		}
	}
	return ""
}
