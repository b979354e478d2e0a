// SPDX-License-Identifier: Apache-2.0

// Package image reads container image references and computes the CoreDNS image that a spec asks for.
// It does not pull images, resolve digests, or fill in docker.io for a name without a registry.
// Start with Parse, then Target.
package image

import (
	// The digest library verifies algorithms by what is linked in: without these, a valid digest is "unsupported".
	_ "crypto/sha256"
	_ "crypto/sha512"
	"fmt"
	"strings"

	"github.com/distribution/reference"
)

// Ref is an image reference in parts, as it was written: nothing is normalised, so String gives the text back.
type Ref struct {
	Repository string // registry and path without the last element ("registry.k8s.io/coredns"); empty for "coredns:1.6.2"
	Name       string // last path element ("coredns")
	Tag        string // empty when there is none
	Digest     string // "sha256:…"; empty when there is none
}

// SyntaxError reports text that is not an image reference.
type SyntaxError struct {
	Text string
	Err  error // what the reference grammar says
}

// Error names the text and what is allowed in its place.
func (e *SyntaxError) Error() string {
	return fmt.Sprintf("%q is not an image reference (%v): want [REGISTRY/][PATH/]NAME[:TAG][@DIGEST]", e.Text, e.Err)
}

// Unwrap returns the grammar's error.
func (e *SyntaxError) Unwrap() error { return e.Err }

// Parse reads an image reference. A registry is not needed, so that what a first run wrote ("myrepo/coredns:1.7.2") can be
// read by the second. Every error is a *SyntaxError.
func Parse(text string) (Ref, error) {
	parsed, err := reference.Parse(text)
	if err != nil {
		return Ref{}, &SyntaxError{Text: text, Err: err}
	}
	named, ok := parsed.(reference.Named)
	if !ok {
		return Ref{}, &SyntaxError{Text: text, Err: reference.ErrNameEmpty}
	}
	ref := Ref{Name: named.Name()}
	if slash := strings.LastIndexByte(ref.Name, '/'); slash >= 0 {
		ref.Repository, ref.Name = ref.Name[:slash], ref.Name[slash+1:]
	}
	if tagged, ok := parsed.(reference.Tagged); ok {
		ref.Tag = tagged.Tag()
	}
	if digested, ok := parsed.(reference.Digested); ok {
		ref.Digest = digested.Digest().String()
	}
	return ref, nil
}

// String writes the reference as a container runtime reads it.
func (r Ref) String() string {
	var b strings.Builder
	if r.Repository != "" {
		b.WriteString(r.Repository + "/")
	}
	b.WriteString(r.Name)
	if r.Tag != "" {
		b.WriteString(":" + r.Tag)
	}
	if r.Digest != "" {
		b.WriteString("@" + r.Digest)
	}
	return b.String()
}
