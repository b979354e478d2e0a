// SPDX-License-Identifier: Apache-2.0

package etcd

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"
	"io"
	"time"

	"github.com/theseus-gitops/theseus/reconcile/live"
)

// snapshotPage divides the size of each etcd database, as etcd's own tools check.
const snapshotPage = 512

// Snapshot is a verified copy of all keys.
type Snapshot struct {
	// Member is the one that it was taken of.
	Member string
	// Revision was reached in the whole cluster before: the copy holds it, and maybe later ones.
	Revision int64
	// Size is in bytes, the checksum at the end included, which `etcdutl snapshot restore` asks for.
	Size int64
	// SHA256 is the checksum of the database, in hex.
	SHA256 string
}

// Snapshot streams a copy of all keys to a writer and checks it against the checksum that etcd sends at its end. What
// was written before an error is not a snapshot: the caller throws it away. A follower is asked rather than the
// leader, once it has caught up.
func (c *Client) Snapshot(ctx context.Context, to io.Writer) (Snapshot, error) {
	seen, err := c.observe(ctx)
	if err != nil {
		return Snapshot{}, err
	}
	m := seen.source()
	if m == nil {
		return Snapshot{}, errors.New("etcd snapshot: no voter answers that is healthy but for its space")
	}
	s := Snapshot{Member: m.Name}
	e := seen.by[m.ID]
	// A linearizable read makes the member catch up first, with all that was acknowledged until now.
	err = c.call(ctx, e, func(ctx context.Context) error {
		r, err := e.etcd.Get(ctx, "theseus")
		if err == nil {
			s.Revision = r.Header.Revision
		}
		return err
	})
	if err != nil {
		return Snapshot{}, fmt.Errorf("etcd snapshot: %w", err)
	}
	s.Size, s.SHA256, err = c.stream(ctx, e, to)
	if err != nil {
		return Snapshot{}, fmt.Errorf("etcd snapshot of %s: %w", m, err)
	}
	return s, nil
}

// source is the voter to take a snapshot of, nil if there is none. One that is short of space can still be read.
func (s sight) source() *Member {
	var best *Member
	leader := s.Leader()
	for _, m := range s.Members {
		if m.Status == nil || m.Learner || m.Status.Leader == 0 || corrupt(m) {
			continue
		}
		if best == nil || best.ID == leader {
			best = &m
		}
	}
	return best
}

func corrupt(m Member) bool {
	for _, a := range m.Alarms {
		if a != live.NoSpace {
			return true
		}
	}
	return false
}

func (c *Client) stream(ctx context.Context, e *endpoint, to io.Writer) (int64, string, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	// The whole may take long, a pause may not.
	idle := time.AfterFunc(c.timeout, func() {
		cancel(fmt.Errorf("the stream paused for more than %s: %w", c.timeout, context.DeadlineExceeded))
	})
	defer idle.Stop()
	r, err := e.etcd.SnapshotWithVersion(ctx)
	if err != nil {
		return 0, "", because(ctx, err)
	}
	defer func() { _ = r.Snapshot.Close() }()
	size, sum, err := verify(to, &watched{r.Snapshot, idle, c.timeout})
	return size, sum, because(ctx, err)
}

// because is why ctx ended, if it did, instead of what that broke.
func because(ctx context.Context, err error) error {
	if err != nil && ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

// watched runs a timer while a read waits. How long the writer takes in between is not the stream's matter.
type watched struct {
	io.Reader
	timer *time.Timer
	wait  time.Duration
}

func (w *watched) Read(p []byte) (int, error) {
	w.timer.Reset(w.wait)
	n, err := w.Reader.Read(p)
	w.timer.Stop()
	return n, err
}

// verify copies a snapshot and checks it: its last 32 bytes are the SHA-256 of all before them.
func verify(to io.Writer, from io.Reader) (size int64, sum string, err error) {
	check := &trailing{hash: sha256.New()}
	size, err = io.Copy(io.MultiWriter(to, check), from)
	body := size - sha256.Size
	switch got := check.hash.Sum(nil); {
	case err != nil:
		return 0, "", err
	case body <= 0, body%snapshotPage != 0:
		return 0, "", fmt.Errorf("it is cut short: %d bytes are no whole database with its checksum", size)
	case !bytes.Equal(got, check.tail):
		return 0, "", fmt.Errorf("it is damaged: etcd sent the checksum %x, what came has %x", check.tail, got)
	default:
		return size, fmt.Sprintf("%x", got), nil
	}
}

// trailing hashes what is written to it, but for the last 32 bytes.
type trailing struct {
	hash hash.Hash
	tail []byte
}

func (t *trailing) Write(p []byte) (int, error) {
	t.tail = append(t.tail, p...)
	if n := len(t.tail) - sha256.Size; n > 0 {
		t.hash.Write(t.tail[:n])
		t.tail = append(t.tail[:0], t.tail[n:]...)
	}
	return len(p), nil
}
