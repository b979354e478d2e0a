// SPDX-License-Identifier: Apache-2.0

package gitsource

import (
	"bytes"
	"context"
	"errors"
	"io"
	"strings"
	"sync"

	"github.com/go-git/go-git/v5/plumbing/format/pktline"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp/capability"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp/sideband"
)

// stream is the wire over a program's standard streams, be it local or at the end of an SSH connection.
// Ending the context of its dialler ends the program or the connection, and so every read and write here.
type stream struct {
	in     io.WriteCloser
	out    io.Reader // metered
	meter  *meter
	errors *tail
	wait   func() error // waits for the program's end
	stop   func()       // ends it now
	known  facts
	spoken bool // a request was sent
}

func (s *stream) advertise(context.Context) (*packp.AdvRefs, error) {
	adv := packp.NewAdvRefs()
	err := adv.Decode(s.out)
	if errors.Is(err, packp.ErrEmptyInput) {
		// The words come on another stream and may be late: they are complete when the program has ended.
		_ = s.wait()
		s.known.ended = true
		s.spoken = true
	}
	var line *pktline.ErrorLine
	if errors.As(err, &line) {
		s.known.ended = true
		s.known.words = line.Text
	}
	return settleAdvertisement(adv, err)
}

func (s *stream) fetch(_ context.Context, req *packp.UploadPackRequest) (io.ReadCloser, error) {
	s.spoken = true
	var ask bytes.Buffer
	if err := req.UploadRequest.Encode(&ask); err != nil {
		return nil, err
	}
	if err := pktline.NewEncoder(&ask).EncodeString("done\n"); err != nil {
		return nil, err
	}
	if _, err := s.in.Write(ask.Bytes()); err != nil {
		return nil, err
	}
	resp := packp.NewUploadPackResponse(req)
	if err := resp.Decode(io.NopCloser(s.out)); err != nil {
		return nil, err
	}
	return resp, nil
}

func (s *stream) push(_ context.Context, req *packp.ReferenceUpdateRequest) (*packp.ReportStatus, error) {
	s.spoken = true
	if err := req.Encode(s.in); err != nil {
		return nil, err
	}
	if err := s.in.Close(); err != nil {
		return nil, err
	}
	if !req.Capabilities.Supports(capability.ReportStatus) {
		return nil, s.wait()
	}
	answer := s.out
	if req.Capabilities.Supports(capability.Sideband64k) {
		demux := sideband.NewDemuxer(sideband.Sideband64k, s.out)
		demux.Progress = req.Progress
		answer = demux
	}
	report := packp.NewReportStatus()
	if err := report.Decode(answer); err != nil {
		return nil, err
	}
	return report, nil
}

func (s *stream) facts() facts {
	known := s.known
	start, over := s.meter.seen()
	known.overLimit = over
	known.sha256 = strings.Contains(start, "object-format=sha256")
	known.words = strings.TrimSpace(known.words + " " + s.errors.String())
	return known
}

// Close says goodbye when nothing was asked, then lets the program end by itself, so that a hook which runs after the
// report is not cut off. The dialler's context bounds that wait.
func (s *stream) Close() error {
	if !s.spoken {
		_, _ = s.in.Write(pktline.FlushPkt)
	}
	_ = s.in.Close()
	if _, err := io.Copy(io.Discard, s.out); err != nil {
		s.stop()
	}
	err := s.wait()
	s.stop()
	return err
}

// tail keeps the beginning of an error stream, for people.
type tail struct {
	mu   sync.Mutex
	text []byte
}

func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if room := 4*maxWords - len(t.text); room > 0 {
		t.text = append(t.text, p[:min(room, len(p))]...)
	}
	return len(p), nil
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return string(t.text)
}
