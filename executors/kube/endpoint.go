// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"sync"
	"time"

	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/rest"

	"github.com/theseus-gitops/theseus/reconcile/live"
)

const (
	// endpointTries is how many connections are opened per node before one that was not met counts as not there: with a
	// balancer that draws lots among four, one that is there is missed once in a thousand looks.
	endpointTries = 6
	// endpointSilence is how many unanswered ones are no matter of chance.
	endpointSilence = 4
	// endpointTimeout bounds one connection and its answer, endpointLimit the look.
	endpointTimeout, endpointLimit = 3 * time.Second, 20 * time.Second
)

// endpointSight is what a look through the endpoint showed: fields of live.Plane.
type endpointSight struct {
	served        []string
	down, foreign string
}

// lookThroughEndpoint opens connections to the endpoint, a new one each, and tells by the certificates that they show whose API
// servers are behind it. The answers themselves say nothing, and no credentials are sent.
func (c *Client) lookThroughEndpoint(ctx context.Context, o PlaneOptions, got planeObjects, config *live.KubeadmConfig) (endpointSight, error) {
	roots, err := c.rootsOf(o, got)
	if err != nil {
		return endpointSight{}, err
	}
	bounded, cancel := context.WithTimeout(ctx, endpointLimit)
	defer cancel()
	transport := c.endpointTransport()
	known := newServers(got.nodes, sharedNames(config), roots)
	expect := o.Expect
	if expect == nil {
		for _, n := range got.nodes {
			expect = append(expect, n.Name)
		}
	}
	var down error
	tries, answers := 0, 0
	round := min(atOnce, max(1, len(got.nodes)))
	for most := endpointTries * max(1, len(got.nodes)); tries < most && !known.metAll(expect) && bounded.Err() == nil; round = min(atOnce, most-tries) {
		for _, m := range meetAll(bounded, transport, o.Endpoint, round) {
			if m.err != nil {
				down = m.err
				continue
			}
			answers++
			known.add(m.chain)
		}
		if tries += round; answers == 0 && tries >= endpointSilence {
			break
		}
	}
	if ctx.Err() != nil {
		return endpointSight{}, fmt.Errorf("endpoint %s: %w", o.Endpoint, ctx.Err())
	}
	return known.sight(o.Endpoint, answers, down), nil
}

type meeting struct {
	chain []*x509.Certificate
	err   error
}

// meetAll opens n connections side by side.
func meetAll(ctx context.Context, transport *http.Transport, endpoint string, n int) []meeting {
	out := make([]meeting, n)
	var all sync.WaitGroup
	for i := range out {
		all.Go(func() { out[i].chain, out[i].err = meet(ctx, transport, endpoint) })
	}
	all.Wait()
	return out
}

// meet asks the endpoint for something that needs no rights, and returns the certificates shown.
func meet(ctx context.Context, transport *http.Transport, endpoint string) ([]*x509.Certificate, error) {
	ctx, cancel := context.WithTimeout(ctx, endpointTimeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://"+endpoint+"/readyz", nil)
	if err != nil {
		return nil, err
	}
	answer, err := transport.RoundTrip(request)
	if err != nil {
		var inURL *url.Error
		if errors.As(err, &inURL) {
			err = inURL.Err
		}
		if ctx.Err() != nil {
			return nil, fmt.Errorf("no answer within %s", endpointTimeout)
		}
		return nil, err
	}
	if err := answer.Body.Close(); err != nil {
		return nil, err
	}
	return answer.TLS.PeerCertificates, nil
}

// endpointTransport goes the client's way through proxies, without its credentials and without keeping connections.
func (c *Client) endpointTransport() *http.Transport {
	out := &http.Transport{
		DisableKeepAlives: true,
		Proxy:             c.config.Proxy,
		DialContext:       c.config.Dial,
		// Certificates are what is looked at, so none ends a connection; servers.add verifies their chain.
		TLSClientConfig: &tls.Config{MinVersion: tls.VersionTLS12, InsecureSkipVerify: true},
	}
	if out.Proxy == nil {
		out.Proxy = utilnet.NewProxierWithNoProxyCIDR(http.ProxyFromEnvironment)
	}
	return out
}

// rootsOf is the cluster's CA, nil when it is not known.
func (c *Client) rootsOf(o PlaneOptions, got planeObjects) (*x509.CertPool, error) {
	pem := o.CA
	if pem == nil && got.root != nil {
		pem = []byte(got.root.Data[rootCAKey])
	}
	if len(pem) > 0 {
		roots := x509.NewCertPool()
		if !roots.AppendCertsFromPEM(pem) {
			return nil, errors.New("endpoint: the cluster's CA (option, or ConfigMap kube-system/" + rootCA + ") holds no certificate in PEM")
		}
		return roots, nil
	}
	config, err := rest.TLSConfigFor(c.config)
	if err != nil || config == nil || config.InsecureSkipVerify {
		return nil, nil //nolint:nilerr // a configuration that works for calls has no fault here; without TLS there is no CA
	}
	return config.RootCAs, nil
}
