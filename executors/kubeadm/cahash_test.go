// SPDX-License-Identifier: Apache-2.0

package kubeadm_test

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/theseus-gitops/theseus/executors/kubeadm"
)

// The hash was made with openssl, as kubeadm's documentation says:
// openssl x509 -pubkey -in ca.crt | openssl pkey -pubin -outform der | openssl dgst -sha256 -hex.
func TestCACertHashes(t *testing.T) {
	ca, err := os.ReadFile("testdata/ca.crt")
	if err != nil {
		t.Fatal(err)
	}
	const want = "sha256:3d3bca2ef52946ea952579b9690887b4f10a4a62cd250725b5a69a61c3b2852f"
	got, err := kubeadm.CACertHashes(ca)
	if err != nil || !slices.Equal(got, []string{want}) {
		t.Errorf("got %q, %v; want %s", got, err, want)
	}
	if got, err = kubeadm.CACertHashes(append([]byte("# old and new\n"+string(ca)), ca...)); err != nil || len(got) != 2 {
		t.Errorf("a CA that is being rotated: got %q, %v", got, err)
	}
	for name, tt := range map[string]struct{ bundle, want string }{
		"nothing": {"", "no certificate in PEM"},
		"DER":     {"\x30\x82", "no certificate in PEM"},
		"a key":   {"-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n", "holds a PRIVATE KEY"},
		"broken":  {"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n", "certificate 1 of"},
	} {
		if got, err := kubeadm.CACertHashes([]byte(tt.bundle)); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: got %q, error %v; want %q", name, got, err, tt.want)
		}
	}
}
