// SPDX-License-Identifier: Apache-2.0

package spec

import (
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// identify reads what the document's problems are filed under.
func (d *document) identify() {
	d.kind = textOf(child(d.root, "kind"))
	if d.kind == "" && d.file == FleetFile {
		d.kind = KindFleet
	}
	// Others make file names of a cluster's name, so it must be one.
	if name := textOf(child(child(d.root, "metadata"), "name")); d.kind == KindCluster && formats["dns-label"].pattern.MatchString(name) {
		d.cluster = name
	}
}

// classify tells whether a document was meant for us, and whether its API group says so. A typing error in the group or in
// the key apiVersion is reported, because it would make a cluster vanish.
func classify(d *document) (ours, readable bool) {
	version := child(d.root, "apiVersion")
	group, _, _ := strings.Cut(textOf(version), "/")
	switch {
	case group == Group:
		return true, true
	case version == nil && misspelledKey(d):
		return true, false
	case d.file == FleetFile && version == nil:
		d.add(d.at(d.root), Error, "apiVersion is missing; allowed in this file: "+APIVersion)
		return true, false
	case d.file == FleetFile:
		d.add(d.at(version), Error, fmt.Sprintf("apiVersion: found %s; allowed in this file: %s", describe(version), APIVersion))
		return true, false
	case version != nil && distance(strings.ToLower(group), Group) <= 2 && slices.Contains([]string{KindFleet, KindCluster, KindRelease}, d.kind):
		// Ignored, the cluster would vanish, and its status with it.
		d.add(d.at(version), Error, fmt.Sprintf("apiVersion: found %q; did you mean %q?", shorten(version.Value), APIVersion))
		return true, false
	case version != nil && distance(strings.ToLower(group), Group) <= 2:
		d.add(d.at(version), Warning, fmt.Sprintf("apiVersion: found %q, so the document is ignored; did you mean %q?", shorten(version.Value), APIVersion))
		d.last().Ignored = true
	}
	return false, false
}

// misspelledKey reports our API version under a key that is nearly apiVersion.
func misspelledKey(d *document) bool {
	if d.root.Kind != yaml.MappingNode {
		return false
	}
	for i := 0; i+1 < len(d.root.Content); i += 2 {
		key, value := d.root.Content[i], textOf(d.root.Content[i+1])
		if strings.HasPrefix(value, Group+"/") && nearest(key.Value, []string{"apiVersion"}) != "" {
			d.add(d.at(key), Error, fmt.Sprintf(`unknown key %q; did you mean "apiVersion"?`, shorten(key.Value)))
			return true
		}
	}
	return false
}
