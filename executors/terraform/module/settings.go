// SPDX-License-Identifier: Apache-2.0

package module

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
)

// settings checks the terraform blocks: versions, providers and backend.
func (c *checker) settings(root *instance) {
	version := slices.ContainsFunc(root.terraform, func(b *hclsyntax.Block) bool {
		return expression(b.Body, "required_version") != nil
	})
	if !version {
		c.report(TerraformVersion, root.start(), "there is no required_version")
	}
	c.providers(root)
	c.backend(root)
}

// required is one entry of required_providers.
type required struct {
	source  string
	version bool
}

// providers checks that each provider in use is pinned and in the lock file.
func (c *checker) providers(root *instance) {
	used, pins := c.providersInUse()
	locked := lockedProviders(root.lock)
	var first hcl.Range
	for name, at := range used {
		if first.Filename == "" || before(at, first) {
			first = at
		}
		if !pins[name].version {
			c.report(ProviderVersion, at, "provider %s has no version in required_providers", name)
		}
		if root.lock != nil && !slices.Contains(locked, sourceOf(name, pins[name])) {
			c.report(LockFileProvider, at, "%s lacks provider %s", lockFile, sourceOf(name, pins[name]))
		}
	}
	if root.lock == nil && len(used) > 0 {
		c.report(LockFileMissing, first, "there is no %s", lockFile)
	}
}

// providersInUse are the providers' local names with the first place that needs them, and what the module asks of them.
func (c *checker) providersInUse() (map[string]hcl.Range, map[string]required) {
	used, pins := map[string]hcl.Range{}, map[string]required{}
	for _, in := range c.instances {
		for _, r := range sorted(in.resources) {
			addUse(used, providerOf(r), r.block.DefRange())
		}
		for _, b := range in.providers {
			addUse(used, label(b), b.DefRange())
			if expression(b.Body, "version") != nil {
				pin(pins, label(b), required{version: true})
			}
		}
		for _, b := range in.terraform {
			requiredProviders(b, pins)
		}
	}
	delete(used, "terraform") // built in
	return used, pins
}

func before(a, b hcl.Range) bool {
	return a.Filename < b.Filename || a.Filename == b.Filename && a.Start.Byte < b.Start.Byte
}

func addUse(used map[string]hcl.Range, name string, at hcl.Range) {
	if have, ok := used[name]; name != "" && (!ok || before(at, have)) {
		used[name] = at
	}
}

// providerOf is the local name of a resource's provider.
func providerOf(r *resource) string {
	if e := expression(r.block.Body, "provider"); e != nil {
		if t, diagnostics := hcl.AbsTraversalForExpr(e); !diagnostics.HasErrors() {
			return t.RootName()
		}
	}
	name, _, _ := strings.Cut(r.kind, "_")
	return name
}

func pin(pins map[string]required, name string, r required) {
	have := pins[name]
	if r.source != "" {
		have.source = r.source
	}
	have.version = have.version || r.version
	pins[name] = have
}

func requiredProviders(b *hclsyntax.Block, pins map[string]required) {
	list := child(b.Body, "required_providers")
	if list == nil {
		return
	}
	for _, a := range attributes(list.Body) {
		object, ok := a.Expr.(*hclsyntax.ObjectConsExpr)
		if !ok {
			version, _ := constantText(a.Expr)
			pin(pins, a.Name, required{version: version != ""})
			continue
		}
		fields := items(object)
		source, _ := constantText(fields["source"])
		version, _ := constantText(fields["version"])
		pin(pins, a.Name, required{source: source, version: version != ""})
	}
}

// sourceOf is the part of a provider's address that Terraform and OpenTofu have in common.
func sourceOf(name string, r required) string {
	if r.source == "" {
		return "hashicorp/" + name
	}
	parts := strings.Split(strings.ToLower(r.source), "/")
	return strings.Join(parts[max(0, len(parts)-2):], "/")
}

func lockedProviders(lock *hclsyntax.Body) []string {
	if lock == nil {
		return nil
	}
	var out []string
	for _, b := range lock.Blocks {
		if b.Type == "provider" {
			out = append(out, path.Join(path.Base(path.Dir(label(b))), path.Base(label(b))))
		}
	}
	return out
}

// backend checks that the state is kept, and locked. A backend whose place is not in the file gets it from
// spec.terraform.backendConfig, and its locking with it; that is checked when it is used.
func (c *checker) backend(root *instance) {
	var b *hclsyntax.Block
	for _, t := range root.terraform {
		for _, kind := range []string{"backend", "cloud"} {
			if found := child(t.Body, kind); found != nil {
				b = found
			}
		}
	}
	switch {
	case b == nil:
		c.report(BackendMissing, root.start(), "there is no backend, so the state is in this folder")
	case b.Type == "cloud":
	case label(b) == "local":
		c.report(BackendMissing, b.DefRange(), "%s", localState(b))
	default:
		if why := unlocked(label(b), b.Body); why != "" {
			c.report(BackendLock, b.DefRange(), "backend %s %s", label(b), why)
		}
	}
}

// localState says where backend local keeps the state.
func localState(b *hclsyntax.Block) string {
	if file, ok := constantText(expression(b.Body, "path")); ok {
		return fmt.Sprintf("backend local keeps the state in %q, on one computer's disk", file)
	}
	return "backend local without a path keeps the state in this folder"
}

// unlocked says why a backend does not lock; nothing when it does.
func unlocked(name string, body *hclsyntax.Body) string {
	lacks := func(place string, locks ...string) string {
		if expression(body, place) == nil {
			return ""
		}
		for _, l := range locks {
			if e := expression(body, l); e != nil && !isBool(e, false) {
				return ""
			}
		}
		return "has no " + strings.Join(locks, " or ")
	}
	switch name {
	case "http":
		return lacks("address", "lock_address")
	case "s3":
		return lacks("bucket", "use_lockfile", "dynamodb_table")
	case "oss":
		return lacks("bucket", "tablestore_table")
	case "consul":
		if isBool(expression(body, "lock"), false) {
			return "has lock = false"
		}
		return ""
	case "azurerm", "cos", "gcs", "kubernetes", "oci", "pg", "remote":
		return ""
	}
	return "is not known to lock"
}
