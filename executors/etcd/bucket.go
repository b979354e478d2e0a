// SPDX-License-Identifier: Apache-2.0

package etcd

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"path"
	"strings"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"
)

// partSize of an upload is held in memory; 10,000 parts of it are far more than an etcd holds.
const partSize = 16 << 20

// Bucket keeps snapshots in an object store that speaks S3. They hold every Secret of the cluster, so the bucket should be
// private and encrypted.
type Bucket struct {
	// Name is the bucket's, Prefix comes before the names of objects, "" for none.
	Name, Prefix string
	// Endpoint is the store's URL; "" is Amazon's.
	Endpoint string
	// Region is asked for when it is "".
	Region               string
	AccessKey, SecretKey string
	// CA are certificates to believe besides the system's, PEM.
	CA []byte
}

// LogValue implements slog.LogValuer: keys are not for logs.
func (b Bucket) LogValue() slog.Value { return slog.StringValue(b.String()) }

// String is the bucket as specs write it.
func (b Bucket) String() string {
	return "s3://" + strings.TrimSuffix(path.Join(b.Name, b.Prefix), "/")
}

// GoString keeps the keys out of %#v.
func (b Bucket) GoString() string { return b.String() }

// ParseBucket reads s3://bucket/prefix and the keys of a Secret: accesskey and secretkey, as Flux names them, and where the
// store is not Amazon's endpoint (a URL), region and ca.crt.
func ParseBucket(to string, secret map[string][]byte) (Bucket, error) {
	rest, ok := strings.CutPrefix(to, "s3://")
	name, prefix, _ := strings.Cut(rest, "/")
	if !ok || name == "" {
		return Bucket{}, fmt.Errorf("snapshot place %q is not s3://bucket/prefix", to)
	}
	b := Bucket{
		Name: name, Prefix: strings.Trim(prefix, "/"), Endpoint: text(secret["endpoint"]), Region: text(secret["region"]),
		AccessKey: text(secret["accesskey"]), SecretKey: text(secret["secretkey"]), CA: secret["ca.crt"],
	}
	if b.AccessKey == "" || b.SecretKey == "" {
		return Bucket{}, errors.New("the secret of etcd.snapshot lacks accesskey or secretkey")
	}
	return b, nil
}

func text(value []byte) string { return strings.TrimSpace(string(value)) }

// SnapshotToBucket takes a snapshot into an object of that name and gives its URL. The object appears when it is whole and
// verified; after an error there is none.
func (c *Client) SnapshotToBucket(ctx context.Context, b Bucket, name string) (Snapshot, string, error) {
	store, err := b.client()
	if err != nil {
		return Snapshot{}, "", err
	}
	read, write := io.Pipe()
	var s Snapshot
	taken := make(chan error, 1)
	go func() {
		var err error
		s, err = c.Snapshot(ctx, write)
		write.CloseWithError(err) // the upload reads it, and is given up
		taken <- err
	}()
	object := path.Join(b.Prefix, name)
	_, err = store.PutObject(ctx, b.Name, object, read, -1, minio.PutObjectOptions{PartSize: partSize, ContentType: "application/octet-stream"})
	_ = read.CloseWithError(err) // a snapshot that nobody reads ends, too
	if failed := <-taken; failed != nil && !errors.Is(failed, err) {
		return Snapshot{}, "", failed
	}
	if err != nil {
		return Snapshot{}, "", &PlaceError{What: fmt.Sprintf("snapshot place %s", b), Remedy: "check etcd.snapshot and its secret", cause: err}
	}
	return s, "s3://" + path.Join(b.Name, object), nil
}

func (b Bucket) client() (*minio.Client, error) {
	endpoint, secure := "s3.amazonaws.com", true
	if b.Endpoint != "" {
		u, err := url.Parse(b.Endpoint)
		if err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http" {
			return nil, fmt.Errorf("snapshot place %s: the secret's endpoint is not a URL such as https://s3.example.com", b)
		}
		endpoint, secure = u.Host, u.Scheme == "https"
	}
	options := &minio.Options{Creds: credentials.NewStaticV4(b.AccessKey, b.SecretKey, ""), Secure: secure, Region: b.Region}
	if len(b.CA) > 0 {
		roots, err := x509.SystemCertPool()
		if err != nil {
			roots = x509.NewCertPool()
		}
		if !roots.AppendCertsFromPEM(b.CA) {
			return nil, fmt.Errorf("snapshot place %s: the secret's ca.crt holds no certificate", b)
		}
		options.Transport = &http.Transport{Proxy: http.ProxyFromEnvironment, TLSClientConfig: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}}
	}
	client, err := minio.New(endpoint, options)
	if err != nil {
		return nil, fmt.Errorf("snapshot place %s: %w", b, err)
	}
	return client, nil
}
