// SPDX-License-Identifier: Apache-2.0

package gitsource

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/object"
)

// Commit brings the branch to what Change wants of it, in one commit, or does nothing when it is so already.
// It builds objects on the branch's present tree and pushes them with the expected old id, never by force. After a lost
// race it fetches the new head and runs Change again, up to Retry.Attempts times.
// Errors: *PushRefusedError when a rule of the server forbids it; ErrMoved when all tries lost; else as the kinds say.
func (r *Repo) Commit(ctx context.Context, req CommitRequest) (CommitResult, error) {
	ref, err := branchRef(req.Branch)
	if err != nil {
		return CommitResult{}, err
	}
	if ref == "" {
		return CommitResult{}, badOption("a commit needs a branch")
	}
	message, err := commitMessage(req.Message, req.Trailers)
	if err != nil {
		return CommitResult{}, err
	}
	release, err := r.hold(ctx)
	if err != nil {
		return CommitResult{}, err
	}
	defer release()

	for attempt := 1; ; attempt++ {
		revision, outcome, err := r.tryCommit(ctx, ref, message, req)
		switch outcome {
		case unchanged, landed:
			return CommitResult{Revision: revision, Changed: outcome == landed, Attempts: attempt}, nil
		case final:
			return CommitResult{Attempts: attempt}, err
		case raced, unclear:
		}
		if attempt >= r.opts.Retry.Attempts {
			return CommitResult{Attempts: attempt}, r.gaveUp(ref, attempt, err)
		}
		if err := r.pause(ctx, attempt); err != nil {
			return CommitResult{Attempts: attempt}, err
		}
	}
}

// outcome is what one try came to.
type outcome int

const (
	final     outcome = iota // failed, and trying again now would not help
	unchanged                // the branch already is as wanted
	landed                   // the branch has our commit
	raced                    // somebody else moved the branch; run Change on the new head
	unclear                  // no answer, and the branch has not moved; try again
)

func (r *Repo) tryCommit(ctx context.Context, ref plumbing.ReferenceName, message string, req CommitRequest) (Revision, outcome, error) {
	owns, err := below(req.Owned)
	if err != nil {
		return "", final, err
	}
	snap, err := r.snapshot(ctx, ref)
	if err != nil {
		return "", final, err
	}
	changes, err := req.Change(snap)
	if err != nil {
		return "", final, fmt.Errorf("commit to branch %s: %w", ref.Short(), err)
	}
	wanted, err := plantChanges(changes)
	if err != nil {
		return "", final, err
	}
	ed := &editor{snap: snap, owns: owns}
	root, err := ed.apply("", snap.root, wanted)
	if err != nil {
		return "", final, err
	}
	if root == snap.root {
		if snap.head.IsZero() {
			return "", unchanged, nil
		}
		return Revision(snap.head.String()), unchanged, nil
	}
	if root.IsZero() { // the last file went: a commit needs a tree object all the same
		root = ed.add(plumbing.TreeObject, nil)
	}
	commit, err := r.newCommit(root, snap.head, message)
	if err != nil {
		return "", final, err
	}
	ed.fresh = append(ed.fresh, commit)
	result, err := r.push(ctx, update{ref: ref, old: snap.head, new: commit.Hash(), objects: ed.fresh})
	return Revision(commit.Hash().String()), result, err
}

func (r *Repo) newCommit(root, parent plumbing.Hash, message string) (plumbing.EncodedObject, error) {
	now := r.opts.Now().Truncate(time.Second)
	commit := &object.Commit{
		Author:    object.Signature{Name: r.opts.Author.Name, Email: r.opts.Author.Email, When: now},
		Committer: object.Signature{Name: r.opts.Committer.Name, Email: r.opts.Committer.Email, When: now},
		TreeHash:  root,
		Message:   message,
	}
	if !parent.IsZero() {
		commit.ParentHashes = []plumbing.Hash{parent}
	}
	encoded := &plumbing.MemoryObject{}
	if err := commit.Encode(encoded); err != nil {
		return nil, fmt.Errorf("encode commit: %w", err)
	}
	return encoded, nil
}

func (r *Repo) gaveUp(ref plumbing.ReferenceName, attempts int, last error) error {
	e := &Error{Kind: ErrMoved, Where: r.loc.display,
		Why:  fmt.Sprintf("other writers were faster on branch %s, %d times in a row", ref.Short(), attempts),
		Hint: "the next run tries again; if it stays so, give this writer a branch of its own"}
	if last != nil {
		return fmt.Errorf("commit to branch %s, %d tries: %w", ref.Short(), attempts, last)
	}
	return e
}

// pause waits before the next try.
func (r *Repo) pause(ctx context.Context, attempt int) error {
	timer := time.NewTimer(r.opts.Retry.delay(attempt, r.opts.Jitter()))
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return &Error{Kind: ctx.Err(), Where: r.loc.display, Why: "stopped between two tries to push"}
	}
}

// commitMessage joins the parts of a message as git interpret-trailers expects them.
func commitMessage(message string, trailers []Trailer) (string, error) {
	message = strings.TrimSpace(message)
	if message == "" {
		return "", badOption("a commit needs a message")
	}
	if strings.ContainsRune(message, 0) {
		return "", badOption("a commit message can't hold a NUL byte")
	}
	var b strings.Builder
	b.WriteString(strings.ToValidUTF8(message, "�") + "\n")
	for i, t := range trailers {
		if t.Key == "" || strings.ContainsAny(t.Key, ": \t\r\n\x00") || strings.ContainsAny(t.Value, "\r\n\x00") {
			return "", badOption("commit trailer %q: a key has no space or colon, and a value no line break", t.Key)
		}
		if i == 0 {
			b.WriteString("\n")
		}
		b.WriteString(t.Key + ": " + strings.ToValidUTF8(t.Value, "�") + "\n")
	}
	return b.String(), nil
}
