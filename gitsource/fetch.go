// SPDX-License-Identifier: Apache-2.0

package gitsource

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/format/packfile"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp/capability"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp/sideband"
	"github.com/go-git/go-git/v5/storage/memory"
)

// fetch brings one commit with its whole tree and no history. Where the server can filter, blobs above
// Limits.FileBytes stay there.
func (r *Repo) fetch(ctx context.Context, w wire, adv *packp.AdvRefs, id plumbing.Hash) (*objects, error) {
	if !adv.Capabilities.Supports(capability.Shallow) {
		return nil, &Error{Kind: ErrUnsupported, Where: r.loc.display, Why: "the server can't send a commit without its history (no shallow capability)"}
	}
	req := packp.NewUploadPackRequest()
	for _, c := range []capability.Capability{capability.Sideband64k, capability.OFSDelta, capability.NoProgress} {
		if adv.Capabilities.Supports(c) {
			_ = req.Capabilities.Set(c)
		}
	}
	_ = req.Capabilities.Set(capability.Shallow)
	_ = req.Capabilities.Set(capability.Agent, capability.DefaultAgent())
	filtered := adv.Capabilities.Supports(capability.Filter)
	if filtered {
		_ = req.Capabilities.Set(capability.Filter)
		req.Filter = packp.Filter(fmt.Sprintf("blob:limit=%d", r.opts.Limits.FileBytes+1))
	}
	req.Wants = []plumbing.Hash{id}
	req.Depth = packp.DepthCommits(1)

	answer, err := w.fetch(ctx, req)
	if err != nil {
		return nil, err
	}
	defer answer.Close() //nolint:errcheck // read to the end below
	var pack io.Reader = answer
	if req.Capabilities.Supports(capability.Sideband64k) {
		pack = sideband.NewDemuxer(sideband.Sideband64k, answer)
	}
	data, err := io.ReadAll(pack)
	if err != nil {
		return nil, err
	}
	store, err := unpack(data, r.opts.Limits.RepoBytes)
	if errors.Is(err, errOverLimit) {
		return nil, &Error{Kind: ErrLimit, Where: r.loc.display, Why: fmt.Sprintf("the branch unpacks to more than %d bytes", r.opts.Limits.RepoBytes),
			Hint: "remove big files from the branch, keep the fleet in a repository of its own, or raise the limit"}
	}
	if err != nil {
		return nil, err
	}
	return &objects{store: store, filtered: filtered, where: r.loc.display}, nil
}

// unpack puts a pack's objects into memory, after checking that they fit.
func unpack(pack []byte, limit int64) (*memory.Storage, error) {
	if err := checkUnpacked(pack, limit); err != nil {
		return nil, err
	}
	store := memory.NewStorage()
	parser, err := packfile.NewParserWithStorage(packfile.NewScanner(bytes.NewReader(pack)), store)
	if err != nil {
		return nil, err
	}
	if _, err := parser.Parse(); err != nil {
		return nil, fmt.Errorf("pack: %w", err)
	}
	return store, nil
}

// checkUnpacked adds up the sizes that the pack declares. The scanner refuses an object that inflates to more than it
// declares, so a small pack can't become a large memory.
func checkUnpacked(pack []byte, limit int64) error {
	scanner := packfile.NewScanner(bytes.NewReader(pack))
	_, count, err := scanner.Header()
	if err != nil {
		return fmt.Errorf("pack header: %w", err)
	}
	var total int64
	for range count {
		header, err := scanner.NextObjectHeader()
		if err != nil {
			return fmt.Errorf("pack: %w", err)
		}
		total += header.Length
		if header.Length > limit || total > limit {
			return errOverLimit
		}
		begin := &beginning{}
		if _, _, err := scanner.NextObject(begin); err != nil {
			return fmt.Errorf("pack: %w", err)
		}
		if header.Type.IsDelta() {
			size := deltaResultSize(begin.data)
			total += size
			if size < 0 || size > limit || total > limit {
				return errOverLimit
			}
		}
	}
	return nil
}

// beginning keeps the first bytes written to it: enough for a delta's two sizes.
type beginning struct{ data []byte }

func (b *beginning) Write(p []byte) (int, error) {
	if room := 20 - len(b.data); room > 0 {
		b.data = append(b.data, p[:min(room, len(p))]...)
	}
	return len(p), nil
}

// deltaResultSize reads the second of the two sizes that begin a delta (gitformat-pack, "Deltified representation").
func deltaResultSize(delta []byte) int64 {
	var size uint64
	for range 2 {
		size = 0
		for shift := 0; len(delta) > 0 && shift < 63; shift += 7 {
			b := delta[0]
			delta = delta[1:]
			size |= uint64(b&0x7f) << shift
			if b&0x80 == 0 {
				break
			}
		}
	}
	return int64(size) // a value above the sign bit turns negative, which the caller refuses
}
