// SPDX-License-Identifier: Apache-2.0

package etcd

import (
	"crypto/x509"
	"io"
	"time"
)

// ClientCertificates gives the client certificates that are used at these times.
func ClientCertificates(certificate, key []byte, times ...time.Time) ([]*x509.Certificate, error) {
	a, err := newAuthority(certificate, key)
	if err != nil {
		return nil, err
	}
	var out []*x509.Certificate
	for _, now := range times {
		pair, err := a.certificate(now)
		if err != nil {
			return nil, err
		}
		c, err := x509.ParseCertificate(pair.Certificate[0])
		if err != nil {
			return nil, err
		}
		out = append(out, c)
	}
	return out, nil
}

// Keep is what SnapshotTo does with a file.
func (d Directory) Keep(name string, write func(io.Writer) error) (string, error) {
	return d.keep(name, write)
}
