// SPDX-License-Identifier: Apache-2.0

package etcd_test

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/theseus-gitops/theseus/executors/etcd"
)

func TestClientCertificateIsOfMinutes(t *testing.T) {
	t.Parallel()
	p := newPKI(t)
	now := time.Now()
	got, err := etcd.ClientCertificates(p.certificatePEM(), p.keyPEM(t), now, now.Add(4*time.Minute), now.Add(6*time.Minute))
	if err != nil {
		t.Fatal(err)
	}
	c := got[0]
	switch {
	case c.Subject.String() != "CN=theseus":
		t.Errorf("subject %s", c.Subject)
	case c.NotAfter.Sub(now) > 10*time.Minute, c.NotBefore.After(now.Add(-4 * time.Minute)):
		t.Errorf("holds from %s to %s, it is %s", c.NotBefore, c.NotAfter, now)
	case !slices.Equal(c.ExtKeyUsage, []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}), c.IsCA:
		t.Errorf("may be used for %v, CA %v", c.ExtKeyUsage, c.IsCA)
	case !got[1].Equal(c):
		t.Error("another certificate before half of its time")
	case got[2].Equal(c):
		t.Error("the same certificate after half of its time")
	}
	if err := c.CheckSignatureFrom(p.certificate); err != nil {
		t.Error(err)
	}
}

func TestKeysThatKubeadmAndOthersWrite(t *testing.T) {
	t.Parallel()
	rsaKey, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	ecKey, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	_, edKey, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	sec1, err := x509.MarshalECPrivateKey(ecKey)
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		key   crypto.Signer
		block *pem.Block
	}{
		"RSA, PKCS 1":    {rsaKey, &pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(rsaKey)}},
		"ECDSA, SEC 1":   {ecKey, &pem.Block{Type: "EC PRIVATE KEY", Bytes: sec1}},
		"Ed25519, PKCS8": {edKey, nil},
	} {
		p := newPKIWith(t, c.key)
		key := p.keyPEM(t)
		if c.block != nil {
			key = pem.EncodeToMemory(c.block)
		}
		// While a CA is rotated, its file has several certificates.
		bundle := slices.Concat(newPKI(t).certificatePEM(), p.certificatePEM())
		got, err := etcd.ClientCertificates(bundle, key, time.Now())
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if err := got[0].CheckSignatureFrom(p.certificate); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestAuthorityThatIsNone(t *testing.T) {
	t.Parallel()
	p, other := newPKI(t), newPKI(t)
	leaf, leafKey := p.server(t, "cp-1")
	planted := pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: []byte("planted")})
	for want, o := range map[string]etcd.Options{
		"no node with an etcd pod":                       {},
		"the key does not belong to the certificate":     {Nodes: []string{"cp-1"}, CACertificate: other.certificatePEM(), CAKey: p.keyPEM(t)},
		"is not one of a CA":                             {Nodes: []string{"cp-1"}, CACertificate: leaf, CAKey: leafKey},
		"it is not PEM":                                  {Nodes: []string{"cp-1"}, CACertificate: p.certificatePEM(), CAKey: []byte("planted")},
		"it is no private key":                           {Nodes: []string{"cp-1"}, CACertificate: p.certificatePEM(), CAKey: planted},
		"certificate of etcd's CA: x509: malformed":      {Nodes: []string{"cp-1"}, CACertificate: bytes.ReplaceAll(planted, []byte("PRIVATE KEY"), []byte("CERTIFICATE")), CAKey: p.keyPEM(t)},
		"etcd's CA: the key does not belong to the cert": {Nodes: []string{"cp-1"}, CAKey: p.keyPEM(t)},
	} {
		_, err := etcd.Connect(o)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
		if err != nil && strings.Contains(err.Error(), "planted") {
			t.Errorf("the key is in the message: %v", err)
		}
	}
}

// cluster-api#13765: whoever answers must be the etcd that was meant, by its CA and by its name.
func TestServersAreVerified(t *testing.T) {
	t.Parallel()
	f := map[string]*fake{"cp-1": trio()["cp-1"]}
	v := observe(t, fakesBy(t, f, func(string) string { return "cp-1" }))
	if v.Find(1).Status == nil {
		t.Errorf("cp-1: %+v", v.Find(1))
	}
	if m := v.Find(2); m.Status != nil || !strings.Contains(m.Unreachable, "certificate is valid for cp-1, localhost, not cp-2") {
		t.Errorf("a connection that ends at another node: %+v", m)
	}
}
