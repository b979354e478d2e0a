// SPDX-License-Identifier: Apache-2.0

package kubeadm

import (
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
)

// CACertHashes are the pins of each certificate in a PEM bundle, as kubeadm's discovery wants them: SHA-256 over the
// DER of the public key's SubjectPublicKeyInfo. A CA that is being rotated has several.
func CACertHashes(bundle []byte) ([]string, error) {
	var out []string
	for {
		var block *pem.Block
		if block, bundle = pem.Decode(bundle); block == nil {
			break
		}
		if block.Type != "CERTIFICATE" {
			return nil, fmt.Errorf("the cluster's CA holds a %s, want certificates only", block.Type)
		}
		certificate, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, fmt.Errorf("certificate %d of the cluster's CA: %w", len(out)+1, err)
		}
		sum := sha256.Sum256(certificate.RawSubjectPublicKeyInfo)
		out = append(out, "sha256:"+hex.EncodeToString(sum[:]))
	}
	if len(out) == 0 {
		return nil, errors.New("the cluster's CA holds no certificate in PEM")
	}
	return out, nil
}
