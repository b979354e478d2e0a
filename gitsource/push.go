// SPDX-License-Identifier: Apache-2.0

package gitsource

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/format/packfile"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp/capability"
	"github.com/go-git/go-git/v5/storage/memory"
)

// update is one compare-and-set of a ref, with the objects it needs.
type update struct {
	ref      plumbing.ReferenceName
	old, new plumbing.Hash // old is zero when the ref must not exist
	objects  []plumbing.EncodedObject
}

// push sends an update and finds out what became of it.
//
// The server's answer says accepted, refused, or is lost. Its words are not a contract, so the ref itself decides:
//
//	ref afterwards   accepted   refused          answer lost
//	our commit       landed     landed           landed
//	the old one      refused    refused (rule)   unclear
//	another          landed     raced            raced
//
// go-git's own push isn't used: in a shallow store it fails with "object not found" where it lost a race, and it walks
// all objects it has before it finds the few new ones.
func (r *Repo) push(ctx context.Context, u update) (outcome, error) {
	said, lost := r.send(ctx, u)
	if said.moved {
		return raced, nil
	}
	now, err := r.settled(ctx, u, lost == nil)
	switch {
	case err != nil && isFinal(lost):
		return final, lost
	case err != nil:
		return unclear, err
	case now == u.new, now != u.old && said.accepted:
		return landed, nil
	case now != u.old:
		return raced, nil
	case lost == nil:
		return final, &PushRefusedError{Where: r.loc.display, Branch: u.ref.Short(), Words: r.scrub.clean(said.words)}
	case isFinal(lost):
		return final, lost
	}
	return unclear, lost
}

// settled lists the ref after a push; zero when it does not exist. When the server answered and the ref is still the old
// one, it looks once more: of two pushes at the same moment, the loser may be told so while the winner still holds the
// ref's lock, a moment before the ref moves.
func (r *Repo) settled(ctx context.Context, u update, answered bool) (plumbing.Hash, error) {
	now, err := r.resolve(ctx, u)
	if err != nil || now != u.old || !answered {
		return now, err
	}
	if err := r.pause(ctx, 0); err != nil {
		return now, err
	}
	return r.resolve(ctx, u)
}

// isFinal says that trying again at once is useless. What took all the time that an answer may take would take it again.
func isFinal(err error) bool {
	for _, kind := range []error{ErrAuth, ErrHostKey, ErrConfig, ErrNotFound, ErrUnsupported, ErrLimit, context.Canceled, context.DeadlineExceeded} {
		if errors.Is(err, kind) {
			return true
		}
	}
	var e *Error
	return errors.As(err, &e) && (e.RetryAfter > 0 || e.late != "")
}

func (r *Repo) resolve(ctx context.Context, u update) (plumbing.Hash, error) {
	var id plumbing.Hash
	err := r.exchange(ctx, uploadPack, func(_ context.Context, _ wire, adv *packp.AdvRefs) error {
		id = adv.References[u.ref.String()]
		return nil
	})
	return id, err
}

// answer is what the server said to an update.
type answer struct {
	moved    bool // the ref had another id before we sent anything
	accepted bool
	words    string // for people, unscrubbed
}

// send gives an error when no report came back.
func (r *Repo) send(ctx context.Context, u update) (answer, error) {
	pack, err := encodePack(u.objects)
	if err != nil {
		return answer{}, err
	}
	var a answer
	progress := &tail{}
	asked := false
	err = r.exchange(ctx, receivePack, func(ctx context.Context, w wire, adv *packp.AdvRefs) error {
		if adv.References[u.ref.String()] != u.old {
			a.moved = true
			return nil
		}
		req := packp.NewReferenceUpdateRequestFromCapabilities(adv.Capabilities)
		if adv.Capabilities.Supports(capability.Sideband64k) {
			_ = req.Capabilities.Set(capability.Sideband64k)
		}
		req.Commands = []*packp.Command{{Name: u.ref, Old: u.old, New: u.new}}
		req.Packfile = io.NopCloser(bytes.NewReader(pack))
		req.Progress = progress
		asked = true
		report, err := w.push(ctx, req)
		if err != nil {
			return err
		}
		if report == nil {
			return errNoReport
		}
		a.accepted, a.words = readReport(report, u.ref)
		a.words += " " + progress.String() + " " + w.facts().words
		return nil
	})
	var e *Error
	if asked && errors.As(err, &e) && e.late != "" {
		e.Why = fmt.Sprintf("the push to branch %s got no answer %s", u.ref.Short(), e.late)
		if words := r.scrub.clean(progress.String()); words != "" {
			e.Why += "; until then " + said(words)
		}
		e.Hint = "look at what the server does at a push, its hooks first (pre-receive, update, post-receive); the next run tries again"
	}
	return a, err
}

var errNoReport = errors.New("the server gave no report about the push")

// readReport needs an explicit ok for our ref (gitprotocol-pack, "Report Status").
func readReport(report *packp.ReportStatus, ref plumbing.ReferenceName) (accepted bool, words string) {
	var said []string
	if report.UnpackStatus != "ok" {
		said = append(said, report.UnpackStatus)
	}
	for _, status := range report.CommandStatuses {
		if status.ReferenceName != ref {
			continue
		}
		if status.Status == "ok" {
			accepted = len(said) == 0
			continue
		}
		said = append(said, status.Status)
	}
	return accepted, strings.Join(said, ", ")
}

// encodePack makes a pack of exactly these objects.
func encodePack(objects []plumbing.EncodedObject) ([]byte, error) {
	store := memory.NewStorage()
	var ids []plumbing.Hash
	for _, object := range objects {
		id, err := store.SetEncodedObject(object)
		if err != nil {
			return nil, fmt.Errorf("pack: %w", err)
		}
		ids = append(ids, id)
	}
	var b bytes.Buffer
	if _, err := packfile.NewEncoder(&b, store, false).Encode(dedupe(ids), 0); err != nil {
		return nil, fmt.Errorf("pack: %w", err)
	}
	return b.Bytes(), nil
}

// dedupe drops repeated ids: two files with the same content are one object.
func dedupe(ids []plumbing.Hash) []plumbing.Hash {
	seen := map[plumbing.Hash]bool{}
	var out []plumbing.Hash
	for _, id := range ids {
		if !seen[id] {
			seen[id] = true
			out = append(out, id)
		}
	}
	return out
}
