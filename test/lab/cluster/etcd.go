// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/theseus-gitops/theseus/test/lab/service"
)

// Member is a member of the cluster's etcd.
type Member struct {
	ID      string `json:"ID"`
	Name    string `json:"name"`
	Learner bool   `json:"isLearner"`
}

// Members asks the etcd of a machine for its members, over etcd's JSON gateway. That is a way to them of the lab's own.
func (c *Cluster) Members(ctx context.Context, machine string) ([]Member, error) {
	var answer struct{ Members []Member }
	return answer.Members, c.etcd(ctx, machine, "/v3/cluster/member/list", map[string]any{}, &answer)
}

// RemoveMember removes a member of etcd, by its id, behind everybody's back.
func (c *Cluster) RemoveMember(ctx context.Context, machine, id string) error {
	return c.etcd(ctx, machine, "/v3/cluster/member/remove", map[string]any{"ID": id}, nil)
}

func (c *Cluster) etcd(ctx context.Context, machine, path string, body, result any) error {
	var m service.Machine
	if err := c.cloud.get(ctx, "/machines/"+machine, &m); err != nil {
		return err
	}
	config, err := c.etcdTLS(ctx, machine)
	if err != nil {
		return err
	}
	payload, err := json.Marshal(body)
	if err != nil {
		return fmt.Errorf("packing a request to etcd: %w", err)
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, "https://"+m.Address+":2379"+path, bytes.NewReader(payload))
	if err != nil {
		return fmt.Errorf("asking etcd: %w", err)
	}
	transport := &http.Transport{TLSClientConfig: config}
	defer transport.CloseIdleConnections()
	response, err := (&http.Client{Transport: transport, Timeout: 10 * time.Second}).Do(request)
	if err != nil {
		return fmt.Errorf("asking etcd of %s: %w", machine, err)
	}
	defer func() { _ = response.Body.Close() }()
	data, err := io.ReadAll(response.Body)
	if err != nil {
		return fmt.Errorf("hearing etcd of %s: %w", machine, err)
	}
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("etcd of %s: %s: %s: %s", machine, path, response.Status, data)
	}
	if result == nil {
		return nil
	}
	if err := json.Unmarshal(data, result); err != nil {
		return fmt.Errorf("reading the answer of etcd of %s: %w", machine, err)
	}
	return nil
}

// etcdTLS takes the certificates that kubeadm made for health checks from the machine.
func (c *Cluster) etcdTLS(ctx context.Context, machine string) (*tls.Config, error) {
	const folder = "/etc/kubernetes/pki/etcd/"
	var files [3]string
	for i, name := range []string{"ca.crt", "healthcheck-client.crt", "healthcheck-client.key"} {
		text, err := c.Exec(ctx, machine, "cat", folder+name)
		if err != nil {
			return nil, err
		}
		files[i] = text
	}
	pair, err := tls.X509KeyPair([]byte(files[1]), []byte(files[2]))
	if err != nil {
		return nil, fmt.Errorf("reading a certificate of %s: %w", machine, err)
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM([]byte(files[0])) {
		return nil, errors.New("etcd's CA certificate can't be read")
	}
	return &tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{pair}, RootCAs: roots}, nil
}
