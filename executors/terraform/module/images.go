// SPDX-License-Identifier: Apache-2.0

package module

import (
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
)

// imageLookup tells whether a data source looks for an image, and by what.
func imageLookup(r *resource) (trait, bool) {
	if r.managed || !findsImages(r.kind) {
		return 0, false
	}
	body := r.block.Body
	for _, name := range []string{"name_regex", "family", "regex", "sort", "with_selector"} {
		if expression(body, name) != nil {
			return newestImage, true
		}
	}
	if e := expression(body, "most_recent"); e != nil && !isBool(e, false) || child(body, "filter") != nil {
		return newestImage, true
	}
	if isLatest(body, "name") || isLatest(body, "version") {
		return newestImage, true
	}
	if expression(body, "name") != nil {
		return imageByName, true
	}
	return 0, false
}

// findsImages judges a data source by the words of its type: no provider's schema is known here.
func findsImages(kind string) bool {
	if kind == "vsphere_virtual_machine" { // how vSphere's provider finds a template
		return true
	}
	return slices.ContainsFunc(strings.Split(kind, "_"), func(word string) bool {
		return slices.Contains([]string{"ami", "image", "images", "template", "snapshot"}, word)
	})
}

func isLatest(b *hclsyntax.Body, argument string) bool {
	v, _ := constantText(expression(b, argument))
	return strings.EqualFold(v, "latest")
}

// latestReference returns where a resource asks a marketplace for its latest image, as Azure's machines can.
func latestReference(b *hclsyntax.Body) (hcl.Range, bool) {
	for _, c := range b.Blocks {
		if strings.HasSuffix(c.Type, "image_reference") && isLatest(c.Body, "version") {
			return c.Body.Attributes["version"].NameRange, true
		}
	}
	return hcl.Range{}, false
}
