// SPDX-License-Identifier: Apache-2.0

// Package module checks, from its files alone, that a Terraform root module keeps to the contract (docs/terraform-contract.md).
// It runs no Terraform, evaluates nothing but constants, and knows no provider's schema: it follows how expressions depend on
// var.machines and var.bootstrap (value.go), through locals and local child modules, and judges where they end up.
// Start at Check; rules.go has every rule.
package module

import (
	"fmt"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
)

// Result is what a check found, and how much it looked at.
type Result struct {
	Findings  Findings
	Files     int // *.tf files read, child modules' included
	Resources int
}

// checker is one check under way.
type checker struct {
	read      Folder
	configs   map[string]*config
	instances []*instance
	shared    map[string]bool // addresses in shared_addresses
	findings  Findings
	broken    bool // a file could not be parsed
	// sharedRead: all of shared_addresses is written out.
	sharedRead bool
}

// Check checks the root module in folder ".". The error is of reading it; all else are findings.
func Check(read Folder) (Result, error) {
	c := &checker{read: read, configs: map[string]*config{}, shared: map[string]bool{}}
	m, err := c.load(".")
	if err != nil {
		return Result{}, fmt.Errorf("reading the module: %w", err)
	}
	if m.files == 0 {
		return Result{}, fmt.Errorf("reading the module: no *.tf files: give the folder of a Terraform root module")
	}
	root := c.newInstance(m, nil, nil)
	if !c.broken {
		c.contract(root)
		for _, in := range c.instances {
			in.check()
		}
	}
	out := Result{Findings: c.findings.sorted()}
	for _, m := range c.configs {
		out.Files += m.files
		out.Resources += len(m.resources)
	}
	return out, nil
}

// contract checks what the root module alone must have.
func (c *checker) contract(root *instance) {
	c.machinesVariable(root)
	c.bootstrapVariable(root)
	c.registry(root)
	c.output(root)
	c.unused(root)
	c.settings(root)
}

// check judges all that one call of a module makes.
func (in *instance) check() {
	for _, r := range sorted(in.resources) {
		in.checkResource(r)
	}
	for _, b := range sorted(in.calls) {
		in.checkCall(b)
	}
	for _, b := range in.providers {
		for _, u := range (scope{in: in}).uses(b.Body, nil) {
			if u.value.kind != plain {
				in.checker.report(ProviderOfMachines, u.at, "provider %s is set up from machines", label(b))
			}
		}
	}
	if in.parent == nil {
		in.checkOutputs()
	}
}

func (in *instance) checkOutputs() {
	for _, b := range sorted(in.outputs) {
		v := mixed(scope{in: in}.eval(expression(b.Body, "value")))
		if v.has(userData) {
			in.checker.report(BootstrapOutput, b.DefRange(), "output %s holds user data", label(b))
		}
	}
}

func label(b *hclsyntax.Block) string {
	if len(b.Labels) == 0 {
		return "without a name"
	}
	return b.Labels[len(b.Labels)-1]
}

// start is the beginning of a folder's first file, for what is missing as a whole.
func (m *config) start() hcl.Range {
	return hcl.Range{Filename: m.first, Start: hcl.InitialPos, End: hcl.InitialPos}
}
