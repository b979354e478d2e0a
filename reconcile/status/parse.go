// SPDX-License-Identifier: Apache-2.0

package status

import (
	"bytes"
	"errors"
	"fmt"
	"io"

	"go.yaml.in/yaml/v3"
)

const (
	header = "# Written by Theseus. Edits are overwritten.\n"
	// sizeLimit is far above what 20 rolls and 50 notices need.
	sizeLimit = 1 << 20
)

// Parse reads a status document. Fields that this version does not know are dropped: the document is a report, made anew in
// every pass. An error means damage (or a hand), never a reason to hold a cluster up.
func Parse(data []byte) (*Document, error) {
	if len(data) > sizeLimit {
		return nil, fmt.Errorf("status document: %d bytes; at most %d are read", len(data), sizeLimit)
	}
	dec := yaml.NewDecoder(bytes.NewReader(data))
	var doc Document
	if err := dec.Decode(&doc); errors.Is(err, io.EOF) {
		return nil, errors.New("status document: the file is empty")
	} else if err != nil {
		return nil, fmt.Errorf("status document: %w", err)
	}
	var more yaml.Node
	if err := dec.Decode(&more); !errors.Is(err, io.EOF) {
		return nil, errors.New("status document: more than one document in the file")
	}
	if doc.APIVersion != APIVersion || doc.Kind != Kind {
		return nil, fmt.Errorf("status document: apiVersion %q, kind %q; want %q, %q", doc.APIVersion, doc.Kind, APIVersion, Kind)
	}
	if doc.Metadata.Name == "" {
		return nil, errors.New("status document: metadata.name is empty")
	}
	return &doc, nil
}

// Format writes a status document. Equal documents are equal bytes.
func Format(doc Document) ([]byte, error) {
	out := bytes.NewBufferString(header)
	enc := yaml.NewEncoder(out)
	enc.SetIndent(2)
	enc.CompactSeqIndent()
	if err := enc.Encode(doc); err != nil {
		return nil, fmt.Errorf("status document of %s: %w", doc.Metadata.Name, err)
	}
	if err := enc.Close(); err != nil {
		return nil, fmt.Errorf("status document of %s: %w", doc.Metadata.Name, err)
	}
	return out.Bytes(), nil
}
