// SPDX-License-Identifier: Apache-2.0

package gitsource

import (
	"context"
	"crypto/tls"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/go-git/go-git/v5/plumbing/protocol/packp"
	"github.com/go-git/go-git/v5/plumbing/transport"
	githttp "github.com/go-git/go-git/v5/plumbing/transport/http"
)

// httpWire is the wire over go-git's smart HTTP transport, which follows redirects of the first request only and takes
// credentials to no other origin.
type httpWire struct {
	up    transport.UploadPackSession
	down  transport.ReceivePackSession
	trip  *watchedTrip
	meter *meter
}

// httpBase is the connection pool of one Repo.
func httpBase(auth Auth) *http.Transport {
	return &http.Transport{
		Proxy:               http.ProxyFromEnvironment,
		TLSClientConfig:     &tls.Config{RootCAs: auth.roots, MinVersion: tls.VersionTLS12},
		TLSHandshakeTimeout: 15 * time.Second,
		IdleConnTimeout:     90 * time.Second,
		ForceAttemptHTTP2:   true,
	}
}

func newHTTPWire(loc location, auth Auth, base http.RoundTripper, m *meter, s service) (wire, error) {
	w := &httpWire{trip: &watchedTrip{base: base, meter: m}, meter: m}
	client := githttp.NewClientWithOptions(&http.Client{Transport: w.trip},
		&githttp.ClientOptions{RedirectPolicy: githttp.FollowInitialRedirects})
	endpoint := &transport.Endpoint{Protocol: "https", Host: loc.host, Path: loc.path}
	if loc.scheme == schemeHTTP {
		endpoint.Protocol = "http"
	}
	if strings.Contains(loc.host, ":") {
		endpoint.Host = "[" + loc.host + "]"
	}
	endpoint.Port, _ = strconv.Atoi(loc.port)

	var method transport.AuthMethod
	switch {
	case auth.bearer != "":
		method = &githttp.TokenAuth{Token: auth.bearer}
	case auth.password != "":
		method = &githttp.BasicAuth{Username: auth.username, Password: auth.password}
	}
	var err error
	if s == receivePack {
		w.down, err = client.NewReceivePackSession(endpoint, method)
	} else {
		w.up, err = client.NewUploadPackSession(endpoint, method)
	}
	return w, err
}

func (w *httpWire) advertise(ctx context.Context) (*packp.AdvRefs, error) {
	if w.down != nil {
		return settleAdvertisement(w.down.AdvertisedReferencesContext(ctx))
	}
	return settleAdvertisement(w.up.AdvertisedReferencesContext(ctx))
}

func (w *httpWire) fetch(ctx context.Context, req *packp.UploadPackRequest) (io.ReadCloser, error) {
	resp, err := w.up.UploadPack(ctx, req)
	if err != nil {
		return nil, err
	}
	return resp, nil
}

func (w *httpWire) push(ctx context.Context, req *packp.ReferenceUpdateRequest) (*packp.ReportStatus, error) {
	report, err := w.down.ReceivePack(ctx, req)
	if report != nil {
		// A decoded report speaks for itself; go-git's error only repeats it.
		return report, nil
	}
	return nil, err
}

func (w *httpWire) facts() facts {
	start, over := w.meter.seen()
	status, retryAfter := w.trip.last()
	return facts{status: status, retryAfter: retryAfter, overLimit: over, sha256: strings.Contains(start, "object-format=sha256")}
}

func (w *httpWire) Close() error { return nil }

// watchedTrip meters answers and notes their status.
type watchedTrip struct {
	base  http.RoundTripper
	meter *meter

	mu         sync.Mutex
	status     int
	retryAfter time.Duration
}

func (t *watchedTrip) RoundTrip(req *http.Request) (*http.Response, error) {
	t.note(0, 0)
	resp, err := t.base.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	seconds, _ := strconv.Atoi(resp.Header.Get("Retry-After"))
	t.note(resp.StatusCode, time.Duration(max(seconds, 0))*time.Second)
	resp.Body = readCloser{Reader: t.meter.reader(resp.Body), close: resp.Body.Close}
	return resp, nil
}

func (t *watchedTrip) note(status int, retryAfter time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.status, t.retryAfter = status, retryAfter
}

func (t *watchedTrip) last() (int, time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.status, t.retryAfter
}
