// SPDX-License-Identifier: Apache-2.0

package gitsource

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
)

// explain turns what went wrong in an exchange into an error that is safe to publish. It decides by types, HTTP status
// and facts of the exchange; the server's words only decorate.
func (r *Repo) explain(run, exchange context.Context, s service, err error, f facts) error {
	var own *Error
	if errors.As(err, &own) {
		return own
	}
	var early *wireError
	if errors.As(err, &early) {
		f = early.facts
	}
	e := &Error{Where: r.loc.display, RetryAfter: f.retryAfter}
	switch {
	case f.overLimit:
		e.Kind, e.Why = ErrLimit, fmt.Sprintf("the server sent more than %d bytes", r.opts.Limits.RepoBytes)
		e.Hint = "remove big files from the branch, keep the fleet in a repository of its own, or raise the limit"
	case errors.Is(run.Err(), context.Canceled):
		e.Kind, e.Why = run.Err(), "the run was stopped"
	case run.Err() != nil:
		e.Kind, e.late = run.Err(), "within the time that was left for it"
		e.Why, e.Hint = "no complete answer "+e.late, "the next run tries again"
	case exchange.Err() != nil:
		e.late = fmt.Sprintf("within %s", r.opts.Timeout)
		e.Why, e.Hint = "no complete answer "+e.late, "the next run tries again"
	case f.sha256:
		e.Kind, e.Why = ErrUnsupported, "the repository uses SHA-256 object ids (object-format=sha256), which are not supported yet"
		e.Hint = "use a repository with SHA-1 object ids"
	case f.hostKey != "":
		e.Kind, e.Why = ErrHostKey, f.hostKey
		e.Hint = "ask the server's owner for its key and put that into known_hosts"
	default:
		r.explainAccess(e, s, err, f)
	}
	return e
}

func (r *Repo) explainAccess(e *Error, s service, err error, f facts) {
	right := "read"
	if s == receivePack {
		right = "write"
	}
	words := r.scrub.clean(f.words)
	var cert *tls.CertificateVerificationError
	switch {
	case f.denied:
		e.Kind, e.Why = ErrAuth, "the SSH server accepted no key of ours for user "+r.loc.user
		e.Hint = fmt.Sprintf("add the public key to the repository with %s access", right)
	case f.status == http.StatusUnauthorized, f.status == http.StatusForbidden:
		e.Kind, e.Why = ErrAuth, fmt.Sprintf("the server answered %d to %s", f.status, r.opts.Auth)
		e.Hint = r.credentialsHint(fmt.Sprintf("check that the token is valid and has %s access to the repository", right),
			fmt.Sprintf("name a secret whose credentials have %s access: --repo-secret", right))
	case f.status == http.StatusNotFound:
		e.Kind, e.Why = ErrNotFound, "the server answered 404"
		e.Hint = r.credentialsHint("check the URL; many hosts also answer 404 when the credentials give no access",
			"check the URL; many hosts also answer 404 to those who give no credentials (--repo-secret)")
	case f.ended && s == receivePack:
		e.Kind, e.Why = ErrAuth, "the server ended the push before it began; "+said(words)
		e.Hint = "check that the key has write access"
	case f.ended:
		e.Kind, e.Why = ErrNotFound, "the server ended without listing a repository; "+said(words)
		e.Hint = "check the path, and that the key has read access"
	case errors.As(err, &cert):
		e.Kind, e.Why = ErrConfig, "the server's certificate is not trusted: "+r.scrub.clean(cert.Unwrap().Error())
		e.Hint = "put the issuing certificate into Secret key ca.crt"
	case f.status >= http.StatusBadRequest:
		e.Why = fmt.Sprintf("the server answered %d", f.status)
	default:
		e.Why = r.scrub.clean(err.Error())
		if words != "" {
			e.Why += "; " + said(words)
		}
	}
}

// credentialsHint is what to do about credentials that don't suffice, or about none.
func (r *Repo) credentialsHint(some, none string) string {
	if r.opts.Auth.none() {
		return none
	}
	return some
}
