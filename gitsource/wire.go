// SPDX-License-Identifier: Apache-2.0

package gitsource

import (
	"context"
	"errors"
	"io"
	"sync"
	"time"

	"github.com/go-git/go-git/v5/plumbing/protocol/packp"
	"github.com/go-git/go-git/v5/plumbing/transport"
)

// service is the server program of an exchange.
type service string

const (
	uploadPack  service = "git-upload-pack"  // reads
	receivePack service = "git-receive-pack" // writes
)

// wire is one exchange with the server: advertise, then at most one of fetch or push, then Close.
type wire interface {
	// advertise gives all refs. A repository without commits gives none, and no error.
	advertise(ctx context.Context) (*packp.AdvRefs, error)
	// fetch sends the request; the reader gives the answer's pack section, still multiplexed as the request asked.
	fetch(ctx context.Context, req *packp.UploadPackRequest) (io.ReadCloser, error)
	// push gives the server's report; nil when it gave none, whatever err says then.
	push(ctx context.Context, req *packp.ReferenceUpdateRequest) (*packp.ReportStatus, error)
	// facts says what was noticed besides, for explaining an error.
	facts() facts
	Close() error
}

// facts are observations that classify a failure without reading a server's words.
type facts struct {
	status     int           // last HTTP status; 0 when there was none
	retryAfter time.Duration // asked for by the HTTP server
	hostKey    string        // why the SSH host key was refused
	denied     bool          // the SSH server accepted none of our keys
	ended      bool          // the server's program ended before it said anything
	words      string        // the server's error output, unscrubbed
	overLimit  bool          // the answer exceeded Limits.RepoBytes
	sha256     bool          // the server uses object-format=sha256
}

var errOverLimit = errors.New("answer exceeds the limit")

// meter bounds what one exchange may read and keeps the beginning, where capabilities stand.
type meter struct {
	mu    sync.Mutex
	left  int64
	over  bool
	start []byte
}

const meterKeeps = 4096

func (m *meter) reader(r io.Reader) io.Reader { return &meteredReader{meter: m, r: r} }

func (m *meter) add(p []byte) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if room := meterKeeps - len(m.start); room > 0 {
		m.start = append(m.start, p[:min(room, len(p))]...)
	}
	m.left -= int64(len(p))
	if m.left < 0 {
		m.over = true
		return errOverLimit
	}
	return nil
}

func (m *meter) seen() (start string, over bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return string(m.start), m.over
}

type meteredReader struct {
	meter *meter
	r     io.Reader
}

func (m *meteredReader) Read(p []byte) (int, error) {
	n, err := m.r.Read(p)
	if over := m.meter.add(p[:n]); over != nil {
		return n, over
	}
	return n, err
}

// readCloser joins a reader with somebody else's Close.
type readCloser struct {
	io.Reader
	close func() error
}

func (r readCloser) Close() error { return r.close() }

// settleAdvertisement gives the meaning of a decoded advertisement and its error: an empty repository is not an error.
func settleAdvertisement(adv *packp.AdvRefs, err error) (*packp.AdvRefs, error) {
	switch {
	case errors.Is(err, packp.ErrEmptyAdvRefs), errors.Is(err, transport.ErrEmptyRemoteRepository):
		return packp.NewAdvRefs(), nil
	case err != nil:
		return nil, err
	}
	transport.FilterUnsupportedCapabilities(adv.Capabilities)
	return adv, nil
}

// dial begins an exchange over the transport that the URL names.
func (r *Repo) dial(ctx context.Context, s service) (wire, error) {
	m := &meter{left: r.opts.Limits.RepoBytes}
	switch r.loc.scheme {
	case schemeHTTP, schemeHTTPS:
		return newHTTPWire(r.loc, r.opts.Auth, r.base, m, s)
	case schemeSSH:
		return dialSSH(ctx, r.loc, r.opts.Auth, m, s)
	case schemeLocal:
	}
	return startLocal(ctx, r.loc, m, s)
}
