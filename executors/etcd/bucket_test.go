// SPDX-License-Identifier: Apache-2.0

package etcd_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/pem"
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/johannesboyne/gofakes3"
	"github.com/johannesboyne/gofakes3/backend/s3mem"

	"github.com/theseus-gitops/theseus/executors/etcd"
)

// store is an S3 server with one bucket, and the secret for it.
func store(t *testing.T) (*s3mem.Backend, map[string][]byte) {
	t.Helper()
	backend := s3mem.New()
	if err := backend.CreateBucket("backups"); err != nil {
		t.Fatal(err)
	}
	server := httptest.NewTLSServer(gofakes3.New(backend).Server())
	t.Cleanup(server.Close)
	return backend, map[string][]byte{
		"endpoint": []byte(server.URL + "\n"), "accesskey": []byte("id"), "secretkey": []byte("planted-secret"), "region": []byte("us-east-1"),
		"ca.crt": pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}),
	}
}

func objects(t *testing.T, backend *s3mem.Backend) []string {
	t.Helper()
	list, err := backend.ListBucket("backups", nil, gofakes3.ListBucketPage{})
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, o := range list.Contents {
		names = append(names, fmt.Sprintf("%s %d", o.Key, o.Size))
	}
	return names
}

func TestSnapshotToBucket(t *testing.T) {
	t.Parallel()
	body := bytes.Repeat([]byte("database"), 512)
	sum := sha256.Sum256(body)
	for name, c := range map[string]struct {
		stream [][]byte
		bucket string
		want   string
	}{
		"whole":              {[][]byte{body, sum[:]}, "backups", ""},
		"damaged":            {[][]byte{body[512:], body[:511], []byte("X"), sum[:]}, "backups", "damaged"},
		"cut":                {[][]byte{body[:1000]}, "backups", "cut short"},
		"no such bucket":     {[][]byte{body, sum[:]}, "elsewhere", "s3://elsewhere/seed"},
		"larger than a part": {[][]byte{bytes.Repeat(body, 5<<10), sumOf(bytes.Repeat(body, 5<<10))}, "backups", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			backend, secret := store(t)
			b, err := etcd.ParseBucket("s3://"+c.bucket+"/seed/", secret)
			if err != nil {
				t.Fatal(err)
			}
			f := trio()
			f["cp-2"].snapshot = c.stream
			s, url, err := fakes(t, f).SnapshotToBucket(t.Context(), b, "demo.db")
			left := objects(t, backend)
			if c.want != "" {
				if err == nil || !strings.Contains(err.Error(), c.want) || len(left) > 0 {
					t.Errorf("got %v, want %q; left: %v", err, c.want, left)
				}
				return
			}
			if want := fmt.Sprintf("seed/demo.db %d", s.Size); err != nil || url != "s3://backups/seed/demo.db" || len(left) != 1 || left[0] != want {
				t.Errorf("got %q, %v; left: %v, want %s", url, err, left, want)
			}
		})
	}
}

func sumOf(body []byte) []byte {
	sum := sha256.Sum256(body)
	return sum[:]
}

func TestBucketIsRead(t *testing.T) {
	t.Parallel()
	good := map[string][]byte{"accesskey": []byte("id"), "secretkey": []byte("planted-secret")}
	for _, c := range []struct {
		to     string
		secret map[string][]byte
		want   string
	}{
		{"s3://backups", good, "s3://backups"},
		{"s3://backups/a/b/", good, "s3://backups/a/b"},
		{"/var/backups", good, "is not s3://bucket/prefix"},
		{"s3://backups", map[string][]byte{"accesskey": []byte("id")}, "lacks accesskey or secretkey"},
	} {
		b, err := etcd.ParseBucket(c.to, c.secret)
		if got := fmt.Sprintf("%v %+v %#v %v", b, b, b, err); !strings.Contains(got, c.want) || strings.Contains(got, "planted-secret") {
			t.Errorf("%s: %s, want %q", c.to, got, c.want)
		}
	}
}
