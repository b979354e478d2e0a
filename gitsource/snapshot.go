// SPDX-License-Identifier: Apache-2.0

package gitsource

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp"
	"github.com/go-git/go-git/v5/storage/memory"
)

// snapshot is a branch at one head. It implements Tree.
type snapshot struct {
	ref     plumbing.ReferenceName
	head    plumbing.Hash // zero when there is no such branch
	root    plumbing.Hash // zero for an empty tree
	objects *objects
	limits  Limits
}

// Read lists directories of a branch as Tree.List does; false when there is no such branch.
func (r *Repo) Read(ctx context.Context, branch string, dirs ...string) ([]File, bool, error) {
	ref, err := branchRef(branch)
	if err != nil || ref == "" {
		return nil, false, err
	}
	release, err := r.hold(ctx)
	if err != nil {
		return nil, false, err
	}
	defer release()
	snap, err := r.snapshot(ctx, ref)
	if err != nil {
		return nil, false, err
	}
	files, err := snap.List(dirs...)
	return files, !snap.head.IsZero(), err
}

// hold waits for the token that guards r.last.
func (r *Repo) hold(ctx context.Context) (release func(), err error) {
	select {
	case r.writing <- struct{}{}:
		return func() { <-r.writing }, nil
	case <-ctx.Done():
		return nil, &Error{Kind: ctx.Err(), Where: r.loc.display, Why: "stopped while another commit was under way"}
	}
}

// snapshot lists the branch and fetches it if its head is not the one fetched last.
func (r *Repo) snapshot(ctx context.Context, ref plumbing.ReferenceName) (*snapshot, error) {
	var snap *snapshot
	err := r.exchange(ctx, uploadPack, func(ctx context.Context, w wire, adv *packp.AdvRefs) error {
		head, found := adv.References[ref.String()]
		if r.last != nil && r.last.ref == ref && r.last.head == head {
			snap = r.last
			return nil
		}
		snap = &snapshot{ref: ref, limits: r.opts.Limits, objects: &objects{store: memory.NewStorage(), where: r.loc.display}}
		if !found {
			return nil
		}
		objects, err := r.fetch(ctx, w, adv, head)
		if err != nil {
			return err
		}
		snap.head, snap.objects = head, objects
		snap.root, err = objects.root(head)
		return err
	})
	if err != nil {
		r.last = nil
		return nil, err
	}
	r.last = snap
	return snap, nil
}

// File implements Tree.
func (s *snapshot) File(path string) ([]byte, bool, error) {
	clean, err := cleanDir(path)
	if err != nil {
		return nil, false, err
	}
	e, found, err := s.objects.find(s.root, clean)
	if err != nil || !found {
		return nil, false, err
	}
	if e.kind() != Regular {
		return nil, false, s.refuse(path, "is not a regular file")
	}
	data, err := s.load(path, e)
	return data, err == nil, err
}

// List implements Tree.
func (s *snapshot) List(dirs ...string) ([]File, error) {
	byPath := map[string]File{}
	walk := &walker{
		objects: s.objects, limits: s.limits, flat: true,
		wants: func(e entry) bool { return printable(e.name) },
		take:  func(f File) error { byPath[f.Path] = f; return nil },
	}
	for _, dir := range dirs {
		clean, err := cleanDir(dir)
		if err != nil {
			return nil, err
		}
		e, at, found, err := s.objects.reach(s.root, clean)
		switch {
		case err != nil || !found:
		case e.isDir():
			err = walk.dir(at, e.id, 0)
		default:
			err = walk.file(at, e)
		}
		if err != nil {
			return nil, err
		}
	}
	return slices.SortedFunc(maps.Values(byPath), func(a, b File) int { return strings.Compare(a.Path, b.Path) }), nil
}

func (s *snapshot) load(path string, e entry) ([]byte, error) {
	data, tooLarge, err := s.objects.blob(e.id, s.limits.FileBytes)
	if tooLarge {
		err = s.tooLarge(path)
	}
	return data, err
}

func (s *snapshot) tooLarge(path string) error {
	return &Error{Kind: ErrLimit, Where: s.objects.where, Why: fmt.Sprintf("branch %s: %s is larger than %d bytes", s.ref.Short(), path, s.limits.FileBytes),
		Hint: "make it smaller, or raise the limit"}
}

func (s *snapshot) refuse(path, why string) error {
	return &Error{Kind: ErrUnsupported, Where: s.objects.where, Why: fmt.Sprintf("branch %s: %s %s", s.ref.Short(), strings.TrimPrefix(path, "/"), why),
		Hint: "remove it from that branch, or choose another path or branch for our files"}
}
