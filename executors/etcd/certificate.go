// SPDX-License-Identifier: Apache-2.0

package etcd

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"sync"
	"time"
)

const (
	// certificateLife is how long a client certificate holds. A new connection after half of it gets a new one.
	certificateLife = 10 * time.Minute
	// clockSkew is how far the clocks of etcd's machines may be behind ours.
	clockSkew = 5 * time.Minute
)

// authority signs client certificates with etcd's CA and knows which servers to believe. All of it stays in memory.
type authority struct {
	signer *x509.Certificate
	key    crypto.Signer
	roots  *x509.CertPool

	mu      sync.Mutex
	current *tls.Certificate
	renewAt time.Time
}

// newAuthority reads a CA from PEM. The certificates may be several, as while a CA is rotated: all of them are
// believed, and the one that the key belongs to signs.
func newAuthority(certificates, key []byte) (*authority, error) {
	signer, err := parseKey(key)
	if err != nil {
		return nil, err
	}
	a := &authority{key: signer, roots: x509.NewCertPool()}
	public, comparable := signer.Public().(interface{ Equal(crypto.PublicKey) bool })
	for block, rest := pem.Decode(certificates); block != nil; block, rest = pem.Decode(rest) {
		if block.Type != "CERTIFICATE" {
			continue
		}
		certificate, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, fmt.Errorf("certificate of etcd's CA: %w", err)
		}
		a.roots.AddCert(certificate)
		if comparable && a.signer == nil && public.Equal(certificate.PublicKey) {
			a.signer = certificate
		}
	}
	switch {
	case a.signer == nil:
		return nil, errors.New("etcd's CA: the key does not belong to the certificate: give both of the same CA")
	case !a.signer.IsCA:
		return nil, fmt.Errorf("etcd's CA: the certificate of %q is not one of a CA", a.signer.Subject.CommonName)
	}
	return a, nil
}

// parseKey never quotes what it could not read.
func parseKey(key []byte) (crypto.Signer, error) {
	block, _ := pem.Decode(key)
	if block == nil {
		return nil, errors.New("key of etcd's CA: it is not PEM")
	}
	if k, err := x509.ParsePKCS1PrivateKey(block.Bytes); err == nil {
		return k, nil
	}
	if k, err := x509.ParseECPrivateKey(block.Bytes); err == nil {
		return k, nil
	}
	if k, err := x509.ParsePKCS8PrivateKey(block.Bytes); err == nil {
		if signer, ok := k.(crypto.Signer); ok {
			return signer, nil
		}
	}
	return nil, errors.New("key of etcd's CA: it is no private key in PKCS #1, SEC 1 or PKCS #8, or it is encrypted")
}

// config is for connections to one member. Its certificate must be of that name, which proves that a port-forward
// ended where it should: kubeadm puts the node's name into the certificate of each etcd.
func (a *authority) config(name string) *tls.Config {
	return &tls.Config{
		MinVersion: tls.VersionTLS12,
		RootCAs:    a.roots,
		ServerName: name,
		GetClientCertificate: func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
			return a.certificate(time.Now())
		},
	}
}

func (a *authority) certificate(now time.Time) (*tls.Certificate, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.current != nil && now.Before(a.renewAt) {
		return a.current, nil
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("key of the client certificate: %w", err)
	}
	// No organization: kubeadm's own etcd clients have none since 1.29, and etcd asks only who signed.
	der, err := x509.CreateCertificate(rand.Reader, &x509.Certificate{
		Subject:     pkix.Name{CommonName: "theseus"},
		NotBefore:   now.Add(-clockSkew),
		NotAfter:    now.Add(certificateLife),
		KeyUsage:    x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}, a.signer, key.Public(), a.key)
	if err != nil {
		return nil, fmt.Errorf("signing a client certificate with etcd's CA: %w", err)
	}
	a.current = &tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
	a.renewAt = now.Add(certificateLife / 2)
	return a.current, nil
}
